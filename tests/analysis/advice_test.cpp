// What a suggestion's evidence names, against a wait whose parts can be read off.

#include "analysis/advice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "hand_made.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Kind;
using timeline::Role;
using timeline::Stage;

// Of the one token that a gate waits for, closed from 0 on.
struct Landing {
  std::int64_t issued, pulled, counted, seen;
};

// As the evidence for a knob of the dispatch has it.
std::string what_gates_wait_for(const Landing& at) {
  HandMade made(1);
  made.wiring().hit_row_block = {{0}};
  made.wiring().expert_of_row_block = {{0}};
  made.phase(0, Kind::dispatch_gemm, 0, at.seen + 100);
  const auto compute = made.track(0, Stage::dispatch_gemm, Role::compute, 0);
  made.event(compute, Kind::gate_wait, 0, at.seen, {.row_block = 0, .index = 0});
  made.event(compute, Kind::mainloop, at.seen, at.seen + 100, {.row_block = 0, .index = 0});
  const auto fetches = made.track(0, Stage::dispatch_gemm, Role::communication, 1);
  made.event(fetches, Kind::pull, at.issued, at.pulled, {.token = 0, .peer = 0});
  made.event(fetches, Kind::scatter, at.pulled, at.counted, {.token = 0});
  made.event(fetches, Kind::arrive, at.counted, at.counted, {.token = 0});
  const timeline::Timeline timeline = made.build();
  const std::vector<Suggestion> all = candidates(timeline, attribute(timeline), Config{});
  const auto found = std::find_if(all.begin(), all.end(), [](const Suggestion& each) {
    return each.knob == "tokens_per_block";
  });
  return found == all.end() ? "" : found->evidence.substr(0, found->evidence.find(", and "));
}

TEST(GateEvidence, NamesTheLargestPartOfTheWaits) {
  EXPECT_EQ(what_gates_wait_for({100, 300, 900, 1000}),
            "gates wait for the scatter (scatter 60.0%, link 20.0%, not yet issued 10.0%, landed "
            "but not yet seen 10.0% of their time)");
  EXPECT_EQ(what_gates_wait_for({100, 700, 900, 1000}),
            "gates wait for the link (scatter 20.0%, link 60.0%, not yet issued 10.0%, landed but "
            "not yet seen 10.0% of their time)");
  EXPECT_EQ(what_gates_wait_for({600, 800, 900, 1000}),
            "gates wait for tokens that nobody has asked for yet (scatter 10.0%, link 20.0%, not "
            "yet issued 60.0%, landed but not yet seen 10.0% of their time)");
  EXPECT_EQ(what_gates_wait_for({0, 0, 30, 1000}),
            "gates wait to be seen open (scatter 3.0%, link 0.0%, not yet issued 0.0%, landed but "
            "not yet seen 97.0% of their time)");
}

}  // namespace
}  // namespace fusescope::analysis
