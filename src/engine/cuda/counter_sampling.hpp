#pragma once
// The hardware counters of all devices in use, sampled beside what runs on them: one session after another,
// each between two markers that put its samples on the kernels' clock (timeline/collect/pm_alignment.hpp).

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/devices.hpp"
#include "kernels/cuda_check.hpp"
#include "timeline/collect/clock_pings.hpp"
#include "timeline/collect/pm_counters.hpp"
#include "timeline/collect/pm_sampling.hpp"

namespace fusescope::engine::cuda {

// One session of one device.
struct DeviceCounters {
  timeline::PmSamples samples;
  // What they count of a copy of known size from this device to the next, by its copy engine, relative to
  // that size: the payload written should be 1. It has been 16/18 for all sessions of a process, as if two
  // of the device's 18 links had no counter. All 0 where there is no next device.
  timeline::LinkBytes of_copy;
};

class CounterSampling {
 public:
  // Null, and the reason in `why_not`, where a device has no counters for us. The devices must be able to
  // map each other's memory.
  static std::unique_ptr<CounterSampling> make(const std::vector<Device>& devices,
                                               std::string& why_not);

  // The devices must be idle at both. Throw CheckFailure where CUPTI refuses, a buffer was full, or the
  // samples do not show the markers.
  void begin();
  std::vector<DeviceCounters> end();  // by device, as given

 private:
  explicit CounterSampling(std::vector<Device> devices) : devices_(std::move(devices)) {}
  std::vector<timeline::ClockSpan> mark() const;
  std::vector<timeline::ClockSpan> copy() const;

  std::vector<Device> devices_;
  std::vector<std::unique_ptr<timeline::PmSampling>> samplers_;
  std::vector<kernels::DeviceBlock> buffers_;  // of the copies; none where there is one device
  std::vector<timeline::ClockSpan> begin_;
  std::vector<timeline::ClockSpan> copies_;
};

}  // namespace fusescope::engine::cuda
