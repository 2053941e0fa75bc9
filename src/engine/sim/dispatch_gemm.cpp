// Kernel 1: AllGather + gate/up GEMM. Communication blocks pull tokens, scatter them to their slots and
// count the arrivals; compute blocks wait at the gate of each tile's row block.
#include <algorithm>

#include "engine/sim/kernels.hpp"

namespace fusescope::engine::sim {
namespace {

// Issues one token's K stores; returns when the writes are complete.
double scatter_row(Rank& rank, Server& block, int token, double now) {
  World& world = rank.world;
  const Costs& costs = world.costs;
  const int topk = world.shape.topk;
  double written = block.reserve(now, costs.store_row * topk * rank.noise());
  written = std::max(written, rank.memory.move(now, costs.row_bytes * topk));
  for (int k = 0; k < topk; ++k) {
    rank.memory.touch(rank.gathered, static_cast<std::size_t>(rank.row_block(token, k)));
  }
  return written + world.profile.store_latency * 1e3 +
         static_cast<double>(world.injected(InjectPoint::scatter));
}

Task compute_block(Rank& rank, int block, int blocks, bool gated) {
  World& world = rank.world;
  const TrackId track =
      world.recorder.add_track(rank.id, Stage::dispatch_gemm, Role::compute, block);
  const Gemm gemm = gemm_1(rank);
  const int end = tiles(rank, gemm.costs);
  for (int tile = block; tile < end; tile += blocks) {
    if (gated) {
      const int row_block = tile / gemm.costs.n_tiles;
      const Time begin = world.scheduler.now();
      co_await rank.arrivals[row_block].opened();
      world.recorder.slice(track, Kind::gate_wait, begin, world.scheduler.now(),
                           {.row_block = row_block, .index = tile % gemm.costs.n_tiles});
    }
    co_await run_tile(rank, gemm, track, tile);
  }
  end_block(rank);
}

}  // namespace

// The row crosses the block's own copy path, its source's egress, the fabric and this rank's ingress,
// each with its own queue.
double pull_row(Rank& rank, Server& block, int token, double now) {
  World& world = rank.world;
  const Costs& costs = world.costs;
  const int source = world.shape.source_rank(token);
  const double noise = rank.noise();
  double landed = 0;
  if (source == rank.id) {
    landed = block.reserve(now, costs.pull_local_row * noise);
    landed = std::max(landed, rank.memory.move(now, costs.row_bytes));
  } else {
    landed = block.reserve(now, costs.pull_remote_row * noise);
    landed = std::max(landed, world.ranks[source]->egress.reserve(now, costs.link_pull_row));
    landed = std::max(landed, rank.ingress.reserve(now, costs.link_pull_row));
    landed = std::max(landed, world.fabric.reserve(now, costs.fabric_row));
  }
  landed += world.profile.pull_latency * 1e3;
  landed += static_cast<double>(world.injected(InjectPoint::pull));
  if (world.injects(InjectPoint::source_rank) && source == world.config.inject.rank) {
    landed += world.config.inject.delay_ns;
  }
  if (world.injects(InjectPoint::token) && token == world.config.inject.token) {
    landed += world.config.inject.delay_ns;
  }
  return landed;
}

// The lanes of a block are threads of one warp: they issue together, and after each wait they go on
// together, when the slowest is through. A lane's slice therefore ends with the block's.
Task dispatch_block(Rank& rank, int block) {
  World& world = rank.world;
  Scheduler& scheduler = world.scheduler;
  const Config& config = world.config;
  const int lanes = config.tokens_per_block;
  const bool by_slot =
      config.pull_order == PullOrder::by_slot || config.study == Study::ideal_order;
  std::vector<TrackId> tracks;
  tracks.reserve(static_cast<std::size_t>(lanes));
  for (int lane = 0; lane < lanes; ++lane) {
    tracks.push_back(
        world.recorder.add_track(rank.id, Stage::dispatch_gemm, Role::communication, block, lane));
  }
  const auto token_of = [&](int place) { return by_slot ? rank.tables.pull_order[place] : place; };
  Server copies;  // this SM's path between links, shared memory and device memory

  const int tokens = world.shape.tokens();
  for (int first = block * lanes; first < tokens; first += config.dispatch_comm_sms * lanes) {
    const int last = std::min(first + lanes, tokens);

    const Time issued = scheduler.now();
    double landed = 0;
    for (int place = first; place < last; ++place) {
      landed =
          std::max(landed, pull_row(rank, copies, token_of(place), static_cast<double>(issued)));
    }
    co_await scheduler.until(rounded(landed));

    const Time storing = scheduler.now();
    double written = 0;
    for (int place = first; place < last; ++place) {
      written = std::max(written,
                         scatter_row(rank, copies, token_of(place), static_cast<double>(storing)));
    }
    co_await scheduler.until(rounded(written));

    const Time counting = scheduler.now();
    co_await scheduler.until(counting + us(world.profile.arrive_latency));
    for (int place = first; place < last; ++place) {
      const int token = token_of(place);
      for (int k = 0; k < world.shape.topk; ++k) {
        rank.arrivals[rank.row_block(token, k)].add(scheduler, us(world.profile.poll_latency));
      }
      const TrackId track = tracks[place - first];
      const int source = world.shape.source_rank(token);
      world.recorder.slice(track, Kind::pull, issued, storing, {.token = token, .peer = source});
      world.recorder.slice(track, Kind::scatter, storing, counting, {.token = token});
      world.recorder.slice(track, Kind::arrive, counting, scheduler.now(), {.token = token});
    }
  }
  end_block(rank);
}

Task dispatch_gemm(Rank& rank) {
  World& world = rank.world;
  const Study study = world.config.study;
  const bool communicates = study != Study::compute_all && study != Study::compute_split;
  const bool gated = communicates && study != Study::gates_open;
  const int compute_sms =
      study == Study::compute_all ? world.sms() : world.sms() - world.config.dispatch_comm_sms;
  const int comm_sms = communicates ? world.config.dispatch_comm_sms : 0;

  const Time begin = world.scheduler.now();
  begin_kernel(rank, compute_sms + comm_sms);
  for (int block = 0; block < compute_sms; ++block) {
    world.scheduler.spawn(compute_block(rank, block, compute_sms, gated));
  }
  for (int block = 0; block < comm_sms; ++block) {
    world.scheduler.spawn(dispatch_block(rank, block));
  }
  co_await rank.running->opened();
  world.recorder.slice(rank.stream, Kind::dispatch_gemm, begin, world.scheduler.now());
}

}  // namespace fusescope::engine::sim
