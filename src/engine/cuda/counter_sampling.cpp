#include "engine/cuda/counter_sampling.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstddef>

#include "base/error.hpp"
#include "kernels/clock_ping.hpp"
#include "timeline/collect/pm_alignment.hpp"

namespace fusescope::engine::cuda {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{16} << 20;

// Samplers are started and stopped one after the other: a session lasts the longer, the more there are.
timeline::PmSamplingOptions options_for(std::size_t devices) {
  constexpr std::size_t kBytesPerSample = 12'000;  // 9 KB were seen
  timeline::PmSamplingOptions options;
  options.most_samples = 4'000 + 2'000 * static_cast<std::uint32_t>(devices);
  options.hardware_bytes = options.most_samples * kBytesPerSample;
  return options;
}

timeline::LinkBytes relative_to(double bytes, timeline::LinkBytes counted) {
  for (double* value : {&counted.sent, &counted.received, &counted.written, &counted.served,
                        &counted.written_here, &counted.read}) {
    *value /= bytes;
  }
  return counted;
}

}  // namespace

std::unique_ptr<CounterSampling> CounterSampling::make(const std::vector<Device>& devices,
                                                       std::string& why_not) {
  std::unique_ptr<CounterSampling> all(new CounterSampling(devices));
  for (const Device& device : devices) {
    all->samplers_.push_back(
        timeline::PmSampling::make(device.index, why_not, options_for(devices.size())));
    if (all->samplers_.back() == nullptr) {
      return nullptr;
    }
    if (devices.size() > 1) {
      const kernels::OnDevice on(device.index);
      all->buffers_.push_back(kernels::allocate_device(kCopyBytes));
    }
  }
  all->copy();  // the first takes longer than a session may
  return all;
}

std::vector<timeline::ClockSpan> CounterSampling::mark() const {
  std::vector<timeline::ClockSpan> spans;
  for (const Device& device : devices_) {
    spans.push_back(kernels::keep_busy(device.index, timeline::kMarkerNs));
  }
  return spans;
}

// From each device to the next, and when on the sender's clock.
std::vector<timeline::ClockSpan> CounterSampling::copy() const {
  std::vector<timeline::ClockSpan> spans;
  for (std::size_t from = 0; from < buffers_.size(); ++from) {
    const std::size_t to = (from + 1) % buffers_.size();
    const int sender = devices_[from].index;
    const kernels::OnDevice on(sender);
    timeline::ClockSpan span;
    span.begin_ns = kernels::stamp_clock(sender, 1).front();
    FUSESCOPE_CUDA(cudaMemcpyPeerAsync(buffers_[to].get(), devices_[to].index, buffers_[from].get(),
                                       sender, kCopyBytes, nullptr));
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
    span.end_ns = kernels::stamp_clock(sender, 1).front();
    spans.push_back(span);
  }
  return spans;
}

void CounterSampling::begin() {
  for (const auto& sampler : samplers_) {
    sampler->start();
  }
  begin_ = mark();
  copies_ = copy();
}

std::vector<DeviceCounters> CounterSampling::end() {
  const std::vector<timeline::ClockSpan> end = mark();
  for (const auto& sampler : samplers_) {
    sampler->stop();
  }
  std::vector<DeviceCounters> all;
  for (const auto& sampler : samplers_) {
    all.push_back({sampler->read(), {}});
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    timeline::PmSamples& samples = all[i].samples;
    if (samples.overflow) {
      throw CheckFailure(
          fmt::format("the sample buffer of GPU {} was full before what was sampled had ended",
                      devices_[i].index));
    }
    if (const std::string why = align_samples(samples, begin_[i], end[i]); !why.empty()) {
      throw CheckFailure(why);
    }
    if (!copies_.empty()) {
      all[i].of_copy =
          relative_to(static_cast<double>(kCopyBytes), link_bytes(samples, copies_[i]));
    }
  }
  return all;
}

}  // namespace fusescope::engine::cuda
