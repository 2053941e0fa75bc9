#include "timeline/atomic_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.hpp"

namespace fusescope::timeline {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw InputError({path, "", "cannot be written: " + why,
                    "a file's path in an existing directory that can be written to"});
}

// Follows a symbolic link, so that the link stays and what it points to is replaced.
std::string resolved(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  return error || path.empty() ? path : real.string();
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  std::error_code error;
  if (path.empty()) {
    refuse(path, "the path is empty");
  }
  if (fs::is_directory(path, error)) {
    refuse(path, "it is a directory");
  }
  target_ = resolved(path);
  const bool exists = fs::exists(path, error);
  if (exists && ::access(path.c_str(), W_OK) != 0) {
    refuse(path, std::strerror(errno));
  }
  if (!exists || fs::is_regular_file(path, error)) {
    temporary_ = target_ + ".partial-" + std::to_string(::getpid());
  }  // else a pipe or a device, which is written to, never replaced
  errno = 0;
  stream_.open(temporary_.empty() ? path : temporary_, std::ios::binary | std::ios::trunc);
  if (!stream_) {
    refuse(path, std::strerror(errno));
  }
}

AtomicFile::~AtomicFile() {
  stream_.close();
  discard();
}

void AtomicFile::discard() {
  if (!temporary_.empty()) {
    std::error_code error;
    fs::remove(temporary_, error);
    temporary_.clear();
  }
}

void AtomicFile::commit() {
  errno = 0;
  stream_.close();
  if (!stream_) {
    const int reason = errno;
    discard();
    refuse(path_, reason == 0 ? "not every byte was accepted" : std::strerror(reason));
  }
  if (temporary_.empty()) {
    return;
  }
  std::error_code error;
  fs::rename(temporary_, target_, error);
  if (error) {
    discard();
    refuse(path_, error.message());
  }
  temporary_.clear();
}

}  // namespace fusescope::timeline
