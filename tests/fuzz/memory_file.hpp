#pragma once
// A file that lies in memory and has a path, for readers that want one; it is gone with the object.

#include <string>
#include <string_view>

namespace fusescope::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes);  // throws std::system_error
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const;
  std::string bytes() const;  // what it holds now

 private:
  int file_ = -1;
};

}  // namespace fusescope::fuzz
