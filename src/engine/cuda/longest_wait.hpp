#pragma once
// How long a config keeps waits on the device waiting by its own doing: injected delays, and an emulated
// link. What would come near the deadline is refused, or a slow run would be taken for a hung one.

#include <cstdint>
#include <string>

#include "layer/config.hpp"
#include "layer/problem.hpp"
#include "layer/shape.hpp"

namespace fusescope::engine::cuda {

// The most that the config itself adds to any single wait. [ns] A wait is for the last of many
// operations; counted are those that follow one another in one thread, each with its delay, and the
// emulated link's time for all rows of a kernel.
double longest_wait_ns(const Shape& shape, const Config& config, const DeviceLimits& device);

// "", or why a wait could pass the deadline: half of it is for the layer itself.
std::string why_past_deadline(const Shape& shape, const Config& config, const DeviceLimits& device,
                              std::uint64_t deadline_ns);

}  // namespace fusescope::engine::cuda
