#pragma once
// gzip's decompression step by step: what the readers of whole buffers and of streams share.

#include <cstddef>
#include <memory>
#include <string>

namespace fusescope::timeline {

class Inflater {
 public:
  Inflater();
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  enum class State {
    going,    // takes more input, or has more output, or both
    ended,    // a gzip member is complete; restart() before the next one
    corrupt,  // see message()
  };
  struct Step {
    std::size_t taken = 0;  // bytes of the input
    std::size_t made = 0;   // bytes of the output
    State state = State::going;
  };
  Step step(const char* from, std::size_t from_size, char* to, std::size_t to_size);

  void restart();
  const std::string& message() const { return message_; }

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
  std::string message_;
};

}  // namespace fusescope::timeline
