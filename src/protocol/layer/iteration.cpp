// A device's stream: src/engine/cuda/iteration.cpp. Ranks that share a device go through it phase by phase;
// what a rank tells its peers goes out for all ranks of the device before any of them waits.
#include <algorithm>
#include <deque>

#include "protocol/layer/gemm_reduce_scatter.hpp"
#include "protocol/layer/resident_kernel.hpp"

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

// --- kernel 1 to final reduce ---------------------------------------------------------------------

// What is left of the iteration before where a planted bug lets the next one begin early.
struct Open {
  std::vector<LaunchId> reduces;
  const Round* round = nullptr;  // theirs
  std::deque<ResidentKernel> kernels;
};

Task close_reduces(Thread& stream, Layer& layer, const std::vector<int>& ranks, Open& open) {
  for (const LaunchId reduce : open.reduces) {
    co_await stream.join(reduce);
  }
  if (!open.reduces.empty()) {
    for (const int rank : ranks) {
      layer.check_outputs(rank, *open.round);
    }
    open.reduces.clear();
  }
}

bool leaves_reduces_open(const Layer& layer) {
  return layer.has(Bug::staging_reused_early) ||
         (layer.has(Bug::tokens_pushed_beside_reduce) && layer.pushes_tokens());
}

Task push_beside_reduces(Thread& stream, Layer& layer, const std::vector<int>& ranks,
                         const Round& round, Open& open) {
  std::vector<LaunchId> pushes;
  for (const int rank : ranks) {
    pushes.push_back(launch_token_push(layer, stream, rank, round));
  }
  co_await close_reduces(stream, layer, ranks, open);
  for (const LaunchId push : pushes) {
    co_await stream.join(push);
  }
}

Task end_of(Thread& stream, ResidentKernel& kernel) {
  co_await stream.join(kernel.launch());
  kernel.give_back();
}

// Kernel 1 begins when all SMs are free, whoever held them.
Task close_kernels(Thread& stream, Layer& layer, Open& open) {
  if (open.kernels.empty()) {
    co_return;
  }
  co_await stream.take_sms(layer.s.sms);
  for (ResidentKernel& kernel : open.kernels) {
    kernel.give_back();
  }
  open.kernels.clear();
  layer.machine.give_sms(stream.device(), layer.s.sms);
}

// Each when the one before it has ended.
Task kernels_in_turn(Thread& stream, Layer& layer, const std::vector<int>& ranks,
                     const Round& round, Open& open) {
  for (const int rank : ranks) {
    ResidentKernel kernel(layer, stream, rank, "dispatch_gemm");
    co_await begin_dispatch_gemm(kernel, layer, rank, round);
    co_await end_of(stream, kernel);
  }
  if (layer.s.config.activation == Activation::separate) {
    for (const int rank : ranks) {
      co_await stream.join(launch_activation(layer, stream, rank, round));
    }
  }
  const bool per_job = layer.s.config.combine == Combine::block_per_job;
  for (const int rank : ranks) {
    const LaunchId branch = per_job ? begin_block_per_job(layer, stream, rank, round) : -1;
    ResidentKernel kernel(layer, stream, rank, "gemm_combine_push");
    co_await begin_gemm_combine_push(kernel, layer, rank, round);
    co_await end_of(stream, kernel);
    if (per_job) {
      co_await stream.join(branch);
    }
    layer.check_round(rank, round);
  }
  co_await close_reduces(stream, layer, ranks, open);
  for (const int rank : ranks) {
    const LaunchId reduce = launch_final_reduce(layer, stream, rank, round);
    if (leaves_reduces_open(layer)) {
      open.reduces.push_back(reduce);
      open.round = &round;
    } else {
      co_await stream.join(reduce);
      layer.check_outputs(rank, round);
    }
  }
}

// Each block when the kernel before has left an SM for it (kernels/follow.cuh). A kernel 1 behind another
// rank's waits for the end of that before it does anything, so that it begins there.
Task overlapping_kernels(Thread& stream, Layer& layer, const std::vector<int>& ranks,
                         const Round& round, Open& open) {
  if (ranks.empty()) {
    co_return;
  }
  co_await close_kernels(stream, layer, open);
  std::deque<ResidentKernel> kernels;
  for (const int rank : ranks) {
    if (!kernels.empty()) {
      co_await end_of(stream, kernels.back());
      kernels.clear();
    }
    kernels.emplace_back(layer, stream, rank, "dispatch_gemm");
    co_await begin_dispatch_gemm(kernels.back(), layer, rank, round);
  }
  for (const int rank : ranks) {
    const LaunchId before = kernels.back().launch();
    kernels.emplace_back(layer, stream, rank, "gemm_combine_push");
    co_await begin_gemm_combine_push(kernels.back(), layer, rank, round, before);
  }
  LaunchId last = kernels.back().launch();
  std::vector<LaunchId> reduces;
  for (const int rank : ranks) {
    last = launch_final_reduce(layer, stream, rank, round, last);
    reduces.push_back(last);
  }
  if (leaves_reduces_open(layer)) {
    co_await stream.join(kernels.back().launch());
    co_await close_reduces(stream, layer, ranks, open);
    open.reduces = reduces;
    open.round = &round;
  } else {
    // The end of the last kernel is the end of the iteration: it is all that the stream waits for.
    for (const LaunchId reduce : reduces) {
      co_await stream.join(reduce);
    }
  }
  for (ResidentKernel& kernel : kernels) {
    if (layer.machine.has_ended(kernel.launch())) {
      kernel.give_back();
    } else {
      open.kernels.push_back(std::move(kernel));
    }
  }
  for (const int rank : ranks) {
    layer.check_round(rank, round);
    if (open.reduces.empty()) {
      layer.check_outputs(rank, round);
    }
  }
}

Task run_round(Thread& stream, Layer& layer, const std::vector<int>& ranks, const Round& round,
               Open& open) {
  set_inputs(stream, layer, ranks, round);
  for (const int rank : ranks) {
    layer.begin_round(rank);
  }
  if (layer.has(Bug::tokens_pushed_beside_reduce) && layer.pushes_tokens()) {
    co_await push_beside_reduces(stream, layer, ranks, round, open);
  }
  co_await before_kernels(stream, layer, ranks, round);
  if (layer.overlaps()) {
    co_await overlapping_kernels(stream, layer, ranks, round, open);
  } else {
    co_await kernels_in_turn(stream, layer, ranks, round, open);
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
  Open open;
  for (int n = first; n <= last; ++n) {
    const std::vector<int> ranks = ranks_of(layer.s, device, n);
    if (layer.s.subject == Subject::gemm_reduce_scatter) {
      co_await reduce_scatter_round(stream, layer, ranks, layer.rounds[n], open.reduces);
    } else {
      co_await run_round(stream, layer, ranks, layer.rounds[n], open);
    }
    // The host looks at what the waits reported, and launches nothing more after a fault.
    const bool reported = std::any_of(ranks.begin(), ranks.end(), [&](int rank) {
      return layer.machine.word(layer.places[rank].abort).latest().value != 0;
    });
    if (reported || (layer.s.fault == Fault::dead_rank && n == layer.s.fault_iteration)) {
      break;
    }
  }
  co_await close_kernels(stream, layer, open);
  for (const LaunchId reduce : open.reduces) {
    co_await stream.join(reduce);
  }
}

}  // namespace fusescope::protocol
