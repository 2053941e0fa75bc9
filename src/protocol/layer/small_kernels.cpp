// kernels/ids_exchange.cu, device_barrier.cu, seed_counters.cu, row_copies.cu, activation.cu,
// final_reduce.cu, and the schedule build.
#include <algorithm>

#include "protocol/layer/gemm_schedule.hpp"

namespace fusescope::protocol {
namespace {

Label label(Role role, const char* kernel, int rank, int block = -1) {
  return {role, kernel, static_cast<std::int16_t>(rank), static_cast<std::int16_t>(block), -1};
}

// --- ids exchange: one block per peer ------------------------------------------------------------

Task exchange_ids(Thread& t, Layer& layer, const Round& round, int peer, Part part) {
  const RankPlaces& mine = layer.places[t.rank()];
  const RankPlaces& to = layer.places[peer];
  const std::uint64_t iteration = t.read(mine.iteration, kAnyStamp) + 1;
  if (part.arrive) {
    t.write(to.ids + t.rank(), t.read(mine.own_ids, round.stamp), round.stamp);
    send_weights(t, layer, round, peer, 0, 1);
  }
  if (part.arrive && !layer.loses(Fault::lost_ids, t.rank(), round)) {
    if (!layer.has(Bug::releasing_fences_missing)) {
      t.fence(Scope::system);
    }
    co_await t.store(to.ids_flags + t.rank(), iteration, Order::release, Scope::system);
  }
  if (part.wait) {
    co_await t.wait_at_least(mine.ids_flags + peer, iteration, Order::acquire, Scope::system);
  }
}

// --- device barrier: one thread per rank ---------------------------------------------------------

Task meet_peer(Thread& t, Layer& layer, BarrierPoint point, int peer, const Round& round,
               Part part) {
  const RankPlaces& mine = layer.places[t.rank()];
  const std::uint64_t target =
      t.read(mine.iteration, kAnyStamp) * kBarrierPoints + static_cast<std::uint64_t>(point);
  if (part.arrive && !layer.loses(Fault::lost_barrier, t.rank(), round)) {
    if (!layer.has(Bug::releasing_fences_missing)) {
      t.fence(Scope::system);
    }
    co_await t.store(layer.places[peer].barrier_flags + t.rank(), target, Order::release,
                     Scope::system);
  }
  if (part.wait) {
    co_await t.wait_at_least(mine.barrier_flags + peer, target, Order::acquire, Scope::system);
  }
}

// --- schedule build ------------------------------------------------------------------------------

Task build_on_device(Thread& t, Layer& layer, const Round& round) {
  for (int source = 0; source < layer.s.ranks; ++source) {
    t.read(layer.places[t.rank()].ids + source, round.stamp);
  }
  write_tables(t, layer, round);
  co_return;
}

Task copy_ids_to_host(Thread& t, Layer& layer, const Round& round) {
  const RankPlaces& mine = layer.places[t.rank()];
  for (int source = 0; source < layer.s.ranks; ++source) {
    t.read(mine.ids + source, round.stamp);
  }
  t.write(mine.host_ids, 0, round.stamp);
  co_return;
}

Task build_on_host(Thread& t, Layer& layer, const Round& round) {
  const RankPlaces& mine = layer.places[t.rank()];
  t.read(mine.host_ids, round.stamp);
  t.write(mine.host_tables, 0, round.stamp);
  co_return;
}

Task copy_tables_to_device(Thread& t, Layer& layer, const Round& round) {
  t.read(layer.places[t.rank()].host_tables, round.stamp);
  write_tables(t, layer, round);
  co_return;
}

Task seed_kernel(Thread& t, Layer& layer, const Round& round) {
  seed_counters(t, layer, round);
  count_iteration(t, layer, round);
  co_return;
}

// --- copy-in, activation, final reduce: a few blocks, strided over rows ----------------------------

constexpr int kBlocks = 2;

Task copy_in(Thread& t, Layer& layer, const Round& round, int block, int blocks) {
  const RankPlaces& mine = layer.places[t.rank()];
  for (int i = block; i < layer.s.tokens_per_rank; i += blocks) {
    t.write(mine.tokens + i, t.read(mine.input + i, round.stamp), round.stamp);
  }
  co_return;
}

Task activate(Thread& t, Layer& layer, const Round& round, int block, int blocks) {
  const RankPlaces& mine = layer.places[t.rank()];
  const ScheduleTables& tables = round.tables[t.rank()];
  for (int b = block; b < tables.row_blocks(); b += blocks) {
    const int half = layer.s.row_block / kConsumers;
    const int written = tables.slack[b] >= half ? half : layer.s.row_block;
    for (int n = 0; n < layer.s.n_tiles(); ++n) {
      const CellId tile = layer.tile_cells(0, b, n);
      for (int row = 0; row < layer.s.row_block; ++row) {
        // It takes in a half that the GEMM left out, too: whatever is there, nobody reads the result.
        const std::uint64_t value =
            t.read(mine.gate_up + tile + row, row < written ? round.stamp : kAnyStamp);
        t.write(mine.act + tile + row, Round::activate(value), round.stamp);
      }
    }
  }
  co_return;
}

Task reduce_rows(Thread& t, Layer& layer, const Round& round, int block, int blocks) {
  const RankPlaces& mine = layer.places[t.rank()];
  int seen = -1;
  for (int i = block; i < layer.s.tokens_per_rank; i += blocks) {
    const int chunk = layer.chunk_of(i);
    if (chunk != seen && !(seen >= 0 && layer.has(Bug::first_chunk_opens_all))) {
      bool raised = true;
      const std::uint64_t iteration = layer.iteration_of(t);
      for (int sender = 0; sender < layer.s.ranks; ++sender) {
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
    for (int sender = 0; sender < layer.s.ranks; ++sender) {
      sum += t.read(layer.staging_cell(t.rank(), sender, i), round.stamp);
    }
    t.write(mine.output + i, sum, round.stamp);
  }
}

Task final_reduce(Thread& t, Layer& layer, const Round& round, int block, int blocks,
                  LaunchId before) {
  co_await reduce_rows(t, layer, round, block, blocks);
  if (before >= 0 && !layer.has(Bug::reduce_ends_early)) {
    co_await t.see_end_of(before);
  }
}

template <class Body>
LaunchId launch_one(Layer& layer, Thread& stream, int rank, const char* kernel, Body body) {
  const LaunchId launch = layer.machine.begin_launch();
  Thread& t = layer.machine.add_thread(stream, launch, label(Role::build, kernel, rank), false);
  layer.machine.start(t, body(t));
  return launch;
}

}  // namespace

void send_weights(Thread& t, const Layer& layer, const Round& round, int peer, int part,
                  int parts) {
  const std::uint64_t weights = t.read(layer.places[t.rank()].own_weights, round.stamp);
  const int tokens = layer.s.tokens_per_rank;
  for (int i = part; i < tokens; i += parts) {
    t.write(layer.places[peer].weights + t.rank() * tokens + i, weights, round.stamp);
  }
}

void write_tables(Thread& t, const Layer& layer, const Round& round) {
  const RankPlaces& mine = layer.places[t.rank()];
  for (const CellId table : {mine.expert_rows, mine.slots, mine.pull_order, mine.job_order,
                             mine.slack, mine.token_of_slot}) {
    t.write(table, 0, round.stamp);
  }
}

void seed_counters(Thread& t, const Layer& layer, const Round& round) {
  const Scenario& s = layer.s;
  const RankPlaces& mine = layer.places[t.rank()];
  const std::vector<std::int32_t>& slack = round.tables[t.rank()].slack;
  t.read(mine.slack, round.stamp);
  for (int b = 0; b < layer.row_blocks; ++b) {
    std::int32_t seed = b < static_cast<int>(slack.size()) ? slack[b] : 0;
    if (seed > 0 && layer.has(Bug::slack_one_too_few)) {
      --seed;
    } else if (seed < s.row_block && layer.has(Bug::slack_one_too_many)) {
      ++seed;
    }
    t.initialise(mine.arrivals + b, static_cast<std::uint64_t>(seed),
                 static_cast<std::uint64_t>(s.row_block));
    if (!layer.has(Bug::computed_not_reset)) {
      t.initialise(mine.computed + b, 0, static_cast<std::uint64_t>(s.n_tiles()));
    }
    t.initialise(mine.done + b, 0, static_cast<std::uint64_t>(s.n_tiles()));
  }
  for (int to = 0; to < s.ranks; ++to) {
    for (int chunk = 0; chunk < s.config.watermark_chunks; ++chunk) {
      t.initialise(
          layer.pushed(t.rank(), to, chunk), 0,
          static_cast<std::uint64_t>(layer.chunk_begin(chunk + 1) - layer.chunk_begin(chunk)));
    }
  }
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  if (!layer.has(Bug::dispenser_not_reset)) {
    t.initialise(mine.dispenser, 0, kAny);
  }
  const int tiles = row_tiles(s, round.tables[t.rank()]) * s.n_tiles();
  for (int kernel = 0; kernel < 2; ++kernel) {
    t.initialise(mine.next_tile + kernel, 0, static_cast<std::uint64_t>(tiles));
  }
  t.initialise(mine.resident, 0, kAny);
}

void count_iteration(Thread& t, const Layer& layer, const Round& round) {
  const CellId iteration = layer.places[t.rank()].iteration;
  const std::uint64_t before = layer.has(Bug::sequence_reset) ? 0 : t.read(iteration, kAnyStamp);
  t.write(iteration, before + 1, round.stamp);
}

LaunchId launch_ids_exchange(Layer& layer, Thread& stream, int rank, const Round& round,
                             Part part) {
  const LaunchId launch = layer.machine.begin_launch();
  for (int peer = 0; peer < layer.s.ranks; ++peer) {
    Thread& t = layer.machine.add_thread(stream, launch,
                                         label(Role::exchange, "ids_exchange", rank, peer), false);
    layer.machine.start(t, exchange_ids(t, layer, round, peer, part));
  }
  return launch;
}

LaunchId launch_device_barrier(Layer& layer, Thread& stream, int rank, BarrierPoint point,
                               const Round& round, Part part) {
  const LaunchId launch = layer.machine.begin_launch();
  const char* name =
      point == BarrierPoint::entry ? "device_barrier entry" : "device_barrier copied";
  for (int peer = 0; peer < layer.s.ranks; ++peer) {
    Thread& t =
        layer.machine.add_thread(stream, launch, label(Role::barrier, name, rank, peer), false);
    layer.machine.start(t, meet_peer(t, layer, point, peer, round, part));
  }
  return launch;
}

LaunchId launch_seed_counters(Layer& layer, Thread& stream, int rank, const Round& round) {
  return launch_one(layer, stream, rank, "seed_counters",
                    [&](Thread& t) { return seed_kernel(t, layer, round); });
}

// Tables, and the counters that they seed.
Task build_schedule(Thread& stream, Layer& layer, int rank, const Round& round) {
  if (layer.s.config.schedule == ScheduleSite::host) {
    co_await stream.join(launch_one(layer, stream, rank, "copy of ids to the host",
                                    [&](Thread& t) { return copy_ids_to_host(t, layer, round); }));
    co_await stream.join(launch_one(layer, stream, rank, "host build",
                                    [&](Thread& t) { return build_on_host(t, layer, round); }));
    co_await stream.join(launch_one(layer, stream, rank, "copy of tables", [&](Thread& t) {
      return copy_tables_to_device(t, layer, round);
    }));
  } else {
    co_await stream.join(launch_one(layer, stream, rank, "schedule build",
                                    [&](Thread& t) { return build_on_device(t, layer, round); }));
  }
  const LaunchId seeding = launch_seed_counters(layer, stream, rank, round);
  co_await stream.join(seeding);
}

LaunchId launch_copy_in(Layer& layer, Thread& stream, int rank, const Round& round) {
  const LaunchId launch = layer.machine.begin_launch();
  for (int block = 0; block < kBlocks; ++block) {
    Thread& t =
        layer.machine.add_thread(stream, launch, label(Role::copy, "copy_in", rank, block), false);
    layer.machine.start(t, copy_in(t, layer, round, block, kBlocks));
  }
  return launch;
}

LaunchId launch_activation(Layer& layer, Thread& stream, int rank, const Round& round) {
  const LaunchId launch = layer.machine.begin_launch();
  for (int block = 0; block < kBlocks; ++block) {
    Thread& t = layer.machine.add_thread(stream, launch,
                                         label(Role::copy, "activation", rank, block), false);
    layer.machine.start(t, activate(t, layer, round, block, kBlocks));
  }
  return launch;
}

LaunchId launch_final_reduce(Layer& layer, Thread& stream, int rank, const Round& round,
                             LaunchId before) {
  Machine& machine = layer.machine;
  const LaunchId launch = machine.begin_launch();
  const int blocks = std::min(kBlocks, layer.s.tokens_per_rank);
  for (int block = 0; block < blocks; ++block) {
    const Label name = label(Role::reducer, "final_reduce", rank, block);
    Thread& t = before < 0 ? machine.add_thread(stream, launch, name, false)
                           : machine.add_early_thread(stream, launch, name, false);
    machine.start(t, final_reduce(t, layer, round, block, blocks, before));
  }
  return launch;
}

}  // namespace fusescope::protocol
