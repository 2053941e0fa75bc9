#include "analysis/link_load.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "hand_made.hpp"
#include "tests/timeline/tiny_layer.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Dependencies;
using timeline::Kind;
using timeline::Role;
using timeline::Stage;
using timeline::Timeline;

// Rows of a few ranks, each on a track of its own.
class Rows {
 public:
  explicit Rows(int ranks = 3) : made_(ranks, 8) {}

  void put(int rank, Kind kind, int peer, int begin_us, int end_us) {
    const std::uint32_t track =
        made_.track(rank, Stage::dispatch_gemm, Role::communication, 0, lane_);
    made_.event(track, kind, begin_us * 1000, end_us * 1000,
                {.token = lane_++, .index = 0, .peer = peer});
  }
  void emulate_link() { config_ = "pull_order=by_token link_gbps=25"; }
  LinkLoad load(Kind kind) {
    Timeline timeline = made_.build();
    timeline.meta.config = config_;
    return link_load(Dependencies(timeline), kind);
  }

 private:
  HandMade made_;
  std::string config_;
  int lane_ = 0;
};

// Both peers of rank 0 fetch two rows from it, which fetches one; then each fetches one from the other.
Rows convoy(int convoy_row_us) {
  Rows rows;
  for (const int rank : {1, 2}) {
    rows.put(rank, Kind::pull, 0, 0, convoy_row_us);
    rows.put(rank, Kind::pull, 0, 0, convoy_row_us);
    rows.put(rank, Kind::pull, rank, 0, 5);  // its own
    rows.put(rank, Kind::pull, 3 - rank, 100, 140);
  }
  rows.put(0, Kind::pull, 1, 0, 40);
  return rows;
}

TEST(LinkLoad, NamesTheRankThatAllOthersWaitFor) {
  const LinkLoad load = convoy(100).load(Kind::pull);
  EXPECT_EQ(load.begin_ns, 0);
  EXPECT_EQ(load.end_ns, 140'000);
  ASSERT_EQ(load.ranks.size(), 3U);
  EXPECT_EQ(load.ranks[0].rows, 4);
  EXPECT_EQ(load.ranks[0].row_ns, 400'000);
  EXPECT_EQ(load.ranks[0].convoy_ns, 100'000);
  EXPECT_EQ(load.ranks[0].convoy_row_ns, 400'000);
  EXPECT_EQ(load.ranks[1].rows, 2);
  EXPECT_EQ(load.ranks[1].row_ns, 80'000);
  EXPECT_EQ(load.ranks[1].convoy_ns, 0);
  EXPECT_EQ(load.ranks[2].rows, 1);
  EXPECT_EQ(load.convoy_rows, 4);
  EXPECT_EQ(load.other_rows, 3);
  EXPECT_EQ(load.convoy_mean_ns, 100'000);
  EXPECT_EQ(load.other_mean_ns, 40'000);
  EXPECT_EQ(load.bottleneck, 0);
  EXPECT_EQ(
      load.statement,
      "The egress of rank 0 is a bottleneck: ranks pull in convoy, more than half of all rows "
      "on the way from rank 0 for 100.0 us of 140.0 us; a row then takes 100.0 us, else 40.0 "
      "us");
}

TEST(LinkLoad, OfAnEmulatedLinkItNamesTheLinesOfTheConvoy) {
  Rows rows = convoy(100);
  rows.emulate_link();
  EXPECT_EQ(
      rows.load(Kind::pull)
          .statement.find("The emulated lines from rank 0 are a bottleneck: ranks pull in convoy"),
      0U);
}

TEST(LinkLoad, ConvoysTooShortToBeNamedAreStillConvoys) {
  constexpr int kRanks = 24;
  Rows rows(kRanks);
  for (int source = 0; source < kRanks; ++source) {
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank != source) {
        rows.put(rank, Kind::pull, source, 10 * source, 10 * source + 10);
      }
    }
  }
  EXPECT_EQ(
      rows.load(Kind::pull).statement,
      "Ranks pull in convoys that take less than 5.0% of 240.0 us each; too few rows go alone to "
      "say what that costs");
}

TEST(LinkLoad, AConvoyThatSlowsNoRowIsNoBottleneck) {
  const LinkLoad load = convoy(42).load(Kind::pull);
  EXPECT_EQ(load.ranks[0].convoy_ns, 42'000);
  EXPECT_EQ(load.bottleneck, -1);
  EXPECT_EQ(
      load.statement,
      "Ranks pull in convoy, more than half of all rows on the way from rank 0 for 42.0 us of "
      "140.0 us; a row then takes 42.0 us, else 40.0 us");
}

TEST(LinkLoad, ConvoysAreNamedInTheirOrder) {
  Rows rows;
  for (const int rank : {0, 1}) {
    rows.put(rank, Kind::pull, 2, 0, 60);
    rows.put(rank, Kind::pull, 1 - rank, 160, 190);
  }
  for (const int rank : {1, 2}) {
    rows.put(rank, Kind::pull, 0, 60, 160);
  }
  const LinkLoad load = rows.load(Kind::pull);
  EXPECT_EQ(load.bottleneck, 0);
  EXPECT_NE(load.statement.find("from rank 2 for 60.0 us, rank 0 for 100.0 us of 190.0 us"),
            std::string::npos)
      << load.statement;
}

TEST(LinkLoad, WithoutARowBesideTheConvoyNothingSaysWhatItCosts) {
  Rows rows;
  rows.put(1, Kind::pull, 0, 0, 60);
  rows.put(2, Kind::pull, 0, 0, 60);
  const LinkLoad load = rows.load(Kind::pull);
  EXPECT_EQ(load.bottleneck, -1);
  EXPECT_NE(load.statement.find("too few rows go alone"), std::string::npos) << load.statement;
}

TEST(LinkLoad, RowsFromAllRanksAtOnceAreNoConvoy) {
  Rows rows;
  for (int rank = 0; rank < 3; ++rank) {
    rows.put(rank, Kind::pull, (rank + 1) % 3, 0, 50);
    rows.put(rank, Kind::pull, (rank + 2) % 3, 50, 200);
  }
  const LinkLoad load = rows.load(Kind::pull);
  for (const LinkEnd& end : load.ranks) {
    EXPECT_EQ(end.convoy_ns, 0);
  }
  EXPECT_EQ(load.bottleneck, -1);
  EXPECT_EQ(load.statement,
            "Rows come from all ranks at once: in 0.0% of their time more than half of those on "
            "the way came from one rank");
}

TEST(LinkLoad, PushesCountByTheirReceiver) {
  Rows rows;
  rows.put(1, Kind::push, 0, 0, 90);
  rows.put(2, Kind::push, 0, 0, 90);
  rows.put(0, Kind::push, 1, 90, 120);
  rows.put(1, Kind::push, 2, 90, 120);
  rows.put(0, Kind::pull, 1, 0, 500);
  const LinkLoad load = rows.load(Kind::push);
  EXPECT_EQ(load.end_ns, 120'000);
  EXPECT_EQ(load.ranks[0].rows, 2);
  EXPECT_EQ(load.bottleneck, 0);
  EXPECT_NE(load.statement.find("The ingress of rank 0 is a bottleneck: ranks push in convoy"),
            std::string::npos);
}

TEST(LinkLoad, TheSlicesHoldEveryRowsTime) {
  const LinkLoad load = convoy(77).load(Kind::pull);
  const double slice = static_cast<double>(load.end_ns - load.begin_ns) / kLoadSlices;
  for (const LinkEnd& end : load.ranks) {
    ASSERT_EQ(end.load.size(), static_cast<std::size_t>(kLoadSlices));
    EXPECT_NEAR(std::accumulate(end.load.begin(), end.load.end(), 0.0) * slice,
                static_cast<double>(end.row_ns), 1e-3);
  }
}

TEST(LinkLoad, AbstainsWhereNoLinkHasTwoUsers) {
  const Timeline two_ranks = timeline::tiny_layer();
  EXPECT_TRUE(link_load(Dependencies(two_ranks), Kind::pull).ranks.empty());
  Timeline timeline = timeline::tiny_layer({.ranks = 4});
  EXPECT_FALSE(link_load(Dependencies(timeline), Kind::pull).ranks.empty());
  for (timeline::Track& track : timeline.tracks) {
    track.device = track.rank / 2;
  }
  const LinkLoad shared = link_load(Dependencies(timeline), Kind::pull);
  EXPECT_TRUE(shared.ranks.empty());
  EXPECT_EQ(shared.statement, "");
}

}  // namespace
}  // namespace fusescope::analysis
