// A simulated timeline, taken apart into the records that a device would have written, each rank on a
// clock of its own, and put together again.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <tuple>

#include "analysis/accounting.hpp"
#include "analysis/critical_path.hpp"
#include "engine/engine.hpp"
#include "layer/problem.hpp"
#include "record_tape.hpp"
#include "timeline/dependencies.hpp"

namespace fusescope::timeline {
namespace {

Timeline simulated(const Problem& problem, const std::vector<std::string>& settings,
                   const std::string& profile = "") {
  Config config;
  for (const std::string& setting : settings) {
    set_knob_text(config, setting, "--set");
  }
  const auto engine = engine::make_engine({.engine = "sim", .profile = profile, .devices = {}});
  return engine->run({.problem = &problem, .config = config, .timeline = true, .command = "test"})
      .timeline.value();
}

Problem small_problem() {
  Shape shape = load_shape("seed-tp4");
  shape.tokens_per_rank = 64;
  shape.experts = 16;
  return make_problem(shape, parse_routing("zipf:1.2"));
}

Timeline put_together(const Timeline& original, DecodeReport& report) {
  std::vector<RecordTape> tapes;
  for (int rank = 0; rank < original.wiring.ranks; ++rank) {
    tapes.push_back(take_apart(original, rank, 1'000'000'000'000 + 37'000 * rank));
  }
  std::vector<RankRecords> ranks;
  for (int rank = 0; rank < original.wiring.ranks; ++rank) {
    ranks.push_back(tapes[static_cast<std::size_t>(rank)].read(rank));
    ranks.back().clock = ClockLine(0, 37'000 * rank, 0, 0);
  }
  Timeline timeline;
  timeline.meta = original.meta;
  timeline.wiring = original.wiring;
  report = decode_records(ranks, timeline);
  return timeline;
}

// What an event is, whatever lane it is on.
using Key = std::tuple<int, Stage, Role, int, Kind, std::int64_t, std::int64_t, int, int, int, int>;
std::vector<Key> keys_of(const Timeline& timeline) {
  std::vector<Key> keys;
  for (const Event& event : timeline.events) {
    const Track& track = timeline.tracks[event.track];
    if (event.kind != Kind::dispenser_reset) {
      keys.emplace_back(track.rank, track.stage, track.role, track.block, event.kind,
                        event.begin_ns, event.end_ns, event.token, event.row_block, event.index,
                        event.peer);
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

// The default profile's device has no wgmma, which every tile but 128x128 needs.
std::string profile_for(const std::vector<std::string>& settings) {
  const bool tiles = std::any_of(settings.begin(), settings.end(), [](const std::string& setting) {
    return setting.substr(0, 5) == "tile=";
  });
  return tiles ? "h200-nvlink" : "";
}

class Recorded : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(Recorded, EventsComeBack) {
  const Timeline original = simulated(small_problem(), GetParam(), profile_for(GetParam()));
  DecodeReport report;
  const Timeline decoded = put_together(original, report);
  EXPECT_EQ(report.dropped, 0U);
  EXPECT_EQ(report.incomplete, 0U) << report.first_incomplete;
  EXPECT_EQ(check(decoded), "");
  EXPECT_EQ(decoded.wall_ns(), original.wall_ns());
  const Wiring& wiring = original.wiring;
  if (!wiring.tile_of_row_block.empty()) {
    EXPECT_LT(wiring.row_tiles(0), static_cast<int>(wiring.expert_of_row_block[0].size()));
  }
  const std::vector<Key> want = keys_of(original);
  const std::vector<Key> got = keys_of(decoded);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], want[i]) << i << ": " << name(std::get<4>(want[i]));
  }
}

// Jobs and pushes of a block lie on lanes of their own: the analysis must not see the difference.
TEST_P(Recorded, ItsAnalysisIsThatOfTheOriginal) {
  const Timeline original = simulated(small_problem(), GetParam(), profile_for(GetParam()));
  DecodeReport report;
  const Timeline decoded = put_together(original, report);
  const auto want = analysis::account(original);
  const auto got = analysis::account(decoded);
  ASSERT_EQ(got.ranks.size(), want.ranks.size());
  for (std::size_t rank = 0; rank < want.ranks.size(); ++rank) {
    for (int use = 0; use < analysis::kUses; ++use) {
      if (use == static_cast<int>(analysis::Use::other_phase) ||
          use == static_cast<int>(analysis::Use::idle)) {
        continue;  // the kernels have no dispenser reset
      }
      EXPECT_EQ(got.ranks[rank].by_use[static_cast<std::size_t>(use)],
                want.ranks[rank].by_use[static_cast<std::size_t>(use)])
          << rank << " " << name(static_cast<analysis::Use>(use));
    }
  }
  const auto path = analysis::critical_path(decoded);
  EXPECT_EQ(path.by_step, analysis::critical_path(original).by_step);
  EXPECT_EQ(path.unexplained_ns, 0);
  EXPECT_EQ(path.causes_missing, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Knobs, Recorded,
    testing::Values(std::vector<std::string>{},
                    std::vector<std::string>{"pull_order=by_token", "job_order=by_token",
                                             "all_hands=false"},
                    std::vector<std::string>{"watermark_chunks=4", "slot_order=rotate_from_self"},
                    std::vector<std::string>{"activation=fused"},
                    std::vector<std::string>{"tile=160x256"},
                    std::vector<std::string>{"tile=288x128", "activation=fused"}));

// Buffers of every shape as it is, with the config that nobody chose: nothing is dropped, and they are
// small beside the layer.
class Buffers : public testing::TestWithParam<std::string> {};

TEST_P(Buffers, HoldEveryRecordAtDefaultSizes) {
  const Problem problem = make_problem(load_shape(GetParam()), parse_routing("zipf:1.0"));
  const Timeline timeline = simulated(problem, {}, "h200-nvlink");
  constexpr int kGroups = 3;  // warpgroups of a block that run jobs
  for (int rank = 0; rank < timeline.wiring.ranks; ++rank) {
    const RecordTape tape = take_apart(timeline, rank, 1'000'000);
    EXPECT_EQ(std::accumulate(tape.dropped.begin(), tape.dropped.end(), 0U), 0U) << rank;

    RecordedWork work = work_of(timeline, rank);
    work.job_groups_per_block = kGroups;
    const RecordLayout layout = lay_out_records(work);
    EXPECT_LT(layout.bytes(), std::size_t{256} << 20);
    std::map<std::pair<Role, int>, std::uint32_t> claims;  // of a block
    for (const Event& event : timeline.events) {
      const Track& track = timeline.tracks[event.track];
      if (event.kind == Kind::claim && track.rank == rank) {
        const Family family =
            track.role == Role::compute ? Family::combine_joined : Family::combine_jobs;
        const std::uint32_t jobs = ++claims[{track.role, track.block}];
        // A block's warpgroups take jobs in turns, two more or less.
        ASSERT_LE(6 * (jobs / kGroups + 2), layout[family].capacity) << describe(track);
      }
    }
  }
}

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const Shape& shape : list_shapes()) {
    names.push_back(shape.name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Shapes, Buffers, testing::ValuesIn(shape_names()), [](const auto& shape) {
  std::string name = shape.param;
  std::replace_if(
      name.begin(), name.end(), [](char letter) { return !std::isalnum(letter); }, '_');
  return name;
});

}  // namespace
}  // namespace fusescope::timeline
