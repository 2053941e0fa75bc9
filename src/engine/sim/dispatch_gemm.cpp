// Kernel 1: AllGather + gate/up GEMM. Communication blocks, or every block before its first tile (and beside
// its tiles: dispatch_head), pull tokens, scatter them to their slots (dispatch gather: store peers' tokens
// once) and count the arrivals; compute blocks wait at the gate of each tile's row block.
#include <algorithm>

#include "engine/sim/kernels.hpp"
#include "timeline/records/decode_records.hpp"

namespace fusescope::engine::sim {
namespace {

// Whose shared memory a token slot is in, how many blocks share the tokens, and the SM's path between links,
// shared memory and device memory, which its slots share.
struct Fetcher {
  Role role;
  int block;
  int blocks;
  int first_lane;
  Server copies;
};

// All before `end` in pull order; returns when the block's share is there.
Task fetch_tokens(Rank& rank, Fetcher& fetcher, int end);
Task fetch_beside_tiles(Rank& rank, Fetcher& fetcher, int begin, FillCounter& finished);

int head_tokens(const World& world) {
  constexpr long long kAll = 100;
  return static_cast<int>(world.shape.tokens() *
                          static_cast<long long>(world.config.dispatch_head) / kAll);
}

// With no communication block a compute block fetches its share of the head before its first tile, and of the
// rest beside its tiles.
Task compute_block(Rank& rank, int block, int blocks, bool gated, bool fetches) {
  World& world = rank.world;
  Fetcher fetcher{Role::compute, block, blocks, timeline::kFirstFreeLane, {}};
  const int head = head_tokens(world);
  const bool rest = fetches && head < world.shape.tokens();
  FillCounter finished(0, 1, "the count of tokens fetched beside the tiles of block", block);
  if (fetches) {
    co_await fetch_tokens(rank, fetcher, head);
  }
  if (rest) {
    world.scheduler.spawn(fetch_beside_tiles(rank, fetcher, head, finished));
  }
  const TrackId track =
      world.recorder.add_track(rank.id, Stage::dispatch_gemm, Role::compute, block);
  const Gemm gemm = gemm_1(rank);
  const int end = tiles(rank, gemm.costs);
  for (int tile = block; tile < end; tile = tile_after(rank, Stage::dispatch_gemm, tile, blocks)) {
    const RowTile rows = rows_of(rank, gemm.costs, tile);
    if (gated) {
      const Time begin = world.scheduler.now();
      for (int row_block = rows.first; row_block <= rows.last(); ++row_block) {
        co_await rank.arrivals[row_block].opened();
      }
      world.recorder.slice(track, Kind::gate_wait, begin, world.scheduler.now(),
                           {.row_block = rows.first, .index = tile % gemm.costs.n_tiles});
    }
    co_await run_tile(rank, gemm, track, tile);
    count_tile(rank, rank.computed, rows);
  }
  if (rest) {
    co_await finished.opened();
  }
  end_block(rank, Stage::dispatch_gemm);
}

bool is_routed_to(const Rank& rank, int token, int expert) {
  for (int k = 0; k < rank.world.shape.topk; ++k) {
    if (rank.expert_of_row_block[static_cast<std::size_t>(rank.row_block(token, k))] == expert) {
      return true;
    }
  }
  return false;
}

// Own tokens, and those that peers have pushed, are where the GEMM gathers rows from: there is nothing to copy.
// The look at one takes as long as makes an event, which the events behind it refer to.
constexpr double kLook = 1;  // [ns]

bool is_in_place(const Rank& rank, int token) {
  const World& world = rank.world;
  return pushes_tokens(world.config) ||
         (gathers_rows(world.config) && world.shape.source_rank(token) == rank.id);
}

// Whose memory it is in when kernel 1 begins.
int has_row(const Rank& rank, int token) {
  return is_in_place(rank, token) ? rank.id : rank.world.shape.source_rank(token);
}

double copy_row(Rank& rank, Server& block, int source, double now) {
  World& world = rank.world;
  const Costs& costs = world.costs;
  const double noise = rank.noise();
  double landed = 0;
  if (source == rank.id) {
    landed = block.reserve(now, costs.pull_local_row * noise);
    landed = std::max(landed, rank.memory.move(now, costs.row_bytes));
  } else {
    landed = block.reserve(now, costs.pull_remote_row * noise);
    landed = std::max(landed, world.ranks[source]->egress.reserve(now, costs.link_pull_row));
    landed = std::max(landed, rank.ingress.reserve(now, costs.link_pull_row));
    landed = std::max(landed, rank.pull_lines[source].reserve(now, costs.line_row));
    landed = std::max(landed, world.fabric.reserve(now, costs.fabric_row));
  }
  return landed + world.profile.pull_latency * 1e3;
}

}  // namespace

// The row crosses the block's own copy path, its source's egress, the fabric and this rank's ingress,
// each with its own queue.
double pull_row(Rank& rank, Server& block, int token, double now) {
  World& world = rank.world;
  const int source = world.shape.source_rank(token);
  double landed = is_in_place(rank, token) ? now + kLook : copy_row(rank, block, source, now);
  landed += static_cast<double>(world.injected(InjectPoint::pull));
  if (world.injects(InjectPoint::source_rank) && source == world.config.inject.rank) {
    landed += world.config.inject.delay_ns;
  }
  if (world.injects(InjectPoint::expert) && is_routed_to(rank, token, world.config.inject.expert)) {
    landed += world.config.inject.delay_ns;
  }
  if (world.injects(InjectPoint::token) && token == world.config.inject.token) {
    landed += world.config.inject.delay_ns;
  }
  return landed;
}

double store_row(Rank& rank, Server& block, int token, double now) {
  World& world = rank.world;
  const Costs& costs = world.costs;
  if (is_in_place(rank, token)) {
    return now + kLook;
  }
  const bool scatters = world.config.dispatch == Dispatch::scatter;
  const int copies = scatters ? world.shape.topk : 1;
  double written = block.reserve(now, costs.store_row * copies * rank.noise());
  written = std::max(written, rank.memory.move(now, costs.row_bytes * copies));
  for (int k = 0; scatters && k < copies; ++k) {
    rank.memory.touch(rank.gathered, static_cast<std::size_t>(rank.row_block(token, k)));
  }
  return written + world.profile.store_latency * 1e3 +
         static_cast<double>(world.injected(InjectPoint::scatter));
}

namespace {

// What one slot fetches: every `step`th place in pull order.
struct Places {
  int first;
  int end;
  int step;
};

// A token slot: a thread of its own warp, which one slot's wait holds up no other.
Task fetch_slot(Rank& rank, Fetcher& fetcher, int slot, Places places, FillCounter& finished) {
  World& world = rank.world;
  Scheduler& scheduler = world.scheduler;
  const Config& config = world.config;
  const bool by_slot =
      config.pull_order == PullOrder::by_slot || config.study == Study::ideal_order;
  const TrackId track = world.recorder.add_track(rank.id, Stage::dispatch_gemm, fetcher.role,
                                                 fetcher.block, fetcher.first_lane + slot);

  for (int place = places.first; place < places.end; place += places.step) {
    const int token = by_slot ? rank.tables.pull_order[place] : place;

    const Time issued = scheduler.now();
    co_await scheduler.until(
        rounded(pull_row(rank, fetcher.copies, token, static_cast<double>(issued))));
    const Time landed = scheduler.now();
    world.recorder.slice(track, Kind::pull, issued, landed,
                         {.token = token, .peer = has_row(rank, token)});

    co_await scheduler.until(
        rounded(store_row(rank, fetcher.copies, token, static_cast<double>(landed))));
    const Time written = scheduler.now();
    world.recorder.slice(track, Kind::scatter, landed, written, {.token = token});

    co_await scheduler.until(written + us(world.profile.arrive_latency));
    for (int k = 0; k < world.shape.topk; ++k) {
      rank.arrivals[rank.row_block(token, k)].add(scheduler, us(world.profile.poll_latency));
    }
    world.recorder.slice(track, Kind::arrive, written, scheduler.now(), {.token = token});
  }
  finished.add(scheduler, 0);
}

// One block's share, by all of its slots. They stride over the blocks first, so that the blocks together fetch
// a contiguous window of pull order.
Task fetch_tokens(Rank& rank, Fetcher& fetcher, int end) {
  const int slots = rank.world.config.tokens_per_block;
  FillCounter finished(0, slots, "the slot count of fetching block", fetcher.block);
  for (int slot = 0; slot < slots; ++slot) {
    const Places places{slot * fetcher.blocks + fetcher.block, end, fetcher.blocks * slots};
    rank.world.scheduler.spawn(fetch_slot(rank, fetcher, slot, places, finished));
  }
  co_await finished.opened();
}

// One thread and the one slot that tiles leave room for: its share of what is behind the head, token by token.
Task fetch_beside_tiles(Rank& rank, Fetcher& fetcher, int begin, FillCounter& finished) {
  const Places places{begin + fetcher.block, rank.world.shape.tokens(), fetcher.blocks};
  return fetch_slot(rank, fetcher, rank.world.config.tokens_per_block, places, finished);
}

Task communication_block(Rank& rank, int block, int blocks) {
  Fetcher fetcher{Role::communication, block, blocks, 0, {}};
  co_await fetch_tokens(rank, fetcher, rank.world.shape.tokens());
  end_block(rank, Stage::dispatch_gemm);
}

}  // namespace

void start_dispatch_gemm(Rank& rank) {
  World& world = rank.world;
  const Study study = world.config.study;
  const bool communicates = study != Study::compute_all && study != Study::compute_split;
  const bool gated = communicates && study != Study::gates_open;
  const int compute_sms =
      study == Study::compute_all ? world.sms() : world.sms() - world.config.dispatch_comm_sms;
  const int comm_sms = communicates ? world.config.dispatch_comm_sms : 0;
  const bool fetches = communicates && comm_sms == 0;

  begin_kernel(rank, Stage::dispatch_gemm, compute_sms + comm_sms);
  for (int block = 0; block < compute_sms; ++block) {
    world.scheduler.spawn(compute_block(rank, block, compute_sms, gated, fetches));
  }
  for (int block = 0; block < comm_sms; ++block) {
    world.scheduler.spawn(communication_block(rank, block, comm_sms));
  }
}

}  // namespace fusescope::engine::sim
