#pragma once
// Records iterations of what a runner is configured for, and makes a timeline of one of them: clocks
// aligned, records decoded, what recording costs measured.

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "engine/cuda/layer_runner.hpp"
#include "engine/engine.hpp"
#include "timeline/collect/pm_counters.hpp"
#include "timeline/records/decode_records.hpp"

namespace fusescope::engine::cuda {

struct RecorderOptions {
  IterationChoice choice;
  int iterations = kRecordedIterations;
  int most_per_writer = 0;  // records; 0 = as many as an iteration needs
  bool counters = false;    // sample the GPUs' own counters beside the iterations that are recorded
  std::chrono::milliseconds rest{};  // of the GPUs, see take_turns()
};

// What a device moved over its links during the wall, by its own counters, and what these see of a copy of
// known size (DeviceCounters::of_copy).
struct DeviceLinkBytes {
  int device = 0;
  timeline::LinkBytes bytes;
  timeline::LinkBytes of_copy;
};

struct RecordedTimeline {
  timeline::Timeline timeline;
  timeline::DecodeReport report;
  std::size_t buffer_bytes = 0;             // of one iteration, all ranks
  std::vector<DeviceLinkBytes> link_bytes;  // where counters were sampled
  std::string why_no_counters;              // where they were asked for and cannot be
};

// Why iterations of this config are not recorded, in words; "" = they are.
std::string why_not_recorded(const Config& config);

// `config`: what `runner` is configured for. Fills all of the timeline's meta but `command`; whether the
// timeline is sound is timeline::check()'s question. Throws InputError when the iteration that is chosen
// by number is not among those recorded, CheckFailure when clocks cannot be aligned, and what the runner
// throws.
RecordedTimeline record_timeline(LayerRunner& runner, const Problem& problem, const Config& config,
                                 const RecorderOptions& options);

}  // namespace fusescope::engine::cuda
