#include "engine/cuda/counter_sampling.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "base/error.hpp"
#include "kernels/clock_ping.hpp"
#include "timeline/collect/pm_alignment.hpp"

namespace fusescope::engine::cuda {

std::unique_ptr<CounterSampling> CounterSampling::make(const std::vector<Device>& devices,
                                                       std::string& why_not) {
  std::unique_ptr<CounterSampling> all(new CounterSampling(devices));
  for (const Device& device : devices) {
    all->samplers_.push_back(timeline::PmSampling::make(device.index, why_not));
    if (all->samplers_.back() == nullptr) {
      return nullptr;
    }
  }
  return all;
}

std::vector<timeline::ClockSpan> CounterSampling::mark() const {
  std::vector<timeline::ClockSpan> spans;
  for (const Device& device : devices_) {
    spans.push_back(kernels::keep_busy(device.index, timeline::kMarkerNs));
  }
  return spans;
}

void CounterSampling::begin() {
  for (const auto& sampler : samplers_) {
    sampler->start();
  }
  begin_ = mark();
}

std::vector<timeline::PmSamples> CounterSampling::end() {
  const std::vector<timeline::ClockSpan> end = mark();
  for (const auto& sampler : samplers_) {
    sampler->stop();
  }
  std::vector<timeline::PmSamples> all;
  for (const auto& sampler : samplers_) {
    all.push_back(sampler->read());
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].overflow) {
      throw CheckFailure(
          fmt::format("the sample buffer of GPU {} was full before what was sampled had ended",
                      devices_[i].index));
    }
    if (const std::string why = align_samples(all[i], begin_[i], end[i]); !why.empty()) {
      throw CheckFailure(why);
    }
  }
  return all;
}

}  // namespace fusescope::engine::cuda
