// An injected delay happens at the named operation, and nowhere else.
#include <gtest/gtest.h>

#include "sim_run.hpp"

namespace fusescope::engine::sim {
namespace {

constexpr int kDelay = 30'000;  // [ns] longer than any of these operations takes undisturbed

class Injection : public testing::Test {
 protected:
  timeline::Timeline with(InjectPoint point, int rank = -1, int token = -1) const {
    Config config;
    config.slot_order = SlotOrder::interleave_sources;
    config.inject = {point, point == InjectPoint::none ? 0 : kDelay, rank, token};
    return timeline_of(problem_, config, profile_);
  }
  void every_slice_is_late(InjectPoint point, Kind kind) const {
    const timeline::Timeline base = with(InjectPoint::none);
    const timeline::Timeline late = with(point);
    EXPECT_LT(shortest_ns(base, kind), kDelay);
    EXPECT_GE(shortest_ns(late, kind), kDelay);
    EXPECT_GT(late.wall_ns(), base.wall_ns());
    for (const Kind other : {Kind::pull, Kind::scatter, Kind::sum, Kind::push, Kind::watermark}) {
      if (other != kind) {
        EXPECT_LT(shortest_ns(late, other), kDelay) << name(other);
      }
    }
  }
  const Profile profile_ = load_profile("h200-nvlink");
  const Problem problem_ = problem_of("seed-tp2", "uniform");
};

TEST_F(Injection, Pull) {
  every_slice_is_late(InjectPoint::pull, Kind::pull);
}
TEST_F(Injection, Scatter) {
  every_slice_is_late(InjectPoint::scatter, Kind::scatter);
}
TEST_F(Injection, Job) {
  every_slice_is_late(InjectPoint::job, Kind::sum);
}
TEST_F(Injection, Push) {
  every_slice_is_late(InjectPoint::push, Kind::push);
}
TEST_F(Injection, Watermark) {
  every_slice_is_late(InjectPoint::watermark, Kind::watermark);
}

TEST_F(Injection, SourceRank) {
  const timeline::Timeline late = with(InjectPoint::source_rank, 1);
  EXPECT_GE(shortest_ns(late, Kind::pull, [](const auto& event) { return event.peer == 1; }),
            kDelay);
  EXPECT_GT(late.wall_ns(), with(InjectPoint::none).wall_ns());
}

TEST_F(Injection, Token) {
  const int token = 1500;
  const auto is_it = [&](const timeline::Event& event) { return event.token == token; };
  const timeline::Timeline base = with(InjectPoint::none);
  const timeline::Timeline late = with(InjectPoint::token, -1, token);
  EXPECT_LT(shortest_ns(base, Kind::pull, is_it), kDelay);
  EXPECT_GE(shortest_ns(late, Kind::pull, is_it), kDelay);
  // On each rank only the block that had the token in hand was held up.
  long long held_up = 0;
  for (const timeline::Event& event : late.events) {
    held_up += event.kind == Kind::pull && event.end_ns - event.begin_ns >= kDelay;
  }
  EXPECT_LE(held_up, 2 * Config{}.tokens_per_block);
}

TEST_F(Injection, Expert) {
  Config config;
  config.inject = {InjectPoint::expert, kDelay, -1, -1, 5};
  const timeline::Timeline late = timeline_of(problem_, config, profile_);
  const auto is_routed = [&](const timeline::Event& event) {
    const auto rank = static_cast<std::size_t>(late.tracks[event.track].rank);
    for (int k = 0; k < late.wiring.topk; ++k) {
      const auto hit = static_cast<std::size_t>(event.token * late.wiring.topk + k);
      const auto row_block = static_cast<std::size_t>(late.wiring.hit_row_block[rank][hit]);
      if (late.wiring.expert_of_row_block[rank][row_block] == 5) {
        return true;
      }
    }
    return false;
  };
  EXPECT_GE(shortest_ns(late, Kind::pull, is_routed), kDelay);
  EXPECT_LT(shortest_ns(late, Kind::pull, [&](const auto& event) { return !is_routed(event); }),
            kDelay);
}

}  // namespace
}  // namespace fusescope::engine::sim
