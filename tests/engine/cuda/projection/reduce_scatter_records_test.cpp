// Records of the third kernel: they change no output, and make a timeline that holds to the event contract
// and whose attribution closes. And NCCL in the serial form.
#include <numeric>

#include "analysis/accounting.hpp"
#include "analysis/critical_path.hpp"
#include "engine/cuda/collectives.hpp"
#include "engine/cuda/projection/test_support.hpp"

namespace fusescope::engine::cuda::projection::test {
namespace {

std::vector<Config> recorded_configs() {
  std::vector<Config> all(6);
  all[1].graph = false;
  all[2].push_sms = 0;
  all[2].watermark_chunks = 4;
  all[3].all_hands = false;
  all[3].row_order = RowOrder::by_rank;
  all[4].rows_per_push = 5;
  all[4].pushers = 7;
  all[5].tile = TileShape::m128n128;
  all[5].pushers = 40;
  return all;
}

void expect_closes(const timeline::Timeline& timeline) {
  ASSERT_EQ(timeline::check(timeline), "");
  const timeline::Dependencies dependencies(timeline);
  const analysis::CriticalPath path = analysis::critical_path(dependencies);
  EXPECT_EQ(std::accumulate(path.by_step.begin(), path.by_step.end(), std::int64_t{0}),
            timeline.wall_ns());
  EXPECT_EQ(path.unexplained_ns, 0);
  EXPECT_EQ(path.causes_missing, 0);
  EXPECT_GT(path.by_step[static_cast<std::size_t>(analysis::Step::gemm_2)], 0);
  for (const analysis::RankAccounting& rank : analysis::account(dependencies).ranks) {
    EXPECT_EQ(std::accumulate(rank.by_use.begin(), rank.by_use.end(), std::int64_t{0}),
              rank.area_ns);
    EXPECT_GT(rank.by_use[static_cast<std::size_t>(analysis::Use::compute)], 0);
  }
}

// Every row that is not a rank's own is pushed once.
void expect_all_pushes(const timeline::Timeline& timeline, const Shape& shape,
                       const Config& config) {
  const auto pushes = std::count_if(
      timeline.events.begin(), timeline.events.end(),
      [](const timeline::Event& event) { return event.kind == timeline::Kind::push; });
  const int rows = rows_of_push(shape, config);
  const int per_destination = (shape.tokens_per_rank + rows - 1) / rows;
  EXPECT_EQ(pushes, shape.ranks * (shape.ranks - 1) * per_destination);
}

void check_records(int ranks, const std::vector<Device>& devices) {
  const Shape shape = make_shape(ranks, 301, 1024, 256);
  Runner runner(shape, devices, {.seed = 1, .deadline_ns = kTestDeadlineNs});
  for (const Config& config : recorded_configs()) {
    SCOPED_TRACE(named(config));
    ASSERT_EQ(checked_run(runner, config), "");
    const RecordedRun recorded = record_timeline(runner, config, 3);
    EXPECT_EQ(what_is_wrong(runner), "");
    EXPECT_GT(recorded.report.records, 0U);
    EXPECT_EQ(recorded.report.dropped, 0U);
    EXPECT_EQ(recorded.report.incomplete, 0U) << recorded.report.first_incomplete;
    expect_closes(recorded.timeline);
    expect_all_pushes(recorded.timeline, shape,
                      with_gemm_chosen(config, limits_of(devices.front())));
  }
}

TEST(ReduceScatterRecords, OneRank) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  check_records(1, devices);
}

TEST(ReduceScatterRecords, TwoRanksOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  check_records(2, devices);
}

TEST(ReduceScatterRecords, TwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  check_records(2, devices);
}

TEST(ReduceScatterRecords, FourDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  check_records(4, devices);
}

TEST(ReduceScatterRecords, FourRanksOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  check_records(4, devices);
}

TEST(ReduceScatterNccl, TwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  if (const NcclFound found = find_nccl(); found.file.empty()) {
    GTEST_SKIP() << found.why_not;
  }
  NcclCollectives nccl({devices[0].index, devices[1].index});  // outlives the runner's graphs
  Runner runner(make_shape(2, 129, 1024, 256), devices,
                {.seed = 5, .deadline_ns = kTestDeadlineNs});
  runner.use_nccl(&nccl);
  Config config;
  config.form = LayerForm::serial;
  for (const bool graph : {true, false}) {
    config.graph = graph;
    EXPECT_EQ(checked_run(runner, config), "") << named(config);
    const Outputs first = read_outputs(runner);
    for (int i = 0; i < 20; ++i) {
      runner.run_once();
      ASSERT_EQ(first_difference(first, read_outputs(runner)), "") << "iteration " << i;
    }
  }
}

}  // namespace
}  // namespace fusescope::engine::cuda::projection::test
