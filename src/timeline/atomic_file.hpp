#pragma once
// A file that appears whole or not at all: bytes go to a temporary file in the target's directory,
// which replaces the target on commit(). Without commit() nothing that was there changes. A pipe or
// a device is written to directly.

#include <fstream>
#include <string>

namespace fusescope::timeline {

class AtomicFile {
 public:
  // Throws InputError if a file cannot be created beside `path`, or `path` is a directory.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  std::ostream& stream() { return stream_; }
  // Throws InputError if not every byte reached the disk (full, or over quota) or the rename fails.
  void commit();

 private:
  void discard();

  std::string path_;       // as the user gave it
  std::string target_;     // with symbolic links followed
  std::string temporary_;  // empty for pipes and devices
  std::ofstream stream_;
};

}  // namespace fusescope::timeline
