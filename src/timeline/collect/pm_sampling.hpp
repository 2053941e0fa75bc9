#pragma once
// PM sampling through CUPTI: hardware counters of a whole GPU at a fixed interval, in one pass, beside
// whatever runs.
//
// Not everybody may: the driver restricts performance counters to administrators unless told otherwise
// (NVreg_RestrictProfilingToAdminUsers), and some machines keep them to themselves. Then there is a note
// instead of samples.
//
// What was seen of CUPTI 13.0 on two H200s, and is built on here:
// - The hardware writes about 9 KB per sample and GPU. A full buffer gives nothing, not even its begin, and
//   the sampler cannot be started again: it is made anew.
// - The image that samples are decoded into takes 31 KB per sample, and its clearing 10 us: longer than the
//   sample itself. It is cleared ahead, so that the GPU whose sampler starts first does not sample through
//   the other GPUs' clearing. With that a start takes 0.5 ms, a stop 1.7 ms.
// - What does not fit into the image is lost at the next decoding: it must hold a whole session.
// - The first sample of a session begins where the last session ended.
// - Samples carry times of a clock of their own, which falls behind %globaltimer by 3 to 17 ppm of the time
//   since the machine's start: by 0.06 to 1 ms within the first minutes. pm_alignment.hpp puts them right.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fusescope::timeline {

// One quantity, as CUPTI names it and as a timeline shows it.
struct PmMetric {
  const char* metric;  // "nvltx__bytes.sum"
  const char* name;    // "NVLink sent"
  const char* unit;    // of the value shown: "GB/s", "%"
  bool per_time;       // the metric is an amount: shown over the sample's length [amount/ns]
};

// What one pass takes together on a Hopper GPU. NVLink bytes are told apart: all that went over the links,
// and the payload by what carried it.
const std::vector<PmMetric>& pm_metrics();
// Where pm_metrics() has it; what is not among them is a std::invalid_argument.
std::size_t pm_metric(std::string_view metric);
inline constexpr const char* kSmsActive = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed";

struct PmSample {
  std::uint64_t begin_ns = 0;  // the GPU's timer
  std::uint64_t end_ns = 0;
  std::vector<double> values;  // by pm_metrics(), as the metric gives them
};

// Of one session.
struct PmSamples {
  int device = 0;
  std::vector<PmSample> samples;  // by time, one after the other
  bool overflow = false;          // a buffer was full: samples are missing
  double shift_ns = 0;            // how far pm_alignment.hpp moved them
  double bound_ns = 0;            // to what they are then known; 0 = not aligned
};

struct PmSamplingOptions {
  std::uint64_t interval_ns = 5'000;
  std::uint32_t most_samples = 6'000;  // of a session: with this interval, 30 ms
  std::size_t hardware_bytes = std::size_t{64} << 20;
};

// On one device, from its making to its end. CUPTI allows one per device.
class PmSampling {
 public:
  // Null, and the reason in `why_not`, where it cannot be: no CUPTI, not permitted, another tool.
  static std::unique_ptr<PmSampling> make(int device, std::string& why_not,
                                          const PmSamplingOptions& options = {});
  ~PmSampling();
  PmSampling(const PmSampling&) = delete;
  PmSampling& operator=(const PmSampling&) = delete;

  // A session: start, what is to be sampled, stop, read. Where several devices are sampled, all are stopped
  // before one is read, because reading is slow and the others would go on. Throw CheckFailure with
  // CUPTI's answer when it refuses.
  void start();
  void stop();
  PmSamples read();

 private:
  struct State;
  explicit PmSampling(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fusescope::timeline
