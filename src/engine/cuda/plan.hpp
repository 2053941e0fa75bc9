#pragma once
// A config, resolved for one rank: the arguments of its kernel launches.

#include <cstdint>
#include <string>

#include "engine/cuda/layer_memory.hpp"
#include "kernels/dispatch_gemm.hpp"
#include "kernels/final_reduce.hpp"
#include "kernels/gemm_combine_push.hpp"
#include "kernels/prologue.hpp"
#include "layer/config.hpp"
#include "layer/problem.hpp"

namespace fusescope::engine::cuda {

// Faults that tests inject. Not part of a config: no user wants them.
struct Faults {
  kernels::Faults lost = {};  // signals that are not given ...
  int rank = -1;              // ... by this rank; -1 = by no rank
  int dead_rank = -1;         // rank that does not take part in the iteration
};

struct RankPlan {
  kernels::LayerArgs layer;
  kernels::PrologueArgs prologue;  // schedule fused
  kernels::DispatchGemmArgs dispatch;
  kernels::GemmVariant dispatch_variant;
  int dispatch_blocks = 0;
  kernels::GemmCombinePushArgs combine;
  kernels::GemmVariant combine_variant;
  int combine_blocks = 0;
  kernels::FinalReduceArgs reduce;
};

// Here and below, but for why_illegal_on_device: a config with its GEMM chosen (layer/gemm_path.hpp).
RankPlan make_plan(const LayerMemory& memory, int rank, const Config& config, int sms,
                   const Faults& faults);

// Of every wait on the device, unless a run asks for another.
inline constexpr std::uint64_t kDefaultDeadlineNs = 2'000'000'000;

// The layer's rules, and those of these kernels with that deadline; "" or the rule that is broken.
std::string why_illegal_on_device(const Problem& problem, const Config& config,
                                  const DeviceLimits& device,
                                  std::uint64_t deadline_ns = kDefaultDeadlineNs);

// LayerArgs::link_row_time: of a row on one of a GPU's R - 1 equal lines per direction.
std::uint64_t link_row_time(const Shape& shape, double link_gbps);

// Of the combine jobs; no pieces where they do not fit.
kernels::JobRing job_ring(const Shape& shape, const Config& config);

// `ideal_order` is the layer with every order at its best.
SlotOrder slot_order(const Config& config);

}  // namespace fusescope::engine::cuda
