#pragma once
// The hardware counters of all devices in use, sampled beside what runs on them: one session after another,
// each between two markers that put its samples on the kernels' clock (timeline/collect/pm_alignment.hpp).

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/devices.hpp"
#include "timeline/collect/clock_pings.hpp"
#include "timeline/collect/pm_sampling.hpp"

namespace fusescope::engine::cuda {

class CounterSampling {
 public:
  // Null, and the reason in `why_not`, where a device has no counters for us.
  static std::unique_ptr<CounterSampling> make(const std::vector<Device>& devices,
                                               std::string& why_not);

  // The devices must be idle at both. Throw CheckFailure where CUPTI refuses, a buffer was full, or the
  // samples do not show the markers.
  void begin();
  std::vector<timeline::PmSamples> end();  // by device, as given

 private:
  explicit CounterSampling(std::vector<Device> devices) : devices_(std::move(devices)) {}
  std::vector<timeline::ClockSpan> mark() const;

  std::vector<Device> devices_;
  std::vector<std::unique_ptr<timeline::PmSampling>> samplers_;
  std::vector<timeline::ClockSpan> begin_;
};

}  // namespace fusescope::engine::cuda
