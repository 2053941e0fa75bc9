#include "memory_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

namespace fusescope::fuzz {

MemoryFile::MemoryFile(std::string_view bytes) : file_(::memfd_create("input", MFD_CLOEXEC)) {
  const auto whole = static_cast<ssize_t>(bytes.size());
  if (file_ < 0 || ::write(file_, bytes.data(), bytes.size()) != whole) {
    throw std::system_error(errno, std::generic_category(), "a file in memory");
  }
}

MemoryFile::~MemoryFile() {
  ::close(file_);
}

std::string MemoryFile::path() const {
  return "/proc/self/fd/" + std::to_string(file_);
}

std::string MemoryFile::bytes() const {
  std::ifstream file(path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace fusescope::fuzz
