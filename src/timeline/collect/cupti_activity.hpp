#pragma once
// CUPTI's activity records: kernels (those of graphs with their node), copies and memsets on the GPUs,
// NVTX ranges on the host.
//
// The clock. CUPTI converts what GPUs record to the host's CLOCK_REALTIME by an interpolation of its own.
// It is left as it is: another timestamp callback would only replace the host's end of that interpolation.
// Between CUPTI's clock and a device's %globaltimer stands a measurement instead: a kernel of one thread
// that writes %globaltimer down did so between the begin and the end that CUPTI reports for it. That is a
// ping (clock_alignment.hpp), with CUPTI's clock as one more "device", and its bound holds as for the
// others. stamp_pings() makes the pings.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "timeline/collect/clock_pings.hpp"

namespace fusescope::timeline {

struct ActivitySlice {
  enum class What : std::uint8_t { kernel, copy, memset };
  What what = What::kernel;
  std::uint64_t begin_ns = 0;  // CUPTI's clock
  std::uint64_t end_ns = 0;
  int device = 0;  // as CUDA counts
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;
  std::uint32_t graph = 0;       // 0: not part of a graph
  std::uint64_t graph_node = 0;  // as cuptiGetGraphNodeId names it
  std::string name;              // demangled; of copies "Memcpy PtoP", ...
  std::int64_t bytes = 0;        // of copies and memsets
  int peer_device = -1;          // of copies between devices: where to
  std::uint32_t grid[3] = {};
  std::uint32_t block[3] = {};
  std::uint32_t registers = 0;     // per thread
  std::uint32_t shared_bytes = 0;  // dynamic
};

struct ActivityRange {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::string name;
  std::string domain;
  std::uint32_t process = 0;
  std::uint32_t thread = 0;
};

struct Activity {
  std::vector<ActivitySlice> slices;  // by begin
  std::vector<ActivityRange> ranges;  // by begin
  std::uint64_t dropped = 0;          // records that CUPTI had no buffer for
  std::uint64_t untimed = 0;          // kernels without a time, and ranges without an end
};

// One at a time: CUPTI has one subscriber per process.
class CuptiActivity {
 public:
  // Null, and the reason in `why_not`, where CUPTI is missing or held: "CUPTI is held by Nsight Systems".
  // The run goes on without. NVTX ranges are seen if no NVTX call came before this one.
  // `devices`: those that run anything, as CUDA counts.
  static std::unique_ptr<CuptiActivity> start(std::vector<int> devices, std::string& why_not);
  ~CuptiActivity();
  CuptiActivity(const CuptiActivity&) = delete;
  CuptiActivity& operator=(const CuptiActivity&) = delete;

  // What was recorded since the start or the last call. Waits until the devices are idle: records of
  // kernels that still run would come without their times.
  Activity collect();

 private:
  explicit CuptiActivity(std::vector<int> devices) : devices_(std::move(devices)) {}
  std::vector<int> devices_;
};

// The name of the kernel that writes %globaltimer down contains this.
inline constexpr std::string_view kClockStampKernel = "clock_stamp_kernel";

// Pings between CUPTI's clock (local) and a device's (remote): the device's stamp kernels, in order, and
// what each wrote down.
std::vector<ClockPing> stamp_pings(const Activity& activity, int device,
                                   const std::vector<std::uint64_t>& stamps);

}  // namespace fusescope::timeline
