#include "base/file_bytes.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace fusescope {
namespace {

std::string read_plain(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw InputError({path, "", "is a folder", "the path of a readable file"});
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw InputError({path, "", std::string("cannot be read: ") + std::strerror(errno),
                      "the path of a readable file"});
  }
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (file.bad()) {
    throw InputError({path, "", "cannot be read to its end", "the path of a readable file"});
  }
  return std::move(bytes).str();
}

bool is_gzip(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

class Inflater {
 public:
  Inflater() {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

// All members of a gzip file, one behind the other.
std::string inflate_gzip(std::string_view packed, const std::string& path) {
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  const std::size_t total = packed.size();
  std::string bytes;
  while (is_gzip(packed)) {
    Inflater inflater;
    z_stream& stream = inflater.stream();
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      const std::size_t given = std::min(packed.size(), kChunk);
      // zlib does not write through next_in; its type predates const.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
      stream.avail_in = static_cast<uInt>(given);
      const std::size_t before = bytes.size();
      bytes.resize(before + kChunk);
      stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + before);
      stream.avail_out = static_cast<uInt>(kChunk);
      status = inflate(&stream, Z_NO_FLUSH);
      bytes.resize(before + kChunk - stream.avail_out);
      packed.remove_prefix(given - stream.avail_in);
      const std::string place = "byte " + std::to_string(total - packed.size());
      if (status == Z_BUF_ERROR || (status == Z_OK && packed.empty() && stream.avail_out > 0)) {
        throw InputError({path, place, "the gzip data ends too early: the file is truncated",
                          "a complete gzip file"});
      }
      if (status != Z_OK && status != Z_STREAM_END) {
        throw InputError({path, place,
                          std::string("the gzip data is corrupt: ") +
                              (stream.msg == nullptr ? "zlib refuses it" : stream.msg),
                          "a complete gzip file"});
      }
    }
  }
  return bytes;
}

}  // namespace

std::string read_file_bytes(const std::string& path) {
  std::string bytes = read_plain(path);
  return is_gzip(bytes) ? inflate_gzip(bytes, path) : bytes;
}

}  // namespace fusescope
