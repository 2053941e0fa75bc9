// Kernel 2: down GEMM + top-k combine + push to the source rank. Compute blocks count finished tiles per
// row block; job blocks claim a token, wait for its K row blocks, sum its rows, push the sum to the
// token's source rank, count the push there, and the last push of a plane's chunk raises its watermark.
#include <algorithm>

#include "engine/sim/kernels.hpp"
#include "timeline/records/decode_records.hpp"

namespace fusescope::engine::sim {
namespace {

int token_of(const Rank& rank, int job) {
  const Config& config = rank.world.config;
  const bool by_ready =
      config.job_order == JobOrder::by_ready || config.study == Study::ideal_order;
  return by_ready ? rank.tables.job_order[job] : job;
}

// Of a token's K row blocks the one that became ready last.
int last_ready(const Rank& rank, int token) {
  int last = rank.row_block(token, 0);
  for (int k = 1; k < rank.world.shape.topk; ++k) {
    const int row_block = rank.row_block(token, k);
    if (rank.done[row_block].opened_at() > rank.done[last].opened_at()) {
      last = row_block;
    }
  }
  return last;
}

// Reads K rows and sums them in fp32; returns when the sum is in shared memory. The jobs on an SM share what
// it can read.
double sum_rows(Rank& rank, Server& sm, int token, double now) {
  World& world = rank.world;
  const Costs& costs = world.costs;
  const int topk = world.shape.topk;
  double bytes = 0;
  for (int k = 0; k < topk; ++k) {
    const std::size_t row_block = static_cast<std::size_t>(rank.row_block(token, k));
    bytes += rank.memory.touch(rank.partials, row_block) ? 0 : costs.row_bytes;
  }
  const double read = bytes > 0 ? rank.memory.move(now, bytes) : now;
  const double summed = sm.reserve(now, costs.read_row * topk * rank.noise());
  return std::max(read, summed) + world.profile.job_latency * 1e3 +
         static_cast<double>(world.injected(InjectPoint::job));
}

// Copies the sum into this rank's plane on the receiver; returns when the copy is complete.
double push_row(Rank& rank, int receiver, double now) {
  World& world = rank.world;
  const Costs& costs = world.costs;
  double moved = now + costs.push_row * rank.noise();
  if (receiver == rank.id) {
    moved = std::max(moved, rank.memory.move(now, costs.row_bytes));
  } else {
    moved = std::max(moved, rank.egress.reserve(now, costs.link_push_row));
    moved = std::max(moved, world.ranks[receiver]->ingress.reserve(now, costs.link_push_row));
    moved = std::max(moved, rank.push_lines[receiver].reserve(now, costs.line_row));
    moved = std::max(moved, world.fabric.reserve(now, costs.fabric_row));
  }
  return moved + world.profile.push_latency * 1e3 +
         static_cast<double>(world.injected(InjectPoint::push));
}

// One job, from the wait for its rows to the count of its push.
Task push_job(Rank& rank, Server& sm, TrackId track, int job) {
  World& world = rank.world;
  Scheduler& scheduler = world.scheduler;
  Recorder& recorder = world.recorder;
  const int token = token_of(rank, job);
  const int receiver = world.shape.source_rank(token);

  const Time waiting = scheduler.now();
  if (world.config.study != Study::gates_open) {
    for (int k = 0; k < world.shape.topk; ++k) {
      co_await rank.done[rank.row_block(token, k)].opened();
    }
    recorder.slice(track, Kind::ready_wait, waiting, scheduler.now(),
                   {.token = token, .row_block = last_ready(rank, token), .index = job});
  }

  const Time summing = scheduler.now();
  co_await scheduler.until(rounded(sum_rows(rank, sm, token, static_cast<double>(summing))));
  recorder.slice(track, Kind::sum, summing, scheduler.now(), {.token = token, .index = job});

  const Time pushing = scheduler.now();
  co_await scheduler.until(rounded(push_row(rank, receiver, static_cast<double>(pushing))));
  const Args args{.token = token, .index = job, .peer = receiver};
  recorder.slice(track, Kind::push, pushing, scheduler.now(), args);

  const Time electing = scheduler.now();
  co_await scheduler.until(electing + us(world.profile.elect_latency));
  recorder.slice(track, Kind::elect, electing, scheduler.now(), args);
  const int chunk = world.chunk_of(token);
  if (rank.election.counted_last(receiver, chunk)) {
    const Time raising = scheduler.now();
    co_await scheduler.until(raising + us(world.profile.watermark_latency) +
                             world.injected(InjectPoint::watermark));
    recorder.slice(track, Kind::watermark, raising, scheduler.now(),
                   {.index = chunk, .peer = receiver});
    world.ranks[receiver]->watermark(rank.id, chunk).add(scheduler, us(world.profile.poll_latency));
  }
}

// Claims jobs until none is left. A short-lived block pays its launch where a resident one pays the
// claim; either way the job's number comes in order.
Task run_jobs(Rank& rank, Server& sm, TrackId track) {
  World& world = rank.world;
  Scheduler& scheduler = world.scheduler;
  const bool resident = world.config.combine == Combine::dispenser;
  const Time cost = us(resident ? world.profile.claim_latency : world.profile.block_launch);
  while (true) {
    const int job = rank.dispenser.claim();
    if (job >= rank.dispenser.jobs()) {
      break;
    }
    const Time claiming = scheduler.now();
    const int token = token_of(rank, job);
    rank.dispenser.take(token);
    co_await scheduler.until(claiming + cost);
    world.recorder.slice(track, Kind::claim, claiming, scheduler.now(),
                         {.token = token, .index = job});
    co_await push_job(rank, sm, track, job);
  }
}

Task run_place(Rank& rank, Server& sm, TrackId track, FillCounter& finished) {
  co_await run_jobs(rank, sm, track);
  finished.add(rank.world.scheduler, 0);
}

// Short-lived blocks on one SM: as many places as it has room for blocks, and a new block in each as soon as
// the one before has ended.
struct Sm {
  Role role;
  int block;
  int first_lane;
};
Task run_short_lived(Rank& rank, Sm where, int places) {
  if (places == 0) {
    co_return;
  }
  World& world = rank.world;
  Server sm;
  FillCounter finished(0, places, "the job blocks of SM", where.block);
  for (int place = 0; place < places; ++place) {
    const TrackId track = world.recorder.add_track(rank.id, Stage::gemm_combine_push, where.role,
                                                   where.block, where.first_lane + place);
    world.scheduler.spawn(run_place(rank, sm, track, finished));
  }
  co_await finished.opened();
}

// What a compute block's SM does once its tiles are done.
enum class Then { ends, joins, holds_short_lived };

Task compute_block(Rank& rank, int block, int blocks, Then then) {
  World& world = rank.world;
  co_await get_sm(rank, Stage::gemm_combine_push, block);
  const TrackId track =
      world.recorder.add_track(rank.id, Stage::gemm_combine_push, Role::compute, block);
  const Gemm gemm = gemm_2(rank);
  const int end = tiles(rank, gemm.costs);
  for (int tile = block; tile < end;
       tile = tile_after(rank, Stage::gemm_combine_push, tile, blocks)) {
    const RowTile rows = rows_of(rank, gemm.costs, tile);
    if (world.overlaps()) {
      const Time begin = world.scheduler.now();
      for (int row_block = rows.first; row_block <= rows.last(); ++row_block) {
        co_await rank.computed[row_block].opened();
      }
      world.recorder.slice(track, Kind::activation_wait, begin, world.scheduler.now(),
                           {.row_block = rows.first, .index = tile % gemm.costs.n_tiles});
    }
    co_await run_tile(rank, gemm, track, tile);
    count_tile(rank, rank.done, rows);
  }
  if (then == Then::joins) {
    Server sm;
    co_await run_jobs(rank, sm, track);
  } else if (then == Then::holds_short_lived) {
    co_await run_short_lived(rank, {Role::compute, block, timeline::kFirstFreeLane},
                             static_cast<int>(world.profile.job_blocks_per_freed_sm));
  }
  co_await end_after_kernel_before(rank, Stage::gemm_combine_push);
  end_block(rank, Stage::gemm_combine_push);
}

Task short_lived_blocks(Rank& rank, int sm) {
  co_await run_short_lived(rank, {Role::communication, sm, 0},
                           static_cast<int>(rank.world.profile.job_blocks_per_sm));
  co_await end_after_kernel_before(rank, Stage::gemm_combine_push);
  end_block(rank, Stage::gemm_combine_push);
}

}  // namespace

Task job_block(Rank& rank, TrackId track, int block) {
  co_await get_sm(rank, Stage::gemm_combine_push, block);
  Server sm;
  co_await run_jobs(rank, sm, track);
  co_await end_after_kernel_before(rank, Stage::gemm_combine_push);
  end_block(rank, Stage::gemm_combine_push);
}

void start_gemm_combine_push(Rank& rank) {
  World& world = rank.world;
  const Config& config = world.config;
  const bool combines = config.study != Study::compute_all && config.study != Study::compute_split;
  const int compute_sms =
      config.study == Study::compute_all ? world.sms() : world.sms() - config.combine_comm_sms;
  const int comm_sms = combines ? config.combine_comm_sms : 0;
  const bool resident = config.combine == Combine::dispenser;
  const Then then = !combines          ? Then::ends
                    : !resident        ? Then::holds_short_lived
                    : config.all_hands ? Then::joins
                                       : Then::ends;

  begin_kernel(rank, Stage::gemm_combine_push, compute_sms + comm_sms);
  for (int block = 0; block < compute_sms; ++block) {
    world.scheduler.spawn(compute_block(rank, block, compute_sms, then));
  }
  for (int block = 0; block < comm_sms; ++block) {
    if (!resident) {
      world.scheduler.spawn(short_lived_blocks(rank, block));
      continue;
    }
    const TrackId track =
        world.recorder.add_track(rank.id, Stage::gemm_combine_push, Role::communication, block);
    world.scheduler.spawn(job_block(rank, track, compute_sms + block));
  }
}

}  // namespace fusescope::engine::sim
