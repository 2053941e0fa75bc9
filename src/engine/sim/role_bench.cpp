#include "engine/sim/role_bench.hpp"

#include <algorithm>

#include "engine/sim/kernels.hpp"
#include "engine/sim/simulate.hpp"

namespace fusescope::engine::sim {
namespace {

// The loops that the tables were measured with have one warp a block, whose threads move a row each: they
// issue together, and after each wait they go on together, when the slowest is through. Kernel 1's slots
// lie in warps of their own (dispatch_gemm.cpp); the costs of a row are the same.
Task dispatch_in_step(Rank& rank, int block) {
  World& world = rank.world;
  Scheduler& scheduler = world.scheduler;
  const int lanes = world.config.tokens_per_block;
  const int tokens = world.shape.tokens();
  Server copies;
  for (int first = block * lanes; first < tokens; first += world.config.dispatch_comm_sms * lanes) {
    const int last = std::min(first + lanes, tokens);
    for (const auto move_row : {pull_row, store_row}) {
      const double now = static_cast<double>(scheduler.now());
      double done = now;
      for (int place = first; place < last; ++place) {
        done = std::max(done, move_row(rank, copies, rank.tables.pull_order[place], now));
      }
      co_await scheduler.until(rounded(done));
    }
    co_await scheduler.until(scheduler.now() + us(world.profile.arrive_latency));
  }
  end_block(rank, Stage::dispatch_gemm);
}

Task pull_only_block(Rank& rank, int block) {
  World& world = rank.world;
  Scheduler& scheduler = world.scheduler;
  const int lanes = world.config.tokens_per_block;
  const int stride = world.config.dispatch_comm_sms * lanes;
  const int own = world.shape.tokens_per_rank;
  const int remote = world.shape.tokens() - own;
  Server copies;
  for (int first = block * lanes; first < remote; first += stride) {
    const double now = static_cast<double>(scheduler.now());
    double landed = now;
    for (int place = first; place < std::min(first + lanes, remote); ++place) {
      const int token = place < rank.id * own ? place : place + own;  // skips this rank's own
      landed = std::max(landed, pull_row(rank, copies, token, now));
    }
    co_await scheduler.until(rounded(landed));
  }
  end_block(rank, Stage::dispatch_gemm);
}

// Runs `blocks` blocks of one role on every rank; returns when the last one ended.
template <class SpawnBlock>
double run_role(const Problem& problem, const Profile& profile, const Config& config, Stage stage,
                int blocks, SpawnBlock spawn_block) {
  const std::vector<ScheduleTables> tables = tables_for(problem, config);
  World world(problem, config, profile, tables, 1, false);
  for (const std::unique_ptr<Rank>& rank : world.ranks) {
    begin_kernel(*rank, stage, blocks);
    for (int block = 0; block < blocks; ++block) {
      world.scheduler.spawn(spawn_block(*rank, block));
    }
  }
  world.scheduler.run();
  return static_cast<double>(world.scheduler.now()) / 1e3;
}

Config dispatch_config(int comm_sms, int tokens_per_block) {
  Config config;
  config.dispatch_comm_sms = comm_sms;
  config.tokens_per_block = tokens_per_block;
  config.slot_order = SlotOrder::interleave_sources;
  return config;
}

double phase_us(const timeline::Timeline& timeline, Kind kind) {
  double longest = 0;
  for (const timeline::Event& event : timeline.events) {
    if (event.kind == kind) {
      longest = std::max(longest, static_cast<double>(event.end_ns - event.begin_ns) / 1e3);
    }
  }
  return longest;
}

}  // namespace

double dispatch_alone_us(const Problem& problem, const Profile& profile, int comm_sms,
                         int tokens_per_block) {
  return run_role(problem, profile, dispatch_config(comm_sms, tokens_per_block),
                  Stage::dispatch_gemm, comm_sms,
                  [](Rank& rank, int block) { return dispatch_in_step(rank, block); });
}

double pull_alone_gbps(const Problem& problem, const Profile& profile, int comm_sms,
                       int tokens_per_block) {
  const double us =
      run_role(problem, profile, dispatch_config(comm_sms, tokens_per_block), Stage::dispatch_gemm,
               comm_sms, [](Rank& rank, int block) { return pull_only_block(rank, block); });
  const double rows = problem.shape.tokens() - problem.shape.tokens_per_rank;
  return rows * problem.shape.hidden * 2 / (us * 1e3);
}

double jobs_alone_us(const Problem& problem, const Profile& profile, int comm_sms) {
  Config config;
  config.combine_comm_sms = comm_sms;
  config.study = Study::gates_open;
  return run_role(problem, profile, config, Stage::gemm_combine_push, comm_sms,
                  [](Rank& rank, int block) {
                    const TrackId track = rank.world.recorder.add_track(
                        rank.id, Stage::gemm_combine_push, Role::communication, block);
                    return job_block(rank, track, block);
                  });
}

GemmTimes gemms_alone_us(const Problem& problem, const Profile& profile, TileShape tile) {
  Config config;
  config.study = Study::compute_all;
  config.tile = tile;
  const Iteration iteration =
      simulate(problem, config, profile, tables_for(problem, config), 1, true);
  return {phase_us(*iteration.timeline, Kind::dispatch_gemm),
          phase_us(*iteration.timeline, Kind::gemm_combine_push)};
}

}  // namespace fusescope::engine::sim
