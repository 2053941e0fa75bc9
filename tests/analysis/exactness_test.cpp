// Every view adds up on timelines that are consistent, on clocks that disagree, and on nonsense.

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "exact.hpp"
#include "tests/timeline/tiny_layer.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Event;
using timeline::Sketch;
using timeline::Timeline;
using Random = std::mt19937_64;

int pick(Random& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

Sketch random_sketch(Random& random) {
  return {.ranks = pick(random, 1, 4),
          .tokens_per_rank = pick(random, 1, 24),
          .topk = pick(random, 1, 3),
          .row_blocks = pick(random, 3, 9),
          .n_tiles_1 = pick(random, 1, 3),
          .n_tiles_2 = pick(random, 1, 3),
          .compute_blocks = pick(random, 1, 5),
          .lanes = pick(random, 1, 6),
          .job_blocks = pick(random, 1, 3)};
}

TEST(Exactness, OnTheTinyLayerOfManyShapes) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    const Timeline timeline = timeline::tiny_layer(random_sketch(random));
    ASSERT_EQ(timeline::check(timeline), "");
    expect_exact(timeline, ("round " + std::to_string(round)).c_str());
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST(Exactness, OnTheSeedsNumberOfEvents) {
  expect_exact(timeline::tiny_layer(timeline::seed_sized()), "seed sized");
}

TEST(Exactness, WithClocksThatDisagree) {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    Timeline timeline = timeline::tiny_layer(random_sketch(random));
    std::vector<int> shift;
    for (int rank = 0; rank < timeline.wiring.ranks; ++rank) {
      shift.push_back(pick(random, -40, 40));
    }
    for (Event& event : timeline.events) {
      const int by = shift[static_cast<std::size_t>(timeline.tracks[event.track].rank)];
      event.begin_ns += by;
      event.end_ns += by;
    }
    timeline::sort_events(timeline);
    timeline.meta.clock_bound_ns = 80;
    // The wall stays: some events now lie outside of it, on either side.
    expect_exact(timeline, ("round " + std::to_string(round)).c_str());
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST(Exactness, WithEventsMissing) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    Timeline timeline = timeline::tiny_layer(random_sketch(random));
    const int keep = pick(random, 1, 95);
    std::erase_if(timeline.events, [&](const Event&) { return pick(random, 1, 100) > keep; });
    expect_exact(timeline, ("round " + std::to_string(round)).c_str());
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST(Exactness, OnNonsense) {
  Random random(4);
  for (int round = 0; round < 200; ++round) {
    Timeline timeline = timeline::tiny_layer(random_sketch(random));
    for (Event& event : timeline.events) {
      if (pick(random, 0, 2) == 0) {
        const int wall = static_cast<int>(timeline.end_ns);
        event.begin_ns = pick(random, -20, wall);
        event.end_ns = event.begin_ns + pick(random, 0, 200);
        event.token = pick(random, -1, 100);
        event.row_block = pick(random, -1, 20);
        event.peer = static_cast<std::int16_t>(pick(random, -1, 9));
        event.kind = static_cast<timeline::Kind>(pick(random, 0, timeline::kKinds - 1));
      }
    }
    timeline::sort_events(timeline);
    expect_exact(timeline, ("round " + std::to_string(round)).c_str());
    ASSERT_FALSE(HasFatalFailure());
  }
}

}  // namespace
}  // namespace fusescope::analysis
