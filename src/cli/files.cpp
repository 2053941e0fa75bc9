#include "cli/files.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <ostream>
#include <system_error>

#include "base/error.hpp"
#include "timeline/atomic_file.hpp"

namespace fusescope::cli {

namespace fs = std::filesystem;

void write_text(const std::string& path, const std::string& text) {
  timeline::AtomicFile file(path);
  file.stream() << text;
  file.commit();
}

void make_folder(const std::string& path, const std::string& option) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && !fs::is_directory(path)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error) {
    throw InputError({option, path, "the folder cannot be made: " + error.message(),
                      "a folder that you may write to"});
  }
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    throw InputError(
        {option, path,
         std::string("nothing can be written into the folder: ") + std::strerror(errno),
         "a folder that you may write to"});
  }
}

bool is_missing_or_empty(const std::string& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (status.type() == fs::file_type::not_found) {
    return true;
  }
  return fs::is_directory(status) &&
         fs::directory_iterator(folder, error) == fs::directory_iterator();
}

std::string joined(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts = {};
  ::gmtime_r(&now, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, length};
}

}  // namespace fusescope::cli
