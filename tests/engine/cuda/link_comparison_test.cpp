// How many bytes the schedule says must move over the links. Needs no GPU.
#include "engine/cuda/link_comparison.hpp"

#include <gtest/gtest.h>

namespace fusescope::engine::cuda::test {
namespace {

// One of 3 ranks, per iteration; hits are 5 x 2 per rank, rows 5 x 64 x 2 bytes.
Shape small_shape() {
  Shape shape;
  shape.ranks = 3;
  shape.tokens_per_rank = 5;
  shape.hidden = 64;
  shape.topk = 2;
  return shape;
}

nlohmann::json scheduled(const Config& config, const char* way) {
  RecordedTimeline recorded;
  recorded.link_bytes.resize(1);
  const nlohmann::json rows = compare_links(recorded, small_shape(), config, 3);
  return rows.size() == 1 && rows[0].contains(way) ? rows[0][way]["scheduled"] : nlohmann::json();
}

TEST(LinkComparison, EachHitsIdAndWeightAreAsTheScheduleSends) {
  Config config;
  constexpr double kRows = 2 * (5 * 64 * 2);
  for (const ScheduleSite site : {ScheduleSite::device, ScheduleSite::host}) {
    config.schedule = site;
    EXPECT_EQ(scheduled(config, "written"), kRows + 2 * ((4 + 4) * 10 + 4 * 8));
    EXPECT_EQ(scheduled(config, "read"), kRows);
  }
  config.schedule = ScheduleSite::fused;
  EXPECT_EQ(scheduled(config, "written"), kRows + 2 * ((8 + 4) * 10 + 2 * 8));
  EXPECT_EQ(scheduled(config, "written_here"), scheduled(config, "written"));
  EXPECT_EQ(scheduled(config, "read"), kRows);
  EXPECT_EQ(scheduled(config, "served"), kRows);
}

TEST(LinkComparison, PushedTokensAreWrittenAndNotRead) {
  Config config;
  config.schedule = ScheduleSite::fused;
  const double rows = scheduled(config, "read");
  const double written = scheduled(config, "written");
  config.dispatch = Dispatch::push;
  EXPECT_EQ(scheduled(config, "written"), written + rows);
  EXPECT_TRUE(scheduled(config, "read").is_null());
  EXPECT_TRUE(scheduled(config, "served").is_null());
}

TEST(LinkComparison, AWatermarkPerChunkIsAmongTheFlags) {
  Config config;
  const double one = scheduled(config, "written").get<double>();
  config.watermark_chunks = 4;
  EXPECT_EQ(scheduled(config, "written"), one + 2 * 3 * 8);
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
