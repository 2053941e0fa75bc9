// Kernel 1: kernels/dispatch_gemm.cuh and kernels/communication.cuh.
#include "protocol/layer/background_fetch.hpp"
#include "protocol/layer/resident_kernel.hpp"
#include "protocol/layer/token_copies.hpp"

namespace fusescope::protocol {
namespace {

struct RowSlot {
  Layer& layer;
  const Round& round;
  const BlockPlaces& smem;
  int rank;
  int slot;
  int block, blocks;  // among the communication blocks
  int tokens;         // so many, from the begin of the pull order
};

bool reaches_into_room(const RowSlot& r) {
  const Layer& layer = r.layer;
  return layer.has(Bug::room_reached_by_slots) && layer.s.fetches_beside_tiles() &&
         r.slot + 1 == layer.s.config.tokens_per_block;
}

// Communication::run_slot. One thread per row slot.
Task run_slot(Thread& t, RowSlot r) {
  Layer& layer = r.layer;
  const Round& round = r.round;
  const MbarrierId landed = r.smem.landed + r.slot;
  const Span row = layer.smem_row(r.smem, reaches_into_room(r) ? kRoomRow : r.slot);
  t.init_mbarrier(landed, 1, true);
  if (!layer.has(Bug::pull_proxy_fence_missing)) {
    t.fence_proxy_async();
  }

  const std::uint64_t earlier = co_await layer.aborted(t);
  bool stopped = earlier != 0;
  std::uint32_t parity = 0;
  const int per_block = layer.s.config.tokens_per_block;
  for (int i = r.slot * r.blocks + r.block; i < r.tokens; i += r.blocks * per_block) {
    const int token = token_at(t, layer, round, i);
    if (stopped) {
      break;
    }
    // pull
    const bool started = !pull_is_lost(t, layer, round, token);
    const bool in_place = is_in_place(t, layer, token);
    if (!in_place || !started) {
      if (started) {
        start_pull(t, layer, round, token, row, landed);
      }
      const bool pulled = co_await t.wait_phase(landed, parity, true);
      stopped = !pulled;
      if (stopped) {
        if (started && !layer.has(Bug::pull_not_drained)) {
          co_await t.wait_phase(landed, parity);  // whatever the abort word says
        }
        break;
      }
      if (!layer.has(Bug::pull_parity_kept)) {
        parity ^= 1;
      }
    }
    if (!in_place) {
      start_scatter(t, layer, round, token, row);
      if (layer.has(Bug::arrival_counted_after_read)) {
        co_await t.wait_read();
      } else {
        co_await t.wait_stored();
      }
      if (!layer.has(Bug::stored_proxy_fence_missing)) {
        t.fence_proxy_async();
      }
    }
    const bool fenced = !in_place && !layer.has(Bug::arrival_fence_missing);
    co_await count_arrivals(t, layer, round, token, fenced);
  }
  t.fence_proxy_async();
}

// In a block that fetches first.
Task run_lane(Thread& t, RowSlot r, GemmCall c) {
  co_await t.meet(c.block.named + kGemmBarrier, 1, kBlockThreads);
  co_await run_slot(t, r);
  co_await meet_warp(t, c, r.slot % consumers(c));
}

// dispatch_gemm_kernel, compute blocks: how a role of `threads` threads comes to the GEMM and leaves it, where
// `lanes` of them begin as row slots. The block's first thread sets up its barriers.
template <class Tiles>
Task run_role(Thread& t, GemmCall c, int threads, int lanes, bool is_first, Tiles tiles) {
  if (is_first) {
    if (c.rest_from >= 0) {
      init_background_fetch(t, c);
    }
    init_gemm(t, c);
  }
  co_await t.meet(c.block.named + kGemmBarrier, threads - lanes, kBlockThreads);
  co_await tiles(t, c);
  co_await t.meet(c.block.named + kGemmBarrier, threads, kBlockThreads);
}

Task producer(Thread& t, const GemmCall& c) {
  return run_role(t, c, kProducerThreads, 0, false, c.gathers ? gather_tiles : produce_tiles);
}

// Or the relay.
Task scheduler(Thread& t, const GemmCall& c) {
  return run_role(t, c, kSchedulerThreads, 0, false, c.gathers ? relay_stages : schedule_tiles);
}

Task storer(Thread& t, const GemmCall& c, int group) {
  return run_role(t, c, kStorerThreads, 0, false, [group](Thread& thread, const GemmCall& gemm) {
    return store_tiles(thread, gemm, group);
  });
}

// follow_prologue, by kernel 1's first thread. The prologue has ended: blocks that begin earlier wait for
// that.
Task say_begun(Thread& t, Layer& layer, const Round& round) {
  if (layer.overlaps() && !layer.loses(Fault::lost_begun, t.rank(), round)) {
    const RankPlaces& mine = layer.places[t.rank()];
    const Order order = layer.has(Bug::begun_relaxed) ? Order::relaxed : Order::release;
    co_await t.store(mine.begun, t.read(mine.iteration, kAnyStamp), order, Scope::gpu);
  }
}

Task consumer(Thread& t, GemmCall c, int group, int warp) {
  const int warps = consumer_warps(c.layer.s, c.activates);
  const bool is_first = group == 0 && warp == 0;
  if (is_first && c.worker == 0) {
    co_await say_begun(t, c.layer, c.round);
  }
  co_await run_role(t, c, kConsumerThreads / warps, slots_of(c, group * warps + warp), is_first,
                    [group, warp](Thread& thread, const GemmCall& gemm) {
                      return consume_tiles(thread, gemm, group, warp);
                    });
}

}  // namespace

Task begin_dispatch_gemm(ResidentKernel& kernel, Layer& layer, int rank, const Round& round) {
  Machine& machine = layer.machine;
  const Scenario& s = layer.s;
  const RankPlaces& mine = layer.places[rank];
  co_await kernel.take_sms(s.sms);
  const int comm_blocks = s.config.dispatch_comm_sms;
  const int compute_blocks = s.sms - comm_blocks;
  const bool fetches_first = comm_blocks == 0;
  const int head = s.tokens() * s.config.dispatch_head / 100;
  const int slots = s.config.tokens_per_block;
  for (int block = 0; block < s.sms; ++block) {
    const BlockPlaces& b = kernel.begin_block(block);
    if (block >= compute_blocks) {
      for (int slot = 0; slot < slots; ++slot) {
        Thread& t = kernel.thread(Role::puller, block, slot, true);
        machine.start(t, run_slot(t, {layer, round, b, rank, slot, block - compute_blocks,
                                      comm_blocks, s.tokens()}));
      }
      kernel.end_block();
      continue;
    }
    const bool fused = s.config.activation == Activation::fused;
    const GemmCall gemm{
        .layer = layer,
        .round = round,
        .block = b,
        .rank = rank,
        .worker = block,
        .workers = compute_blocks,
        .which = 1,
        .k_steps = s.k_steps,
        .a = mine.gathered,
        .a_per_block = s.row_block,
        .a_per_step = 0,
        .gathers = layer.gathers(),
        .d = fused ? mine.act : mine.gate_up,
        .next_tile = s.config.tile_counter == TileCounter::both ? mine.next_tile : -1,
        .activates = fused,
        .a_has_padding = true,
        .halves = true,
        .gate = mine.arrivals,
        .open_at = static_cast<std::uint64_t>(s.row_block),
        .row_slots = fetches_first ? slots : 0,
        .rest_from = s.fetches_beside_tiles() ? head : -1,
        .signal = mine.computed,
        .loses_tile = layer.loses(Fault::lost_activations, rank, round)};
    Thread& p = kernel.thread(Role::producer, block, -1, false);
    machine.start(p, producer(p, gemm));
    Thread& r = kernel.thread(layer.gathers() ? Role::relay : Role::scheduler, block, -1,
                              s.fetches_beside_tiles());
    machine.start(r, scheduler(r, gemm));
    for (int slot = 0; slot < gemm.row_slots; ++slot) {
      Thread& t = kernel.thread(Role::puller, block, slot, true);
      machine.start(t,
                    run_lane(t, {layer, round, b, rank, slot, block, compute_blocks, head}, gemm));
    }
    const int warps = consumer_warps(s, gemm.activates);
    for (int group = 0; group < kConsumers; ++group) {
      for (int warp = 0; warp < warps; ++warp) {
        Thread& consuming = kernel.thread(Role::consumer, block, group * warps + warp, false);
        machine.start(consuming, consumer(consuming, gemm, group, warp));
      }
      Thread& storing = kernel.thread(Role::storer, block, group, true);
      machine.start(storing, storer(storing, gemm, group));
    }
    kernel.end_block();
  }
}

}  // namespace fusescope::protocol
