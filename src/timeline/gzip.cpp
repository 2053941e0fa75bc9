#include "timeline/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>

#include "base/error.hpp"
#include "timeline/inflate.hpp"

namespace fusescope::timeline {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's largest window, gzip framing
constexpr std::size_t kMostContent = std::size_t{1} << 30;

Bytef* as_input(std::string_view bytes) {
  // zlib's next_in is not const, but it is only read.
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

}  // namespace

std::string gzip(std::string_view content) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, deflateEnd);
  if (content.size() > kMostContent) {
    throw InputError(
        {"", "", "a timeline of " + std::to_string(content.size()) + " bytes", "at most 1 GiB"});
  }
  std::string bytes(deflateBound(&stream, content.size()), '\0');
  stream.next_in = as_input(content);
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) {
    throw std::logic_error("deflate() did not fit its own bound");
  }
  bytes.resize(stream.total_out);
  return bytes;
}

std::string gunzip(std::string_view bytes, const std::string& file) {
  Inflater inflater;
  std::string content;
  std::size_t taken = 0;
  const auto place = [&] { return "byte " + std::to_string(taken); };
  for (auto state = Inflater::State::going; state != Inflater::State::ended;) {
    if (content.size() >= kMostContent) {
      throw InputError(
          {file, place(), "unpacks to more than 1 GiB", "a timeline of one iteration"});
    }
    const std::size_t filled = content.size();
    content.resize(std::max<std::size_t>(filled * 2, std::size_t{1} << 16));
    const std::size_t room = content.size() - filled;
    const Inflater::Step step =
        inflater.step(bytes.data() + taken, bytes.size() - taken, content.data() + filled, room);
    taken += step.taken;
    content.resize(filled + step.made);
    state = step.state;
    if (state == Inflater::State::corrupt) {
      throw InputError(
          {file, place(), "is corrupt: " + inflater.message(), "gzip data as it was written"});
    }
    if (state == Inflater::State::going && taken == bytes.size() && step.made < room) {
      throw InputError(
          {file, place(), "is truncated: the compressed data does not end", "a whole file"});
    }
  }
  if (taken != bytes.size()) {
    throw InputError({file, place(),
                      "has " + std::to_string(bytes.size() - taken) +
                          " bytes after the end of the compressed data",
                      "a whole file and nothing else"});
  }
  return content;
}

}  // namespace fusescope::timeline
