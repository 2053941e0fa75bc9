#pragma once
// Each distinct text of a trace once, by number. Traces repeat a few thousand names millions of times.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fusescope::timeline {

class Names {
 public:
  // The number of `text`, new or known. Numbers count from 0 in order of first appearance.
  std::uint32_t add(std::string_view text);

  std::string_view operator[](std::uint32_t number) const { return texts_[number]; }
  std::size_t size() const { return texts_.size(); }

 private:
  std::string_view keep(std::string_view text);
  void grow();

  std::vector<std::string_view> texts_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> slots_;  // number + 1, 0 = free; a power of two
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t block_left_ = 0;
};

}  // namespace fusescope::timeline
