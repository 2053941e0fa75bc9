#include "engine/cuda/projection/iteration.hpp"

#include "kernels/device_barrier.hpp"
#include "kernels/gemm/gemm_launch.hpp"
#include "kernels/seed_counters.hpp"

namespace fusescope::engine::cuda::projection {

using kernels::BarrierPoint;
using kernels::Part;

Iteration::Iteration(const std::vector<Plan>& plans, const Config& config, const Lane& lane)
    : plans_(plans), config_(config), lane_(lane) {}

template <class Step>
void Iteration::each(Step step) const {
  for (const int rank : lane_.ranks) {
    step(rank);
  }
}

// All ranks of the device arrive before any of them waits.
template <class Step>
void Iteration::in_parts(Step step) const {
  if (lane_.ranks.size() == 1) {
    step(lane_.ranks.front(), Part{true, true});
    return;
  }
  each([&](int rank) { step(rank, Part{true, false}); });
  each([&](int rank) { step(rank, Part{false, true}); });
}

void Iteration::enqueue() const {
  each([&](int rank) { kernels::launch_seed_counters(plan(rank).layer, stream()); });
  if (config_.form == LayerForm::serial) {
    serial();
  } else {
    fused();
  }
}

void Iteration::enqueue_start_line() const {
  if (lane_.ranks.empty()) {
    return;
  }
  lane_.start.hold(plan(lane_.ranks.front()).layer.guard, stream());
  in_parts(
      [&](int rank, Part part) { kernels::launch_start_line(plan(rank).layer, part, stream()); });
}

void Iteration::fused() const {
  barrier(BarrierPoint::entry);
  each([&](int rank) {
    const Plan& p = plan(rank);
    kernels::launch_gemm_reduce_scatter(p.fused, p.variant, p.blocks, stream());
  });
  reduce_planes();
}

// With NCCL there are no barriers: it reads this rank's rows on this rank alone, and ends when they may
// be written again.
void Iteration::serial() const {
  const bool by_nccl = lane_.nccl != nullptr;
  if (!by_nccl) {
    barrier(BarrierPoint::entry);
  }
  each([&](int rank) {
    const Plan& p = plan(rank);
    kernels::launch_grouped_gemm(p.fused.gemm, p.variant, p.blocks, stream());
  });
  if (by_nccl) {
    each([&](int rank) {
      const kernels::LayerArgs& a = plan(rank).layer;
      lane_.nccl->reduce_scatter(rank, a.partial, a.output,
                                 static_cast<std::size_t>(a.tokens_per_rank) * a.hidden, stream());
    });
    return;
  }
  barrier(BarrierPoint::combined);
  each([&](int rank) { copy_from_peers(rank); });
  reduce_planes();
}

void Iteration::barrier(BarrierPoint point) const {
  in_parts([&](int rank, Part part) {
    kernels::launch_device_barrier(plan(rank).layer, point, part, stream());
  });
}

void Iteration::reduce_planes() const {
  each([&](int rank) { kernels::launch_reduce_planes(plan(rank).reduce, stream()); });
}

// Serial form: rows are in rank order on every rank. The rank's own stay where they are.
void Iteration::copy_from_peers(int rank) const {
  const kernels::LayerArgs& a = plan(rank).layer;
  const std::int64_t plane = static_cast<std::int64_t>(a.tokens_per_rank) * a.hidden;
  for (int from = 0; from < a.ranks; ++from) {
    if (from != rank) {
      FUSESCOPE_CUDA(cudaMemcpyAsync(
          a.shared[rank].staging + from * plane, a.shared[from].partials + rank * plane,
          static_cast<std::size_t>(plane) * sizeof(kernels::Bf16), cudaMemcpyDefault, stream()));
    }
  }
}

}  // namespace fusescope::engine::cuda::projection
