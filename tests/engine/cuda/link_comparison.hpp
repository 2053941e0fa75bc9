#pragma once
// Bytes over the links as the GPUs' own counters have them, against those that the schedule says must move,
// and beside them a plain copy of known size in the same session of samples.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/cuda/recorder.hpp"
#include "layer/config.hpp"
#include "layer/shape.hpp"

namespace fusescope::engine::cuda {

// One entry per GPU: payload scheduled and counted by what carried it, all bytes of the wire, and how much of
// what the counters say was pulled from others lies where the blocks recorded their pulls from others, give
// or take a sample: whether samples and records are on one clock. Empty where ranks share a GPU: what they
// move between them is on no link.
nlohmann::json compare_links(const RecordedTimeline& recorded, const Shape& shape,
                             const Config& config, std::size_t devices);
// Every way of every GPU within 10%, by what the counters see of the plain copy; and 99% of the pulls at their
// time.
bool links_agree(const nlohmann::json& links);
std::string describe_link(const nlohmann::json& link);

}  // namespace fusescope::engine::cuda
