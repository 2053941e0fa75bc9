#include "timeline/import/byte_source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "timeline/inflate.hpp"

namespace fusescope::timeline {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

struct ByteSource::State {
  std::string name;
  std::unique_ptr<std::FILE, CloseFile> file;
  const char* bytes = nullptr;  // in-memory input
  std::size_t left = 0;
  std::uint64_t taken = 0;  // raw bytes

  std::vector<char> ahead;  // raw bytes read and not yet used
  std::size_t ahead_begin = 0;
  std::optional<Inflater> gzip;
  bool member_open = false;
  bool done = false;
  std::string damage;

  std::size_t raw(char* into, std::size_t size) {
    std::size_t got = 0;
    if (file) {
      got = std::fread(into, 1, size, file.get());
      if (got == 0 && std::ferror(file.get()) != 0) {
        throw InputError({name, "byte " + std::to_string(taken),
                          std::string("cannot be read further: ") + std::strerror(errno),
                          "a readable file"});
      }
    } else {
      got = std::min(size, left);
      std::memcpy(into, bytes, got);
      bytes += got;
      left -= got;
    }
    taken += got;
    return got;
  }

  bool refill() {
    ahead.resize(kChunk);
    ahead_begin = 0;
    ahead.resize(raw(ahead.data(), kChunk));
    return !ahead.empty();
  }

  void open() {
    if (!refill()) {
      return;
    }
    if (ahead.size() >= 2 && ahead[0] == '\x1f' && ahead[1] == '\x8b') {
      gzip.emplace();
      member_open = true;
    }
  }

  std::size_t take_ahead(char* into, std::size_t size) {
    const std::size_t got = std::min(size, ahead.size() - ahead_begin);
    std::memcpy(into, ahead.data() + ahead_begin, got);
    ahead_begin += got;
    return got;
  }

  std::uint64_t position() const { return taken - (ahead.size() - ahead_begin); }

  std::size_t inflated(char* into, std::size_t size) {
    std::size_t made = 0;
    while (made == 0 && size > 0 && !done) {
      if (ahead_begin == ahead.size() && !refill()) {
        done = true;
        if (member_open) {
          damage = "the gzip data is truncated at byte " + std::to_string(taken);
        }
        break;
      }
      if (!member_open) {  // behind a member: another one, or padding
        if (ahead[ahead_begin] != '\x1f') {
          done = true;
          break;
        }
        gzip->restart();
        member_open = true;
      }
      const Inflater::Step step =
          gzip->step(ahead.data() + ahead_begin, ahead.size() - ahead_begin, into, size);
      ahead_begin += step.taken;
      made = step.made;
      if (step.state == Inflater::State::ended) {
        member_open = false;
      } else if (step.state == Inflater::State::corrupt) {
        damage = "the gzip data is corrupt at byte " + std::to_string(position()) +
                 (gzip->message().empty() ? "" : " (" + gzip->message() + ")");
        done = true;
      }
    }
    return made;
  }
};

ByteSource::ByteSource(const std::string& path) : state_(std::make_unique<State>()) {
  state_->name = path;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw InputError({path, "", "is a folder", "the path of a readable file"});
  }
  state_->file.reset(std::fopen(path.c_str(), "rb"));
  if (!state_->file) {
    throw InputError({path, "", std::string("cannot be read: ") + std::strerror(errno),
                      "the path of a readable file"});
  }
  state_->open();
}

ByteSource::ByteSource(std::string name, const char* bytes, std::size_t size)
    : state_(std::make_unique<State>()) {
  state_->name = std::move(name);
  state_->bytes = bytes;
  state_->left = size;
  state_->open();
}

ByteSource::~ByteSource() = default;

std::size_t ByteSource::read(char* into, std::size_t size) {
  if (state_->gzip) {
    return state_->inflated(into, size);
  }
  const std::size_t got = state_->take_ahead(into, size);
  return got > 0 ? got : state_->raw(into, size);
}

bool ByteSource::compressed() const {
  return state_->gzip.has_value();
}

const std::string& ByteSource::damage() const {
  return state_->damage;
}

}  // namespace fusescope::timeline
