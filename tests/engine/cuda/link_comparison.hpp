#pragma once
// Bytes over the links as the GPUs' own counters have them, against those that must move: of an iteration by
// its schedule, of a plain copy by its size.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/cuda/devices.hpp"
#include "engine/cuda/recorder.hpp"
#include "layer/shape.hpp"

namespace fusescope::engine::cuda {

// One entry per GPU: payload scheduled and counted by what carried it, all bytes of the wire, and how much of
// what the counters say was pulled from others lies where the blocks recorded their pulls from others, give
// or take a sample: whether samples and records are on one clock. Empty where ranks share a GPU: what they
// move between them is on no link.
nlohmann::json compare_links(const RecordedTimeline& recorded, const Shape& shape,
                             std::size_t devices);
// Within 10%, every way of every GPU, and 99% of the pulls at their time.
bool links_agree(const nlohmann::json& links);
std::string describe_link(const nlohmann::json& link);

// From each device to the next by its copy engine, within one session of samples: what the wire carries
// beside the payload. Entries {"from", "to", "bytes", "payload", "wire", "back"}, or {"why_not"}.
nlohmann::json count_plain_copies(const std::vector<Device>& devices);
std::string describe_plain_copy(const nlohmann::json& copy);

}  // namespace fusescope::engine::cuda
