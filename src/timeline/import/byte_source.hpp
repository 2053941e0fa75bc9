#pragma once
// A file's bytes in order, inflated on the way when it is gzip (by its magic bytes). Memory stays
// bounded whatever the file's size.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace fusescope::timeline {

class ByteSource {
 public:
  // Throws InputError: missing, unreadable, a folder.
  explicit ByteSource(const std::string& path);
  // Bytes in memory (not copied), for tests and fuzzers. `name` stands in messages.
  ByteSource(std::string name, const char* bytes, std::size_t size);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Up to `size` bytes; 0 at the end, or where the compressed data is damaged (see damage()).
  std::size_t read(char* into, std::size_t size);

  bool compressed() const;
  // "" or why the end came early: "the gzip data is truncated at byte 123".
  const std::string& damage() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fusescope::timeline
