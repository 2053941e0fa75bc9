// Timelines of the simulator, through everything in this folder: sound, stored without loss, drawn
// by the rules.

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "layer/problem.hpp"
#include "timeline/dependencies.hpp"
#include "timeline/flows.hpp"
#include "timeline/store.hpp"
#include "timeline/writers.hpp"
#include "trace_rules.hpp"

namespace fusescope::timeline {
namespace {

Timeline simulated(const Problem& problem, const std::vector<std::string>& settings) {
  Config config;
  for (const std::string& setting : settings) {
    set_knob_text(config, setting, "--set");
  }
  const auto engine = engine::make_engine({.engine = "sim", .profile = "", .devices = {}});
  return engine->run({.problem = &problem, .config = config, .timeline = true, .command = "test"})
      .timeline.value();
}

Problem small_problem() {
  Shape shape = load_shape("seed-tp4");
  shape.tokens_per_rank = 64;
  shape.experts = 16;
  return make_problem(shape, parse_routing("zipf:1.2"));
}

class Simulated : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(Simulated, IsSoundStoredAndDrawn) {
  const Timeline timeline = simulated(small_problem(), GetParam());
  EXPECT_EQ(check(timeline), "");
  EXPECT_EQ(decode_timeline(encode_timeline(timeline), ""), timeline);
  expect_perfetto_rules(timeline);
  expect_chrome_rules(timeline);
}

INSTANTIATE_TEST_SUITE_P(
    Knobs, Simulated,
    testing::Values(std::vector<std::string>{}, std::vector<std::string>{"form=serial"},
                    std::vector<std::string>{"pull_order=by_token", "job_order=by_token",
                                             "combine=block_per_job", "all_hands=false"},
                    std::vector<std::string>{"watermark_chunks=4", "slot_order=rotate_from_self"},
                    std::vector<std::string>{"activation=fused", "graph=false", "schedule=host"},
                    std::vector<std::string>{"study=gates_open"},
                    std::vector<std::string>{"study=compute_split"}));

// The sizes that DESIGN's users can live with, on the seed's layer as it is.
TEST(SimulatedSeed, FilesAreSmall) {
  const Timeline timeline =
      simulated(make_problem(load_shape("seed-tp4"), parse_routing("zipf:1.2")), {});
  ASSERT_GT(timeline.events.size(), 50'000u);
  EXPECT_EQ(check(timeline), "");
  EXPECT_LT(encode_timeline(timeline).size(), 1'500'000u);
  std::ostringstream out;
  write_perfetto(timeline, out);
  EXPECT_LT(out.view().size(), 10'000'000u);
}

// Every link of the chain that explains the layer is drawn.
TEST(SimulatedSeed, EveryKindOfArrowIsThere) {
  const Timeline timeline = simulated(small_problem(), {});
  std::vector<std::string_view> names;
  for (const Flow& flow : find_flows(Dependencies(timeline))) {
    names.push_back(flow.name);
  }
  for (const std::string_view name : {"opens gate", "makes job ready", "raises watermark"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

}  // namespace
}  // namespace fusescope::timeline
