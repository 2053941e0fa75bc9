// CUPTI's activity records on a real GPU: kernels, those of a graph with their nodes, copies, NVTX ranges,
// a second subscriber; and CUPTI's clock against %globaltimer.

#include <cmath>
#include <cstdio>

#include "gpus.hpp"
#include "kernels/clock_ping.hpp"
#include "timeline/collect/clock_alignment.hpp"
#include "timeline/collect/cupti_activity.hpp"
#include "timeline/collect/nvtx.hpp"

namespace fusescope::timeline {
namespace {

// Copies on a stream, captured and replayed.
void run_graph(void* to, const void* from, std::size_t bytes) {
  const kernels::Stream stream = kernels::make_stream();
  FUSESCOPE_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  FUSESCOPE_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.get()));
  FUSESCOPE_CUDA(cudaMemsetAsync(to, 7, bytes, stream.get()));
  cudaGraph_t captured = nullptr;
  FUSESCOPE_CUDA(cudaStreamEndCapture(stream.get(), &captured));
  const kernels::Graph graph(captured);
  cudaGraphExec_t made = nullptr;
  FUSESCOPE_CUDA(cudaGraphInstantiate(&made, graph.get(), 0));
  const kernels::GraphExec exec(made);
  FUSESCOPE_CUDA(cudaGraphLaunch(exec.get(), stream.get()));
  FUSESCOPE_CUDA(cudaStreamSynchronize(stream.get()));
}

TEST(CuptiActivityProbe, RecordsAndClock) {
  FUSESCOPE_NEED_GPUS(1);
  std::string why_not;
  const auto collector = CuptiActivity::start({0}, why_not);
  if (collector == nullptr) {
    GTEST_SKIP() << why_not;
  }
  std::string held;
  EXPECT_EQ(CuptiActivity::start({0}, held), nullptr);
  EXPECT_NE(held.find("CUPTI is held by"), std::string::npos) << held;

  const kernels::OnDevice on(0);
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const kernels::DeviceBlock a = kernels::allocate_device(kBytes);
  const kernels::DeviceBlock b = kernels::allocate_device(kBytes);
  const std::vector<std::uint64_t> first = kernels::stamp_clock(0);
  {
    const NvtxRange run(RangeLevel::run, "probe run");
    const NvtxRange iteration(RangeLevel::iteration, "iteration 3", 3);
    run_graph(a.get(), b.get(), kBytes);
  }
  const Activity activity = collector->collect();
  int copies = 0;
  int of_graphs = 0;
  for (const ActivitySlice& slice : activity.slices) {
    copies += slice.what == ActivitySlice::What::copy && slice.bytes == kBytes;
    of_graphs += slice.graph_node != 0;
  }
  std::printf("%zu slices, %d of graph nodes, %zu ranges, %llu dropped, %llu untimed\n",
              activity.slices.size(), of_graphs, activity.ranges.size(),
              static_cast<unsigned long long>(activity.dropped),
              static_cast<unsigned long long>(activity.untimed));
  EXPECT_EQ(activity.dropped, 0U);
  EXPECT_EQ(copies, 1);
  EXPECT_EQ(of_graphs, 2);
  ASSERT_EQ(activity.ranges.size(), 2U);
  EXPECT_EQ(activity.ranges[0].name, "probe run");
  EXPECT_EQ(activity.ranges[0].domain, "fusescope");
  EXPECT_EQ(activity.ranges[1].name, "iteration 3");

  ClockPings pings{0, 1, stamp_pings(activity, 0, first), {}};
  ASSERT_EQ(pings.start.size(), first.size());
  const std::vector<std::uint64_t> last = kernels::stamp_clock(0);
  pings.end = stamp_pings(collector->collect(), 0, last);
  ASSERT_EQ(pings.end.size(), last.size());
  const auto step = static_cast<double>(kernels::measure_timer_step(0));
  const ClockAlignment alignment = align_clocks(2, {&pings, 1}, step);
  std::printf("CUPTI against %%globaltimer: %s\n", describe(alignment).c_str());
  EXPECT_LT(alignment.bound_ns, 20'000);
}

}  // namespace
}  // namespace fusescope::timeline
