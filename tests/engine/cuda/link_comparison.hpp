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

// One entry per GPU: payload scheduled and counted by what carried it, and all bytes of the wire. Empty where
// ranks share a GPU: what they move between them is on no link.
nlohmann::json compare_links(const RecordedTimeline& recorded, const Shape& shape,
                             std::size_t devices);
// Within 10%, every way of every GPU.
bool links_agree(const nlohmann::json& links);
std::string describe_link(const nlohmann::json& link);

// From each device to the next by its copy engine, within one session of samples: what the wire carries
// beside the payload. Entries {"from", "to", "bytes", "payload", "wire", "back"}, or {"why_not"}.
nlohmann::json count_plain_copies(const std::vector<Device>& devices);
std::string describe_plain_copy(const nlohmann::json& copy);

}  // namespace fusescope::engine::cuda
