// PM sampling on real GPUs: whether the driver permits it, whether samples lie on the kernels' clock, whether
// the bytes of copies between two GPUs are the ones that are counted, and what a full buffer does.

#include <chrono>
#include <cstdio>
#include <thread>

#include "gpus.hpp"
#include "kernels/clock_ping.hpp"
#include "timeline/collect/pm_alignment.hpp"
#include "timeline/collect/pm_counters.hpp"

namespace fusescope::timeline {
namespace {

constexpr std::size_t kBytes = std::size_t{64} << 20;

// A timeline that is nothing but its wall.
Timeline wall(const ClockSpan& span) {
  Timeline timeline;
  timeline.wiring.ranks = 1;
  timeline.end_ns = static_cast<std::int64_t>(span.end_ns - span.begin_ns);
  return timeline;
}

// From one GPU's memory to the other's, and when that was on the sender's clock.
ClockSpan copy(int from, const void* source, int to, void* target) {
  const kernels::OnDevice on(from);
  ClockSpan span;
  span.begin_ns = kernels::stamp_clock(from, 1).front();
  FUSESCOPE_CUDA(cudaMemcpyPeerAsync(target, to, source, from, kBytes, nullptr));
  FUSESCOPE_CUDA(cudaDeviceSynchronize());
  span.end_ns = kernels::stamp_clock(from, 1).front();
  return span;
}

TEST(PmSamplingProbe, CopiesOverTheLinksAreCountedSessionAfterSession) {
  FUSESCOPE_NEED_GPUS(2);
  enable_peer_access(0, 1);
  std::vector<std::unique_ptr<PmSampling>> samplers;
  std::vector<kernels::DeviceBlock> memory;
  for (const int gpu : {0, 1}) {
    std::string why_not;
    samplers.push_back(PmSampling::make(gpu, why_not));
    if (samplers.back() == nullptr) {
      GTEST_SKIP() << why_not;
    }
    const kernels::OnDevice on(gpu);
    memory.push_back(kernels::allocate_device(kBytes));
  }
  const auto mark = [] {
    return std::vector{kernels::keep_busy(0, kMarkerNs), kernels::keep_busy(1, kMarkerNs)};
  };
  for (int session = 0; session < 3; ++session) {
    for (const auto& sampler : samplers) {
      sampler->start();
    }
    const std::vector<ClockSpan> first = mark();
    const std::vector<ClockSpan> copies = {copy(0, memory[0].get(), 1, memory[1].get()),
                                           copy(1, memory[1].get(), 0, memory[0].get())};
    const std::vector<ClockSpan> last = mark();
    for (const auto& sampler : samplers) {
      sampler->stop();
    }
    for (const std::size_t gpu : {0, 1}) {
      PmSamples samples = samplers[gpu]->read();
      ASSERT_FALSE(samples.overflow);
      ASSERT_EQ(align_samples(samples, first[gpu], last[gpu]), "");
      const ClockSpan& span = copies[gpu];
      const LinkBytes bytes =
          link_bytes(samples, ClockLine(), static_cast<std::int64_t>(span.begin_ns), wall(span));
      std::printf(
          "session %d, GPU %zu: %zu samples, moved by %+.1f us, known to +-%.2f us; of %.4g bytes "
          "%.4g payload, %.4g sent, %.4g received\n",
          session, gpu, samples.samples.size(), samples.shift_ns / 1e3, samples.bound_ns / 1e3,
          static_cast<double>(kBytes), bytes.written, bytes.sent, bytes.received);
      EXPECT_NEAR(bytes.written / static_cast<double>(kBytes), 1, 0.1);
    }
  }
}

TEST(PmSamplingProbe, AFullBufferIsSaidAndTheNextSessionGoesOn) {
  FUSESCOPE_NEED_GPUS(1);
  PmSamplingOptions small_buffer;  // some 5 ms
  small_buffer.interval_ns = 10'000;
  small_buffer.hardware_bytes = std::size_t{4} << 20;
  PmSamplingOptions small_image;
  small_image.interval_ns = 10'000;
  small_image.most_samples = 400;
  for (const PmSamplingOptions& options : {small_buffer, small_image}) {
    std::string why_not;
    const auto sampling = PmSampling::make(0, why_not, options);
    if (sampling == nullptr) {
      GTEST_SKIP() << why_not;
    }
    sampling->start();
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    sampling->stop();
    EXPECT_TRUE(sampling->read().overflow);

    sampling->start();
    sampling->stop();
    const PmSamples after = sampling->read();
    EXPECT_FALSE(after.overflow);
    EXPECT_FALSE(after.samples.empty());
  }
}

}  // namespace
}  // namespace fusescope::timeline
