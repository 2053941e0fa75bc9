#pragma once
// Where the time of a foreign trace went, per device of each rank: an exact partition of the span into
// computation, exposed communication, exposed copies and idle, and what stands behind each part.
//
// All times are ns. The partition takes every moment once, by the first of these that runs: compute,
// fused, communication, unclear, memory, sync, nothing (idle). So
//   span = compute + fused + exposed communication + unclear + exposed memory + sync + idle,
// where fused, unclear and sync are 0 in most traces (and sync under rules that call it idle).

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/trace/rules.hpp"
#include "timeline/import/trace.hpp"

namespace fusescope::analysis {

// Time beside one kind of kernel.
struct Beside {
  std::string name;
  std::int64_t ns = 0;
};

// All launches of one kernel on one device.
struct KernelRow {
  std::string name;
  std::int64_t count = 0;
  std::int64_t total_ns = 0;    // sum of durations
  std::int64_t exposed_ns = 0;  // credited to the first-begun where several run: rows add up
  std::vector<Beside> beside;   // what computed meanwhile, longest first
};

struct StreamRow {
  std::int64_t stream = 0;
  std::int64_t slices = 0;
  std::int64_t busy_ns = 0;  // union of its slices
  std::int64_t communication_ns = 0;
  std::int64_t exposed_ns = 0;
  std::int64_t overlapping = 0;  // slices that begin before one before them on the stream ends
};

// What was launched inside ranges of one name, or inside one profiler step.
struct RangeRow {
  std::string name;
  std::int64_t ranges = 0;
  std::int64_t slices = 0;
  std::int64_t compute_ns = 0;  // sums of durations
  std::int64_t communication_ns = 0;
  std::int64_t exposed_ns = 0;
};

struct Idle {
  std::int64_t total_ns = 0;
  std::int64_t launch_ns = 0;  // until the call that launched the next slice returned
  std::int64_t dependency_ns =
      0;                        // launched already: waiting for another stream, or launch latency
  std::int64_t unknown_ns = 0;  // the trace has no call for the next slice
};

// One device of one process: normally a rank.
struct DeviceAttribution {
  std::string file;
  std::size_t trace = 0;  // index into what attribute_traces() was given
  int rank = -1;          // -1: the file does not say
  std::int64_t process = 0;
  std::int64_t device = 0;
  bool in_kernel_records = false;

  std::int64_t slices = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t span_ns() const { return end_ns - begin_ns; }
  std::array<std::int64_t, kWorkClasses> part_ns{};   // the partition
  std::array<std::int64_t, kWorkClasses> union_ns{};  // each class by itself
  std::int64_t overlap_ns = 0;                        // communication while compute runs
  Idle idle;

  std::int64_t part(WorkClass work) const { return part_ns[static_cast<std::size_t>(work)]; }
  std::int64_t all(WorkClass work) const { return union_ns[static_cast<std::size_t>(work)]; }
  std::int64_t exposed_ns() const { return part(WorkClass::communication); }
  double overlap_share() const;  // of all communication; 0 without communication

  std::vector<KernelRow> communication;  // by exposed time
  std::vector<KernelRow> fused;
  std::vector<KernelRow> unclear;
  std::vector<StreamRow> streams;
  std::vector<RangeRow> ranges;  // by exposed time
  std::vector<RangeRow> steps;   // in order of time
};

// One communication kernel on several devices: the k-th launches belong together.
struct SkewRow {
  std::string name;
  std::int64_t launches = 0;       // matched on every device
  std::int64_t apart = 0;          // of them, launches whose ends and begins do not overlap at all
  std::int64_t total_skew_ns = 0;  // sum over the launches: last arrival - first arrival
  std::int64_t most_skew_ns = 0;
  std::vector<std::int64_t> wait_ns;      // per device: from its arrival to the last one's
  std::vector<std::int64_t> transfer_ns;  // per device: from the last arrival to its end
  std::vector<std::int64_t> last;         // per device: how often it was the last
};

struct TraceAttribution {
  std::string rules;
  std::vector<DeviceAttribution> devices;
  std::vector<SkewRow> skew;  // empty with one device
  std::vector<std::string> notes;
};

TraceAttribution attribute_traces(std::span<const timeline::Trace> traces, const Rules& rules);

// "" or how the parts of a device fail to add up. It is "" for any input; tests and the CLI ask.
std::string check_closing(const DeviceAttribution& device);

// "rank 3", "device 1", "rank 0 device 1".
std::string label(const DeviceAttribution& device);

// The whole attribution; times in ns. `rows` bounds each list.
std::string to_json(const TraceAttribution& attribution, std::span<const timeline::Trace> traces,
                    std::size_t rows);

}  // namespace fusescope::analysis
