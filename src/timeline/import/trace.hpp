#pragma once
// A trace that another tool recorded (PyTorch profiler, Nsight Systems): what ran on which stream of
// which device, the calls that launched it, and the ranges around those calls. Readers fill it
// (kineto.hpp, nsys.hpp); analysis/trace and the trace writers read it.
//
// Times are nanoseconds on the clock of the file; clocks of two files need not agree.

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/import/names.hpp"

namespace fusescope::timeline {

enum class GpuKind : std::uint8_t {
  kernel,
  memcpy,
  memset,
  sync,    // a stream that waits for an event: no work
  record,  // in-kernel record of a fusescope timeline; its category stands in Trace::gpu_categories
};

enum class HostKind : std::uint8_t {
  call,   // CUDA or HIP runtime or driver call
  range,  // NVTX range, user annotation or profiler step
  op,     // framework operator, interpreted function: for viewers
};

inline constexpr std::int64_t kNoCorrelation = -1;

// Times beyond these are damage, and are lost; within them differences fit 64 bits, and so do sums.
inline constexpr std::int64_t kLatestNs = 2'000'000'000'000'000'000;  // the year 2033
inline constexpr std::int64_t kLongestNs = 86'400'000'000'000;        // a day
inline bool is_plausible(std::int64_t begin_ns, std::int64_t end_ns) {
  return begin_ns >= -kLatestNs && end_ns <= kLatestNs && begin_ns <= end_ns &&
         end_ns - begin_ns <= kLongestNs;
}

// What a stream of a device did.
struct GpuSlice {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;  // >= begin_ns
  std::int64_t correlation = kNoCorrelation;
  std::int64_t bytes = -1;     // of copies; -1: not known
  std::uint32_t name = 0;      // in Trace::names
  std::uint32_t queue = 0;     // in Trace::queues
  std::uint32_t category = 0;  // in Trace::names; what the file called it
  GpuKind kind = GpuKind::kernel;
};

struct HostSlice {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t correlation = kNoCorrelation;
  std::uint32_t name = 0;
  std::uint32_t thread = 0;  // in Trace::threads
  HostKind kind = HostKind::call;
};

// A stream of a device as one process sees it.
struct Queue {
  std::int64_t process = 0;
  std::int64_t device = 0;
  std::int64_t stream = 0;
  bool operator==(const Queue&) const = default;
};

struct Thread {
  std::int64_t process = 0;
  std::int64_t thread = 0;
  std::string name;  // "" = not known
};

struct Trace {
  std::string file;
  std::string source;       // "PyTorch profiler", "Nsight Systems 2026.2.1", "fusescope"
  std::string name;         // what the file calls itself
  std::string device_name;  // "NVIDIA H200", or ""
  int rank = -1;            // of the file's process in its job; -1: not said
  int world_size = -1;
  std::int64_t unit_ns = 1;        // of the times in the file
  bool in_kernel_records = false;  // a fusescope timeline: kernels are opened up
  bool simulated = false;          // its records are a model's, not a machine's

  Names names;
  std::vector<Queue> queues;
  std::vector<Thread> threads;
  std::vector<GpuSlice> gpu;    // by begin, longer first
  std::vector<HostSlice> host;  // by begin, longer first

  std::uint64_t bytes = 0;  // of the uncompressed input
  // What was lost or odd, one sentence each: "the file ends at byte 123, inside an event".
  std::vector<std::string> notes;
};

// Sorts both lists as the fields above say.
void sort_slices(Trace& trace);

}  // namespace fusescope::timeline
