// kernels/prologue.cu and schedule_build.cuh: ids exchange, tables, counters and copy-in in one kernel. A
// block is one thread here. Those of the cluster send a part of the ids each, and each takes those of its own
// hits; the first writes all tables, since none of them is read before the kernel has ended.
#include <fmt/format.h>

#include "protocol/layer/layer.hpp"

namespace fusescope::protocol {
namespace {

constexpr int kCopyBlocks = 2;

std::uint64_t copied_target(std::uint64_t iteration) {
  return iteration * kBarrierPoints + static_cast<std::uint64_t>(BarrierPoint::copied);
}

// kernels/layer_args.hpp. What stands for an id is the stamp of the round that it belongs to.
constexpr int kStampedIdBits = 16;
std::uint64_t stamp_id(const Round& round, std::uint64_t iteration) {
  return iteration << kStampedIdBits | static_cast<std::uint64_t>(round.stamp);
}
std::uint64_t iteration_of(std::uint64_t stamped) {
  return stamped >> kStampedIdBits;
}
std::int32_t round_of(std::uint64_t stamped) {
  return static_cast<std::int32_t>(stamped & ((1U << kStampedIdBits) - 1));
}

// --- copy-in: blocks behind the cluster ----------------------------------------------------------

void send_weights_to_all(Thread& t, const Layer& layer, const Round& round, int part, int parts) {
  for (int peer = 0; peer < layer.s.ranks; ++peer) {
    send_weights(t, layer, round, peer, part, parts);
  }
}

// Generic stores to the others' memory.
void push_token(Thread& t, const Layer& layer, const Round& round, int i, std::uint64_t row) {
  for (int peer = 0; peer < layer.s.ranks; ++peer) {
    const int rows_of = layer.has(Bug::tokens_pushed_to_receivers_rows) ? peer : t.rank();
    if (peer != t.rank()) {
      t.write(layer.among_all(peer, rows_of * layer.s.tokens_per_rank + i), row, round.stamp);
    }
  }
}

// By planted bugs: not where they are copied.
Task push_tokens(Thread& t, const Layer& layer, const Round& round, int block) {
  for (int i = block; i < layer.s.tokens_per_rank; i += kCopyBlocks) {
    push_token(t, layer, round, i, t.read(layer.places[t.rank()].input + i, round.stamp));
  }
  co_return;
}

// This rank's final reduce of the last iteration has seen the watermarks that every rank raised after its kernel 1:
// nobody reads these rows any more, here or where they are pushed to.
void copy_tokens(Thread& t, const Layer& layer, const Round& round, int block) {
  const RankPlaces& mine = layer.places[t.rank()];
  const bool pushes = layer.pushes_tokens() && !layer.has(Bug::tokens_pushed_behind_count) &&
                      !layer.has(Bug::tokens_pushed_beside_reduce);
  for (int i = block; i < layer.s.tokens_per_rank; i += kCopyBlocks) {
    const std::uint64_t row = t.read(mine.input + i, round.stamp);
    if (pushes) {
      push_token(t, layer, round, i, row);
    }
    t.write(mine.tokens + i, row, round.stamp);
  }
}

Task raise_copied(Thread& t, Layer& layer, const Round& round, std::uint64_t iteration) {
  if (layer.loses(Fault::lost_barrier, t.rank(), round)) {
    co_return;
  }
  const bool relaxed = layer.has(Bug::copied_raised_relaxed);
  for (int peer = 0; peer < layer.s.ranks; ++peer) {
    if (!relaxed && !layer.has(Bug::releasing_fences_missing)) {
      t.fence(Scope::system);
    }
    co_await t.store(layer.places[peer].barrier_flags + t.rank(), copied_target(iteration),
                     relaxed ? Order::relaxed : Order::release, Scope::system);
  }
}

Task copy_in(Thread& t, Layer& layer, const Round& round, int block) {
  const RankPlaces& mine = layer.places[t.rank()];
  const std::uint64_t iteration = t.read(mine.iteration, kAnyStamp) + 1;
  const bool counted_first = layer.has(Bug::weights_sent_behind_count);
  if (!counted_first && !layer.has(Bug::weights_sent_by_cluster)) {
    send_weights_to_all(t, layer, round, block, kCopyBlocks);
  }
  copy_tokens(t, layer, round, block);
  if (layer.has(Bug::copied_by_any_block)) {
    if (block == 0) {
      co_await raise_copied(t, layer, round, iteration);
    }
    co_return;
  }
  const bool relaxed = layer.has(Bug::copied_counted_relaxed);
  if (!relaxed && !layer.has(Bug::releasing_fences_missing)) {
    t.fence(Scope::gpu);
  }
  const std::uint64_t before =
      co_await t.fetch_add(mine.copied, 1, relaxed ? Order::relaxed : Order::acq_rel, Scope::gpu);
  if (counted_first) {
    send_weights_to_all(t, layer, round, block, kCopyBlocks);
  }
  if (layer.has(Bug::tokens_pushed_behind_count) && layer.pushes_tokens()) {
    co_await push_tokens(t, layer, round, block);
  }
  if (before == kCopyBlocks - 1) {
    t.initialise(mine.copied, 0, kCopyBlocks);
    co_await raise_copied(t, layer, round, iteration);
  }
}

// --- the cluster ---------------------------------------------------------------------------------

Task send_ids(Thread& t, Layer& layer, const Round& round, int block, std::uint64_t iteration) {
  if (layer.has(Bug::weights_sent_by_cluster)) {
    send_weights_to_all(t, layer, round, block, kClusterBlocks);
  }
  if (layer.loses(Fault::lost_ids, t.rank(), round)) {
    co_return;
  }
  t.read(layer.places[t.rank()].own_ids, round.stamp);
  for (int i = block; i < kIdsOfRank; i += kClusterBlocks) {
    for (int peer = 0; peer < layer.s.ranks; ++peer) {
      co_await t.store(layer.places[peer].stamped_ids + t.rank() * kIdsOfRank + i,
                       stamp_id(round, iteration), Order::relaxed, Scope::system);
    }
  }
}

void check_id(const Thread& t, Layer& layer, const Round& round, WordId word,
              std::uint64_t stamped) {
  if (round_of(stamped) != round.stamp && !layer.machine.aborted()) {
    layer.machine.report(FindingKind::stale,
                         fmt::format("{} is taken by {} in iteration {}, and holds iteration {}",
                                     to_string(layer.machine.word(word).name), to_string(t.label()),
                                     round.stamp, round_of(stamped)));
  }
}

Task take_ids(Thread& t, Layer& layer, const Round& round, int block, std::uint64_t iteration,
              bool& gave_up) {
  const int count = layer.s.ranks * kIdsOfRank / kClusterBlocks;
  for (int n = 0; n < count; ++n) {
    const int i = block * count + n;
    const WordId word = layer.places[t.rank()].stamped_ids + i;
    const bool same_source = n > 0 && i % kIdsOfRank != 0;
    std::uint64_t stamped = 0;
    if (layer.has(Bug::id_taken_at_sight) || (layer.has(Bug::ids_taken_together) && same_source)) {
      stamped = co_await t.load(word, Order::relaxed, Scope::system);
    } else {
      stamped = co_await t.take_at_least(word, iteration << kStampedIdBits, Order::relaxed,
                                         Scope::system);
      gave_up = gave_up || iteration_of(stamped) < iteration;
    }
    check_id(t, layer, round, word, stamped);
  }
}

Task build(Thread& t, Layer& layer, const Round& round, int block, std::uint64_t iteration) {
  const RankPlaces& mine = layer.places[t.rank()];
  bool gave_up = false;
  co_await take_ids(t, layer, round, block, iteration, gave_up);
  if (gave_up && layer.has(Bug::cluster_left)) {
    co_return;
  }
  co_await t.meet(mine.cluster, 1, kClusterBlocks);
  if (block == 0) {
    write_tables(t, layer, round);
    seed_counters(t, layer, round);
  }
  co_await t.meet(mine.cluster, 1, kClusterBlocks);
}

Task meet_ranks(Thread& t, Layer& layer, const Round& round, std::uint64_t iteration) {
  const RankPlaces& mine = layer.places[t.rank()];
  const Order order = layer.has(Bug::copied_awaited_relaxed) ? Order::relaxed : Order::acquire;
  for (int peer = 0; peer < layer.s.ranks; ++peer) {
    const bool waits = !layer.has(Bug::copied_barrier_skipped) &&
                       !(layer.has(Bug::own_copy_unwatched) && peer == t.rank());
    if (waits) {
      co_await t.wait_at_least(mine.barrier_flags + peer, copied_target(iteration), order,
                               Scope::system);
    }
  }
  count_iteration(t, layer, round);
}

Task cluster_block(Thread& t, Layer& layer, const Round& round, int block, PrologueSteps steps) {
  const std::uint64_t iteration = t.read(layer.places[t.rank()].iteration, kAnyStamp) + 1;
  if (steps.send) {
    co_await send_ids(t, layer, round, block, iteration);
  }
  if (steps.build) {
    co_await build(t, layer, round, block, iteration);
  }
  if (steps.meet && block == 0) {
    co_await meet_ranks(t, layer, round, iteration);
  }
}

}  // namespace

LaunchId launch_prologue(Layer& layer, Thread& stream, int rank, const Round& round,
                         PrologueSteps steps) {
  Machine& machine = layer.machine;
  const LaunchId launch = machine.begin_launch();
  const auto label = [&](Role role, int block) {
    return Label{role, "prologue", static_cast<std::int16_t>(rank),
                 static_cast<std::int16_t>(block), -1};
  };
  const bool one_block = !steps.send && !steps.build;
  for (int block = 0; block < (one_block ? 1 : kClusterBlocks); ++block) {
    Thread& t = machine.add_thread(stream, launch, label(Role::build, block), false);
    machine.start(t, cluster_block(t, layer, round, block, steps));
  }
  for (int block = 0; steps.build && block < kCopyBlocks; ++block) {
    Thread& t =
        machine.add_thread(stream, launch, label(Role::copy, kClusterBlocks + block), false);
    machine.start(t, copy_in(t, layer, round, block));
  }
  return launch;
}

LaunchId launch_token_push(Layer& layer, Thread& stream, int rank, const Round& round) {
  const LaunchId launch = layer.machine.begin_launch();
  for (int block = 0; block < kCopyBlocks; ++block) {
    const Label label{Role::copy, "push of tokens", static_cast<std::int16_t>(rank),
                      static_cast<std::int16_t>(block), -1};
    Thread& t = layer.machine.add_thread(stream, launch, label, false);
    layer.machine.start(t, push_tokens(t, layer, round, block));
  }
  return launch;
}

}  // namespace fusescope::protocol
