#pragma once
// Device side of the in-kernel records (timeline/records/record.hpp): what one thread needs to write
// down what it does, and the stamps of a kernel's begin and end.
//
//   RecordWriter writer(buffers, Family::dispatch_slots, block, slot);
//   writer.record(Point::pull_issued, token);
//
// A kernel that records takes these through a template parameter (recording.cuh), with an empty form
// for one that does not: off is no code.

#include "kernels/bounded_wait.cuh"
#include "timeline/records/record.hpp"

namespace fusescope::kernels {

// Three registers: where its piece of the buffer is follows from kernel parameters.
class RecordWriter {
 public:
  // `buffers` is part of the kernel's parameters. `block` and `writer` count within the family. A
  // family that is not laid out records nothing.
  __device__ RecordWriter(const timeline::RecordBuffers& buffers, timeline::Family family,
                          int block, int writer)
      : buffers_(buffers) {
    const timeline::FamilyLayout& at = buffers.families[static_cast<int>(family)];
    if (buffers.records == nullptr || static_cast<std::uint32_t>(block) >= at.blocks ||
        static_cast<std::uint32_t>(writer) >= at.writers_per_block)
      return;
    const std::uint32_t number = static_cast<std::uint32_t>(block) * at.writers_per_block +
                                 static_cast<std::uint32_t>(writer);
    next_ = static_cast<std::uint32_t>(at.first_record) + number * at.capacity;
    end_ = next_ + at.capacity;
    writer_ = at.first_writer + number;
  }

  __device__ void record(timeline::Point point, int a = -1, int b = 0) {
    if (next_ == end_) {
      if (writer_ != kNone)
        buffers_.dropped[writer_] += 1;  // rare, and nobody else's
      return;
    }
    const std::uint64_t ns = now_ns();
    uint4 words;  // one 16-byte store
    words.x = static_cast<std::uint32_t>(ns);
    words.y = static_cast<std::uint32_t>(ns >> 32);
    words.z = static_cast<std::uint32_t>(a);
    words.w = (static_cast<std::uint32_t>(b) & 0xffff) | static_cast<std::uint32_t>(point) << 16;
    reinterpret_cast<uint4*>(buffers_.records)[next_] = words;
    ++next_;
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  const timeline::RecordBuffers& buffers_;
  std::uint32_t next_ = 0;  // record that is written next; a layout has less than 2^32
  std::uint32_t end_ = 0;
  std::uint32_t writer_ = kNone;
};

// By one thread of each block: the phase's begin and end over all blocks.
__device__ inline void stamp_begin(const timeline::RecordBuffers& buffers, timeline::Phase phase) {
  if (buffers.phases != nullptr) {
    GpuAtomic<std::uint64_t>(buffers.phases[static_cast<int>(phase)].begin_ns)
        .fetch_min(now_ns(), cuda::memory_order_relaxed);
  }
}
__device__ inline void stamp_end(const timeline::RecordBuffers& buffers, timeline::Phase phase) {
  if (buffers.phases != nullptr) {
    GpuAtomic<std::uint64_t>(buffers.phases[static_cast<int>(phase)].end_ns)
        .fetch_max(now_ns(), cuda::memory_order_relaxed);
  }
}

}  // namespace fusescope::kernels
