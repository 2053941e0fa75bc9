// PM sampling on real GPUs: whether the driver permits it, whether the samples' times are the GPU timer's,
// and whether the bytes of a copy between two GPUs are the ones that are counted.

#include <algorithm>
#include <cstdio>

#include "gpus.hpp"
#include "kernels/clock_ping.hpp"
#include "timeline/collect/pm_counters.hpp"

namespace fusescope::timeline {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 30;

void print(const PmSamples& samples) {
  std::printf("device %d: %zu samples%s\n%12s", samples.device, samples.samples.size(),
              samples.overflow ? " (the hardware buffer overflowed)" : "", "us");
  for (const PmMetric& metric : pm_metrics()) {
    std::printf("  %s", metric.name);
  }
  std::printf("\n");
  const std::size_t every = std::max<std::size_t>(1, samples.samples.size() / 20);
  for (std::size_t i = 0; i < samples.samples.size(); i += every) {
    const PmSample& sample = samples.samples[i];
    std::printf("%12.1f",
                static_cast<double>(sample.begin_ns - samples.samples.front().begin_ns) / 1e3);
    for (const double value : sample.values) {
      std::printf("  %14.3f", value);
    }
    std::printf("\n");
  }
}

// A timeline that is nothing but its wall, on the GPU's clock.
Timeline wall(std::uint64_t begin_ns, std::uint64_t end_ns) {
  Timeline timeline;
  timeline.wiring.ranks = 1;
  timeline.end_ns = static_cast<std::int64_t>(end_ns - begin_ns);
  return timeline;
}

TEST(PmSamplingProbe, ACopyOverTheLinksIsCounted) {
  FUSESCOPE_NEED_GPUS(2);
  enable_peer_access(0, 1);
  kernels::DeviceBlock there;
  {
    const kernels::OnDevice on(1);
    there = kernels::allocate_device(kBytes);
  }
  const kernels::OnDevice on(0);
  const kernels::DeviceBlock here = kernels::allocate_device(kBytes);
  std::string why_not;
  const auto sampling = PmSampling::make(0, why_not);
  if (sampling == nullptr) {
    GTEST_SKIP() << why_not;
  }
  sampling->start();
  const std::uint64_t begin = kernels::stamp_clock(0, 1).front();
  FUSESCOPE_CUDA(cudaMemcpy(there.get(), here.get(), kBytes, cudaMemcpyDefault));
  FUSESCOPE_CUDA(cudaDeviceSynchronize());
  const std::uint64_t end = kernels::stamp_clock(0, 1).front();
  const PmSamples samples = sampling->stop();
  print(samples);
  ASSERT_FALSE(samples.samples.empty());
  EXPECT_FALSE(samples.overflow);
  EXPECT_LE(samples.samples.front().begin_ns, begin) << "on the clock of %globaltimer";
  EXPECT_GE(samples.samples.back().end_ns, end) << "on the clock of %globaltimer";

  const Timeline timeline = wall(begin, end);
  const LinkBytes bytes =
      link_bytes(samples, ClockLine(), static_cast<std::int64_t>(begin), timeline);
  std::printf("copied %.4g bytes; counted %.4g sent, %.4g received\n", static_cast<double>(kBytes),
              bytes.sent, bytes.received);
  EXPECT_NEAR(bytes.sent / static_cast<double>(kBytes), 1, 0.1);
}

}  // namespace
}  // namespace fusescope::timeline
