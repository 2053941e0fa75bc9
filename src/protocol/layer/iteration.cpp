// A device's stream: src/engine/cuda/iteration.cpp. Ranks that share a device go through it phase by phase;
// what a rank tells its peers goes out for all ranks of the device before any of them waits.
#include "protocol/layer/gemm_reduce_scatter.hpp"

namespace fusescope::protocol {
namespace {

// The host's part, before the launch: this iteration's inputs.
void set_inputs(Thread& stream, const Layer& layer, const std::vector<int>& ranks,
                const Round& round) {
  for (const int rank : ranks) {
    const RankPlaces& mine = layer.places[rank];
    stream.write(mine.own_ids, 0, round.stamp);
    stream.write(mine.own_weights, 0, round.stamp);
    for (int t = 0; t < layer.s.tokens_per_rank; ++t) {
      stream.write(mine.input + t, round.input(rank * layer.s.tokens_per_rank + t), round.stamp);
    }
  }
}

// The ranks of a device that take part.
std::vector<int> ranks_of(const Scenario& s, int device, int round_index) {
  std::vector<int> ranks;
  for (int rank = 0; rank < s.ranks; ++rank) {
    const bool dead =
        s.fault == Fault::dead_rank && rank == s.fault_rank && round_index == s.fault_iteration;
    if (s.device_of(rank) == device && !dead) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

std::vector<Part> parts_of(const Layer& layer, const std::vector<int>& ranks) {
  if (ranks.size() == 1 || layer.has(Bug::colocated_barrier_in_one_part)) {
    return {{true, true}};
  }
  return {{true, false}, {false, true}};
}

std::vector<PrologueSteps> prologue_steps(const std::vector<Part>& parts) {
  if (parts.size() == 1) {
    return {{true, true, true}};
  }
  return {{true, false, false}, {false, true, false}, {false, false, true}};
}

// Until ids, tables, counters and everybody's tokens are there.
Task before_kernels(Thread& stream, Layer& layer, const std::vector<int>& ranks,
                    const Round& round) {
  if (layer.s.config.schedule == ScheduleSite::fused) {
    for (const PrologueSteps steps : prologue_steps(parts_of(layer, ranks))) {
      for (const int rank : ranks) {
        co_await stream.join(launch_prologue(layer, stream, rank, round, steps));
      }
    }
    co_return;
  }
  for (const Part part : parts_of(layer, ranks)) {
    for (const int rank : ranks) {
      co_await stream.join(launch_ids_exchange(layer, stream, rank, round, part));
    }
  }
  for (const int rank : ranks) {
    co_await build_schedule(stream, layer, rank, round);
  }
  if (!layer.has(Bug::entry_barrier_skipped)) {
    co_await device_barrier(stream, layer, ranks, round, BarrierPoint::entry);
  }
  for (const int rank : ranks) {
    co_await stream.join(launch_copy_in(layer, stream, rank, round));
  }
  if (!layer.has(Bug::copied_barrier_skipped)) {
    co_await device_barrier(stream, layer, ranks, round, BarrierPoint::copied);
  }
}

Task run_round(Thread& stream, Layer& layer, const std::vector<int>& ranks, const Round& round,
               std::vector<LaunchId>& open_reduces, const Round* before) {
  set_inputs(stream, layer, ranks, round);
  for (const int rank : ranks) {
    layer.begin_round(rank);
  }
  co_await before_kernels(stream, layer, ranks, round);
  for (const int rank : ranks) {
    co_await dispatch_gemm(stream, layer, rank, round);
  }
  if (layer.s.config.activation == Activation::separate) {
    for (const int rank : ranks) {
      co_await stream.join(launch_activation(layer, stream, rank, round));
    }
  }
  for (const int rank : ranks) {
    co_await gemm_combine_push(stream, layer, rank, round);
    layer.check_round(rank, round);
  }
  for (const LaunchId reduce : open_reduces) {
    co_await stream.join(reduce);
  }
  if (!open_reduces.empty()) {
    for (const int rank : ranks) {
      layer.check_outputs(rank, *before);
    }
    open_reduces.clear();
  }
  for (const int rank : ranks) {
    const LaunchId reduce = launch_final_reduce(layer, stream, rank, round);
    if (layer.has(Bug::staging_reused_early)) {
      open_reduces.push_back(reduce);
    } else {
      co_await stream.join(reduce);
      layer.check_outputs(rank, round);
    }
  }
}

}  // namespace

Task device_barrier(Thread& stream, Layer& layer, const std::vector<int>& ranks, const Round& round,
                    BarrierPoint point) {
  for (const Part part : parts_of(layer, ranks)) {
    for (const int rank : ranks) {
      co_await stream.join(launch_device_barrier(layer, stream, rank, point, round, part));
    }
  }
}

Task device_stream(Thread& stream, Layer& layer, int device, int first, int last) {
  std::vector<LaunchId> open_reduces;
  for (int n = first; n <= last; ++n) {
    const std::vector<int> ranks = ranks_of(layer.s, device, n);
    const Round* before = n > first ? &layer.rounds[n - 1] : nullptr;
    if (layer.s.subject == Subject::gemm_reduce_scatter) {
      co_await reduce_scatter_round(stream, layer, ranks, layer.rounds[n], open_reduces);
    } else {
      co_await run_round(stream, layer, ranks, layer.rounds[n], open_reduces, before);
    }
    // The host looks at what the waits reported, and launches nothing more after a fault.
    for (const int rank : ranks) {
      if (layer.machine.word(layer.places[rank].abort).latest().value != 0) {
        co_return;
      }
    }
    if (layer.s.fault == Fault::dead_rank && n == layer.s.fault_iteration) {
      co_return;
    }
  }
  for (const LaunchId reduce : open_reduces) {
    co_await stream.join(reduce);
  }
}

}  // namespace fusescope::protocol
