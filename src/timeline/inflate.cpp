#include "timeline/inflate.hpp"

#include <zlib.h>

#include <algorithm>
#include <new>

namespace fusescope::timeline {
namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;
constexpr std::size_t kMost = std::size_t{1} << 30;  // zlib counts in 32 bits

}  // namespace

struct Inflater::Stream {
  z_stream zlib{};
};

Inflater::Inflater() : stream_(std::make_unique<Stream>()) {
  if (inflateInit2(&stream_->zlib, kGzipOnly) != Z_OK) {
    throw std::bad_alloc();
  }
}

Inflater::~Inflater() {
  inflateEnd(&stream_->zlib);
}

Inflater::Step Inflater::step(const char* from, std::size_t from_size, char* to,
                              std::size_t to_size) {
  z_stream& zlib = stream_->zlib;
  const auto given = static_cast<uInt>(std::min(from_size, kMost));
  const auto room = static_cast<uInt>(std::min(to_size, kMost));
  // zlib's next_in is not const, but it is only read.
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from));
  zlib.avail_in = given;
  zlib.next_out = reinterpret_cast<Bytef*>(to);
  zlib.avail_out = room;
  const int status = inflate(&zlib, Z_NO_FLUSH);
  Step step{given - zlib.avail_in, room - zlib.avail_out, State::going};
  if (status == Z_STREAM_END) {
    step.state = State::ended;
  } else if (status != Z_OK && status != Z_BUF_ERROR) {  // Z_BUF_ERROR: nothing could be done
    step.state = State::corrupt;
    message_ = zlib.msg == nullptr ? "" : zlib.msg;
  }
  return step;
}

void Inflater::restart() {
  inflateReset(&stream_->zlib);
}

}  // namespace fusescope::timeline
