#pragma once
// Exchanges between the clocks (%globaltimer) of two devices, and the step by which a clock advances.
// What the samples mean, and what is made of them: timeline/collect/clock_alignment.hpp.

#include <cstdint>
#include <vector>

#include "timeline/collect/clock_pings.hpp"

namespace fusescope::kernels {

// `local` sends `pings` requests to `remote`, one after the other; each answer is the remote clock.
// Both devices must be idle and able to map each other's memory (peer access enabled both ways). The
// first pings of a batch are slow: the clocks and the link wake up. Blocks. Throws CudaError, or
// std::runtime_error when an answer does not come within a tenth of a second.
std::vector<timeline::ClockPing> ping_clocks(int local, int remote, int pings = 200);

// The smallest step that the device's clock is seen to make. [ns] Blocks.
std::uint64_t measure_timer_step(int device);

// What the clock shows in the middle of `stamps` kernels of one thread each (clock_stamp_kernel), which run
// one after the other: another tool's times of the same kernels then lie around them. Blocks.
std::vector<std::uint64_t> stamp_clock(int device, int stamps = 100);

// Keeps all SMs of the device busy for `length_ns`, and says from when to when: from the first block's first
// look at the clock to the last block's last. The device must be idle, and is again. Blocks.
timeline::ClockSpan keep_busy(int device, std::uint64_t length_ns);

}  // namespace fusescope::kernels
