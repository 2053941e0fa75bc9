#include "protocol/layer/gemm_reduce_scatter.hpp"

#include <algorithm>

#include "protocol/layer/gemm.hpp"

namespace fusescope::protocol {
namespace {

Label label(Role role, const char* kernel, int rank, int block = -1, int index = -1) {
  return {role, kernel, static_cast<std::int16_t>(rank), static_cast<std::int16_t>(block),
          static_cast<std::int16_t>(index)};
}

std::uint64_t input_of(const Round& round, int rank, int token, int k) {
  return Round::multiply(round.input(token),
                         static_cast<std::uint64_t>(rank) * 8 + static_cast<std::uint64_t>(k));
}

// --- the kernel ------------------------------------------------------------------------------------

// Of the copy warpgroup, a role of `threads` threads.
template <class Tiles>
Task copy_role(Thread& t, GemmCall c, int threads, Tiles tiles) {
  co_await t.meet(c.block.named + kGemmBarrier, threads, kBlockThreads);
  co_await tiles(t, c);
  co_await t.meet(c.block.named + kGemmBarrier, threads, kBlockThreads);
  if (c.layer.s.config.all_hands && !c.layer.has(Bug::join_barrier_missing)) {
    co_await t.meet(c.block.named + kJoinBarrier, threads, kBlockThreads);
  }
}

Task producer(Thread& t, const GemmCall& c) {
  return copy_role(t, c, kProducerThreads, produce_tiles);
}

Task scheduler(Thread& t, const GemmCall& c) {
  return copy_role(t, c, kSchedulerThreads, schedule_tiles);
}

Task storer(Thread& t, const GemmCall& c, int group) {
  return copy_role(t, c, kStorerThreads, [group](Thread& thread, const GemmCall& gemm) {
    return store_tiles(thread, gemm, group);
  });
}

// The few pushers of a block are threads of the first group's warps.
Task consumer(Thread& t, GemmCall c, int group, int warp) {
  Layer& layer = c.layer;
  const int threads = kConsumerThreads / consumer_warps(layer.s, c.activates);
  const bool is_first = group == 0 && warp == 0;
  if (is_first) {
    init_gemm(t, c);
  }
  co_await t.meet(c.block.named + kGemmBarrier, threads, kBlockThreads);
  co_await consume_tiles(t, c, group, warp);
  // With the GEMM's own end barrier, all of its threads have met: a join barrier less is no bug then.
  const bool early = layer.has(Bug::join_barrier_missing) && layer.s.config.all_hands;
  if (!early) {
    co_await t.meet(c.block.named + kGemmBarrier, threads, kBlockThreads);
    if (!layer.s.config.all_hands) {
      co_return;
    }
    co_await t.meet(c.block.named + kJoinBarrier, threads, kBlockThreads);
  }
  for (int pusher = 0; is_first && pusher < layer.s.config.tokens_per_block; ++pusher) {
    Label own = t.label();
    own.role = Role::pusher;
    own.index = static_cast<std::int16_t>(pusher);
    Thread& pushing = t.machine().fork(t, own, true);
    t.machine().start(pushing, run_pusher(pushing, {layer, c.round, c.block, pusher}));
  }
  if (early) {
    co_await t.meet(c.block.named + kGemmBarrier, threads, kBlockThreads);
  }
}

Task gemm_reduce_scatter(Thread& stream, Layer& layer, int rank, const Round& round) {
  Machine& machine = layer.machine;
  const Scenario& s = layer.s;
  const RankPlaces& mine = layer.places[rank];
  const int compute_blocks = s.sms - s.config.combine_comm_sms;
  constexpr const char* kName = "gemm_reduce_scatter";
  co_await stream.take_sms(s.sms);
  const LaunchId launch = machine.begin_launch();
  for (int block = 0; block < s.sms; ++block) {
    const BlockPlaces& b = layer.fresh_block(rank, block);
    if (block >= compute_blocks) {
      for (int pusher = 0; pusher < s.config.tokens_per_block; ++pusher) {
        Thread& t = machine.add_thread(stream, launch,
                                       label(Role::pusher, kName, rank, block, pusher), true);
        machine.start(t, run_pusher(t, {layer, round, b, pusher}));
      }
      continue;
    }
    const GemmCall gemm{.layer = layer,
                        .round = round,
                        .block = b,
                        .rank = rank,
                        .worker = block,
                        .workers = compute_blocks,
                        .which = 2,
                        .k_steps = s.n_tiles(),
                        .a = mine.act,
                        .a_per_block = s.n_tiles() * s.row_block,
                        .a_per_step = s.row_block,
                        .d = mine.partial,
                        .activates = false,
                        .a_has_padding = false,
                        .halves = false,
                        .signal = mine.done,
                        .loses_tile = layer.loses(Fault::lost_tile, rank, round)};
    Thread& p =
        machine.add_thread(stream, launch, label(Role::producer, kName, rank, block), false);
    machine.start(p, producer(p, gemm));
    Thread& f =
        machine.add_thread(stream, launch, label(Role::scheduler, kName, rank, block), false);
    machine.start(f, scheduler(f, gemm));
    const int warps = consumer_warps(s, gemm.activates);
    for (int group = 0; group < kConsumers; ++group) {
      for (int warp = 0; warp < warps; ++warp) {
        Thread& c = machine.add_thread(
            stream, launch, label(Role::consumer, kName, rank, block, group * warps + warp), false);
        machine.start(c, consumer(c, gemm, group, warp));
      }
      Thread& w =
          machine.add_thread(stream, launch, label(Role::storer, kName, rank, block, group), true);
      machine.start(w, storer(w, gemm, group));
    }
  }
  co_await stream.join(launch);
  machine.give_sms(s.device_of(rank), s.sms);
}

// --- the last step ---------------------------------------------------------------------------------

Task reduce_planes(Thread& t, Layer& layer, const Round& round, int block, int blocks) {
  const Scenario& s = layer.s;
  const RankPlaces& mine = layer.places[t.rank()];
  const int own_segment = segment_of(s, t.rank(), t.rank());
  int seen = -1;
  for (int i = block; i < s.tokens_per_rank; i += blocks) {
    const int chunk = layer.chunk_of(i);
    if (chunk != seen && !(seen >= 0 && layer.has(Bug::first_chunk_opens_all))) {
      bool raised = true;
      const std::uint64_t iteration = t.read(mine.iteration, kAnyStamp);
      for (int sender = 0; sender < s.ranks; ++sender) {
        if (sender == t.rank()) {
          continue;
        }
        const bool reached = co_await t.wait_at_least(layer.watermark(t.rank(), sender, chunk),
                                                      iteration, Order::acquire, Scope::system);
        raised = raised && reached;
      }
      if (!raised) {
        co_return;
      }
      seen = chunk;
    }
    std::uint64_t sum = 0;
    for (int sender = 0; sender < s.ranks; ++sender) {
      if (sender != t.rank()) {
        sum += t.read(layer.staging_cell(t.rank(), sender, i), round.stamp);
        continue;
      }
      std::array<std::uint64_t, 8> parts{};
      for (int n = 0; n < s.n_tiles(); ++n) {
        parts[n] = t.read(partial_cell(layer, t.rank(), own_segment * s.tokens_per_rank + i, n),
                          round.stamp);
      }
      sum += folded(parts.data(), s.n_tiles());
    }
    t.write(mine.output + i, sum, round.stamp);
  }
}

LaunchId launch_reduce_planes(Layer& layer, Thread& stream, int rank, const Round& round) {
  constexpr int kBlocks = 2;
  const LaunchId launch = layer.machine.begin_launch();
  const int blocks = std::min(kBlocks, layer.s.tokens_per_rank);
  for (int block = 0; block < blocks; ++block) {
    Thread& t = layer.machine.add_thread(stream, launch,
                                         label(Role::reducer, "reduce_planes", rank, block), false);
    layer.machine.start(t, reduce_planes(t, layer, round, block, blocks));
  }
  return launch;
}

// The host's inputs, in slot order; what a dense GEMM is to the grouped one.
void set_inputs(Thread& stream, const Layer& layer, int rank, const Round& round) {
  const Scenario& s = layer.s;
  const RankPlaces& mine = layer.places[rank];
  stream.write(mine.expert_rows, 0, round.stamp);
  stream.write(mine.slack, 0, round.stamp);
  for (int slot = 0; slot < round.tables[rank].rows(); ++slot) {
    for (int k = 0; k < s.n_tiles(); ++k) {
      const int segment = slot / s.tokens_per_rank;
      const int token = segment < s.ranks ? destination_of(s, rank, segment) * s.tokens_per_rank +
                                                slot % s.tokens_per_rank
                                          : -1;
      stream.write(layer.tile_cells(mine.act, slot / s.row_block, k) + slot % s.row_block,
                   token < 0 ? 0 : input_of(round, rank, token, k), round.stamp);
    }
  }
}

}  // namespace

void make_reduce_scatter_round(const Scenario& s, Round& round) {
  const int blocks = (s.tokens() + s.row_block - 1) / s.row_block;
  for (int rank = 0; rank < s.ranks; ++rank) {
    ScheduleTables tables;
    tables.expert_rows = {0, blocks * s.row_block};
    tables.slack.assign(blocks, 0);
    tables.slack.back() = blocks * s.row_block - s.tokens();
    round.tables.push_back(std::move(tables));
  }
  round.outputs.assign(s.tokens(), 0);
  for (int token = 0; token < s.tokens(); ++token) {
    for (int rank = 0; rank < s.ranks; ++rank) {
      std::array<std::uint64_t, 8> parts{};
      for (int n = 0; n < s.n_tiles(); ++n) {
        for (int k = 0; k < s.n_tiles(); ++k) {
          parts[n] +=
              Round::multiply(input_of(round, rank, token, k), Round::weights(2, rank, 0, n, k));
        }
      }
      round.outputs[token] += folded(parts.data(), s.n_tiles());
    }
  }
}

Task reduce_scatter_round(Thread& stream, Layer& layer, const std::vector<int>& ranks,
                          const Round& round, std::vector<LaunchId>& open_reduces) {
  for (const int rank : ranks) {
    set_inputs(stream, layer, rank, round);
    layer.begin_round(rank);
  }
  for (const int rank : ranks) {
    const LaunchId seeding = launch_seed_counters(layer, stream, rank, round);
    co_await stream.join(seeding);
  }
  if (!layer.has(Bug::entry_barrier_skipped)) {
    co_await device_barrier(stream, layer, ranks, round, BarrierPoint::entry);
  }
  for (const int rank : ranks) {
    co_await gemm_reduce_scatter(stream, layer, rank, round);
    layer.check_round(rank, round);
  }
  for (const LaunchId reduce : open_reduces) {
    co_await stream.join(reduce);
  }
  open_reduces.clear();
  for (const int rank : ranks) {
    const LaunchId reduce = launch_reduce_planes(layer, stream, rank, round);
    if (layer.has(Bug::staging_reused_early)) {
      open_reduces.push_back(reduce);
    } else {
      co_await stream.join(reduce);
      layer.check_outputs(rank, round);
    }
  }
}

}  // namespace fusescope::protocol
