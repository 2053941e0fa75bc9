#pragma once
// A kernel of one block per SM (kernels/resident_launch.hpp) on its way through a stream: in stream order
// all blocks begin together on free SMs, and the stream goes on when all have ended. Where kernels overlap,
// each block begins on an SM that the kernel before has left, knowing nothing, and keeps it until that
// kernel has ended (kernels/follow.cuh).

#include <vector>

#include "protocol/layer/layer.hpp"

namespace fusescope::protocol {

class ResidentKernel {
 public:
  ResidentKernel(Layer& layer, Thread& stream, int rank, const char* name);

  engine::sim::FramePool& frame_pool() const { return layer_.machine.frame_pool(); }

  // SMs for all blocks at once.
  TakeSms take_sms(int blocks);
  // Overlapping: one for the next block. `before`: the kernel that is to end before this one does; -1 = it has.
  TakeSms follow(LaunchId before);
  bool is_early() const { return early_; }  // begins before the one before it has ended

  // A block's threads are added between the two.
  const BlockPlaces& begin_block(int block);
  Thread& thread(Role role, int block, int index, bool stores);
  void end_block();

  // Its end, for other kernels and for the stream.
  LaunchId launch() const { return launch_; }
  // Behind it: others may use what it used.
  void give_back();

 private:
  Layer& layer_;
  Thread& stream_;
  int rank_;
  const char* name_;
  LaunchId launch_;  // of all blocks; where kernels overlap, of what watches them
  int sms_ = 0;      // held by the whole kernel
  bool early_ = false;
  LaunchId before_ = -1;
  std::vector<LaunchId> blocks_;  // where kernels overlap
};

}  // namespace fusescope::protocol
