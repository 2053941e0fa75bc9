#include "engine/cuda/projection/plan.hpp"

namespace fusescope::engine::cuda::projection {

Plan make_plan(const Memory& memory, int rank, const Config& config, int sms,
               const Faults& faults) {
  const Rank& m = memory.rank(rank);
  const bool serial = config.form == LayerForm::serial;
  Plan plan;
  plan.layer = m.args;
  if (rank == faults.rank) {
    plan.layer.faults = faults.lost;
  }

  kernels::GroupedGemmDesc desc;
  desc.rows_capacity = static_cast<std::int64_t>(memory.shape().row_blocks()) * kernels::kBlockRows;
  desc.n = memory.shape().hidden;
  desc.k = memory.shape().rank_depth();
  desc.experts = 1;
  desc.a = m.rows;
  desc.b = m.weights;
  desc.d = plan.layer.partial;
  desc.expert_rows = plan.layer.expert_rows;
  plan.variant = variant_of(config);
  plan.fused.gemm = make_grouped_gemm_args(desc, plan.variant);
  plan.fused.gemm.clock = plan.layer.clock;

  plan.fused.layer = plan.layer;
  plan.fused.push.row_order = row_order(config);
  plan.fused.push.rows = rows_of_push(memory.shape(), config);
  plan.fused.push.pushers = config.pushers;
  plan.fused.push.done_at = static_cast<std::uint32_t>(plan.fused.gemm.n_tiles);
  plan.fused.push.watermark_chunks = config.watermark_chunks;
  plan.fused.compute_blocks = sms - config.push_sms;
  plan.fused.all_hands = config.all_hands;
  plan.blocks = sms;

  plan.reduce.layer = plan.layer;
  plan.reduce.row_order = row_order(config);
  plan.reduce.watermark_chunks = serial ? 1 : config.watermark_chunks;
  plan.reduce.waits = !serial;
  return plan;
}

}  // namespace fusescope::engine::cuda::projection
