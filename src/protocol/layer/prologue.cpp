// kernels/prologue.cu and schedule_build.cuh: ids exchange, tables, counters and copy-in in one kernel. A
// block is one thread here. Those of the cluster send a part of the ids each; the first writes all tables,
// since none of them is read before the kernel has ended.
#include "protocol/layer/layer.hpp"

namespace fusescope::protocol {
namespace {

constexpr int kCopyBlocks = 2;

std::uint64_t copied_target(std::uint64_t iteration) {
  return iteration * kBarrierPoints + static_cast<std::uint64_t>(BarrierPoint::copied);
}

Task raise_copied(Thread& t, Layer& layer, const Round& round, std::uint64_t iteration) {
  if (layer.loses(Fault::lost_barrier, t.rank(), round)) {
    co_return;
  }
  for (int peer = 0; peer < layer.s.ranks; ++peer) {
    if (!layer.has(Bug::releasing_fences_missing)) {
      t.fence(Scope::system);
    }
    co_await t.store(layer.places[peer].barrier_flags + t.rank(), copied_target(iteration),
                     Order::release, Scope::system);
  }
}

Task copy_in(Thread& t, Layer& layer, const Round& round, int block) {
  const RankPlaces& mine = layer.places[t.rank()];
  const std::uint64_t iteration = t.read(mine.iteration, kAnyStamp) + 1;
  for (int i = block; i < layer.s.tokens_per_rank; i += kCopyBlocks) {
    t.write(mine.tokens + i, t.read(mine.input + i, round.stamp), round.stamp);
  }
  if (layer.has(Bug::copied_by_any_block)) {
    if (block == 0) {
      co_await raise_copied(t, layer, round, iteration);
    }
    co_return;
  }
  t.fence(Scope::gpu);
  const std::uint64_t before = co_await t.fetch_add(mine.copied, 1, Order::acq_rel, Scope::gpu);
  if (before == kCopyBlocks - 1) {
    t.initialise(mine.copied, 0, kCopyBlocks);
    co_await raise_copied(t, layer, round, iteration);
  }
}

Task send_ids(Thread& t, Layer& layer, const Round& round, int part, std::uint64_t iteration) {
  const RankPlaces& mine = layer.places[t.rank()];
  for (int peer = 0; peer < layer.s.ranks; ++peer) {
    const RankPlaces& to = layer.places[peer];
    if (part == 0) {
      t.write(to.weights + t.rank(), t.read(mine.own_weights, round.stamp), round.stamp);
    } else {
      t.write(to.ids + t.rank(), t.read(mine.own_ids, round.stamp), round.stamp);
    }
  }
  if (layer.loses(Fault::lost_ids, t.rank(), round)) {
    co_return;
  }
  for (int peer = 0; peer < layer.s.ranks; ++peer) {
    if (!layer.has(Bug::releasing_fences_missing)) {
      t.fence(Scope::system);
    }
    co_await t.store(layer.ids_flag(peer, t.rank(), part), iteration, Order::release,
                     Scope::system);
  }
}

Task build(Thread& t, Layer& layer, const Round& round, int block, std::uint64_t iteration) {
  const RankPlaces& mine = layer.places[t.rank()];
  const int parts = layer.has(Bug::ids_parts_unwatched) ? 1 : kIdsParts;
  for (int source = 0; source < layer.s.ranks; ++source) {
    for (int part = 0; part < parts; ++part) {
      co_await t.wait_at_least(layer.ids_flag(t.rank(), source, part), iteration, Order::acquire,
                               Scope::system);
    }
  }
  for (int source = 0; source < layer.s.ranks; ++source) {
    t.read(mine.ids + source, round.stamp);
  }
  co_await t.meet(mine.cluster, 1, kIdsParts);
  if (block == 0) {
    write_tables(t, layer, round);
    seed_counters(t, layer, round);
  }
  co_await t.meet(mine.cluster, 1, kIdsParts);
}

Task cluster_block(Thread& t, Layer& layer, const Round& round, int block, PrologueSteps steps) {
  const RankPlaces& mine = layer.places[t.rank()];
  const std::uint64_t iteration = t.read(mine.iteration, kAnyStamp) + 1;
  if (steps.send) {
    co_await send_ids(t, layer, round, block, iteration);
  }
  if (steps.build) {
    co_await build(t, layer, round, block, iteration);
  }
  if (!steps.meet || block != 0) {
    co_return;
  }
  if (!layer.has(Bug::copied_barrier_skipped)) {
    for (int peer = 0; peer < layer.s.ranks; ++peer) {
      co_await t.wait_at_least(mine.barrier_flags + peer, copied_target(iteration), Order::acquire,
                               Scope::system);
    }
  }
  count_iteration(t, layer, round);
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
  for (int block = 0; block < (one_block ? 1 : kIdsParts); ++block) {
    Thread& t = machine.add_thread(stream, launch, label(Role::build, block), false);
    machine.start(t, cluster_block(t, layer, round, block, steps));
  }
  for (int block = 0; steps.build && block < kCopyBlocks; ++block) {
    Thread& t = machine.add_thread(stream, launch, label(Role::copy, kIdsParts + block), false);
    machine.start(t, copy_in(t, layer, round, block));
  }
  return launch;
}

}  // namespace fusescope::protocol
