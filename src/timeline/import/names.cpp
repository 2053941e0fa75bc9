#include "timeline/import/names.hpp"

#include <cstring>
#include <functional>
#include <utility>

namespace fusescope::timeline {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 16;

}  // namespace

std::uint32_t Names::add(std::string_view text) {
  if ((texts_.size() + 1) * 2 > slots_.size()) {
    grow();
  }
  const std::uint64_t hash = std::hash<std::string_view>{}(text);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const std::uint32_t number = slots_[slot] - 1;
    if (hashes_[number] == hash && texts_[number] == text) {
      return number;
    }
  }
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back(keep(text));
  hashes_.push_back(hash);
  slots_[slot] = number + 1;
  return number;
}

std::string_view Names::keep(std::string_view text) {
  if (text.empty()) {
    return {};
  }
  if (text.size() > kBlock / 4) {  // long texts get a block of their own, under the current one
    auto own = std::make_unique_for_overwrite<char[]>(text.size());
    std::memcpy(own.get(), text.data(), text.size());
    const std::string_view kept(own.get(), text.size());
    blocks_.push_back(std::move(own));
    if (blocks_.size() > 1) {
      std::swap(blocks_.back(), blocks_[blocks_.size() - 2]);
    }
    return kept;
  }
  if (text.size() > block_left_) {
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(kBlock));
    block_left_ = kBlock;
  }
  char* place = blocks_.back().get() + (kBlock - block_left_);
  std::memcpy(place, text.data(), text.size());
  block_left_ -= text.size();
  return {place, text.size()};
}

void Names::grow() {
  const std::size_t size = slots_.empty() ? 1024 : slots_.size() * 2;
  slots_.assign(size, 0);
  for (std::uint32_t number = 0; number < hashes_.size(); ++number) {
    std::size_t slot = hashes_[number] & (size - 1);
    while (slots_[slot] != 0) {
      slot = (slot + 1) & (size - 1);
    }
    slots_[slot] = number + 1;
  }
}

}  // namespace fusescope::timeline
