// Suggestions that the simulator is asked about, where measurements say which way they should go.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/advice.hpp"
#include "analysis/summary.hpp"
#include "simulated.hpp"

namespace fusescope::analysis {
namespace {

// Asked of the simulator, which has scatter and gather from measurements: with few tokens rows gathered by the tiles are
// faster, and pushed before kernel 1 faster still; with many, rows scattered, whatever the run had.
TEST(RowsAdvice, GathersFewTokensAndScattersMany) {
  const auto advised = [](int tokens_per_rank, Dispatch from) {
    Shape shape = load_shape("seed-tp2");
    shape.tokens_per_rank = tokens_per_rank;
    const Problem problem = make_problem(shape, parse_routing("uniform"));
    Config config;
    config.dispatch_comm_sms = 0;
    config.activation = Activation::fused;
    config.tile = TileShape::m160n256;
    config.tile_counter = TileCounter::both;
    config.schedule = ScheduleSite::fused;
    config.dispatch = from;
    const timeline::Timeline now = simulated_on_h200(problem, config);
    std::vector<Suggestion> rows;
    for (Suggestion& each : candidates(now, attribute(now), config)) {
      if (each.knob == "dispatch") {
        rows.push_back(std::move(each));
      }
    }
    const auto wall_us = [](const timeline::Timeline& timeline) {
      return static_cast<double>(timeline.end_ns - timeline.begin_ns) / 1e3;
    };
    const auto simulated = [&](const Config& other) -> std::optional<Effect> {
      return Effect{wall_us(simulated_on_h200(problem, other)) - wall_us(now), 0};
    };
    const Advice advice = advise(
        rows, 0, [](const Config&) { return std::nullopt; }, simulated);
    return advice.ranked.empty() ? std::string() : advice.ranked.front().to;
  };
  EXPECT_EQ(advised(512, Dispatch::scatter), "push");
  EXPECT_EQ(advised(512, Dispatch::gather), "push");
  EXPECT_EQ(advised(512, Dispatch::push), "");
  EXPECT_EQ(advised(2048, Dispatch::gather), "scatter");
  EXPECT_EQ(advised(2048, Dispatch::push), "scatter");
  EXPECT_EQ(advised(2048, Dispatch::scatter), "");
}

}  // namespace
}  // namespace fusescope::analysis
