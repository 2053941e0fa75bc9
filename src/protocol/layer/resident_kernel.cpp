#include "protocol/layer/resident_kernel.hpp"

namespace fusescope::protocol {
namespace {

// EndsLast, and what the SM does for a block.
Task watch_block(Thread& t, Layer& layer, LaunchId block, LaunchId before) {
  co_await t.see_end_of(block);
  if (before >= 0) {
    co_await t.see_end_of(before);
  }
  layer.machine.give_sms(t.device(), 1);
}

}  // namespace

ResidentKernel::ResidentKernel(Layer& layer, Thread& stream, int rank, const char* name)
    : layer_(layer),
      stream_(stream),
      rank_(rank),
      name_(name),
      launch_(layer.machine.begin_launch()) {}

TakeSms ResidentKernel::take_sms(int blocks) {
  sms_ = layer_.overlaps() ? 0 : blocks;
  return stream_.take_sms(blocks);
}

TakeSms ResidentKernel::follow(LaunchId before) {
  early_ = true;
  before_ = before;
  return stream_.take_sms(1);
}

const BlockPlaces& ResidentKernel::begin_block(int block) {
  if (layer_.overlaps()) {
    blocks_.push_back(layer_.machine.begin_launch());
  }
  // The kernel before may still be using its own.
  return layer_.fresh_block(rank_, early_ ? layer_.s.sms + block : block);
}

Thread& ResidentKernel::thread(Role role, int block, int index, bool stores) {
  Machine& machine = layer_.machine;
  const LaunchId launch = blocks_.empty() ? launch_ : blocks_.back();
  const Label label{role, name_, static_cast<std::int16_t>(rank_), static_cast<std::int16_t>(block),
                    static_cast<std::int16_t>(index)};
  const bool knows_nothing = early_ || (layer_.overlaps() && layer_.has(Bug::prologue_unwatched));
  return knows_nothing ? machine.add_early_thread(stream_, launch, label, stores)
                       : machine.add_thread(stream_, launch, label, stores);
}

void ResidentKernel::end_block() {
  if (blocks_.empty()) {
    return;
  }
  const int block = static_cast<int>(blocks_.size()) - 1;
  Thread& t =
      layer_.machine.add_early_thread(stream_, launch_,
                                      {Role::barrier, name_, static_cast<std::int16_t>(rank_),
                                       static_cast<std::int16_t>(block), -1},
                                      false);
  layer_.machine.start(t, watch_block(t, layer_, blocks_.back(), before_));
}

void ResidentKernel::give_back() {
  Machine& machine = layer_.machine;
  const int device = layer_.s.device_of(rank_);
  for (const LaunchId block : blocks_) {
    machine.give_back(block, device);
  }
  machine.give_back(launch_, device);
  if (sms_ > 0) {
    machine.give_sms(device, sms_);
  }
}

}  // namespace fusescope::protocol
