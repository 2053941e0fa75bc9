#pragma once
// PM sampling through CUPTI: hardware counters of a whole GPU at a fixed interval, in one pass, beside
// whatever runs. Samples carry times of the GPU's own timer, the one that %globaltimer shows.
//
// Not everybody may: the driver restricts performance counters to administrators unless told otherwise
// (NVreg_RestrictProfilingToAdminUsers), and some machines keep them to themselves. Then there is a note
// instead of samples.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fusescope::timeline {

// One quantity, as CUPTI names it and as a timeline shows it.
struct PmMetric {
  const char* metric;  // "nvltx__bytes.sum"
  const char* name;    // "NVLink sent"
  const char* unit;    // of the value shown: "GB/s", "%"
  bool per_time;       // the metric is an amount: shown over the sample's length [amount/ns]
};

// What one pass takes together on a Hopper GPU: activity of the tensor pipes, NVLink both ways, DRAM.
const std::vector<PmMetric>& pm_metrics();

struct PmSample {
  std::uint64_t begin_ns = 0;  // the GPU's timer
  std::uint64_t end_ns = 0;
  std::vector<double> values;  // by pm_metrics(), as the metric gives them
};

struct PmSamples {
  int device = 0;
  std::vector<PmSample> samples;  // by time
  bool overflow = false;          // the hardware's buffer was full: the end is missing
};

// On one device, from its making to its end. CUPTI allows one per device.
class PmSampling {
 public:
  // Null, and the reason in `why_not`, where it cannot be: no CUPTI, not permitted, another tool.
  // `hardware_bytes`: of the buffer that the GPU writes samples to; 64 MiB were full before two GPUs had
  // run one iteration.
  static std::unique_ptr<PmSampling> make(int device, std::string& why_not,
                                          std::uint64_t interval_ns = 10'000,
                                          std::size_t hardware_bytes = std::size_t{512} << 20);
  ~PmSampling();
  PmSampling(const PmSampling&) = delete;
  PmSampling& operator=(const PmSampling&) = delete;

  // Around what is to be sampled. Throw CheckFailure with CUPTI's answer when it refuses.
  void start();
  PmSamples stop();

 private:
  struct State;
  explicit PmSampling(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fusescope::timeline
