#include "engine/cuda/projection/records.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

namespace fusescope::engine::cuda::projection {
namespace {

using timeline::PhaseStamp;
using timeline::Record;

constexpr std::size_t kPhaseBytes = timeline::kPhases * sizeof(PhaseStamp);

timeline::RecordedWork recorded_work(const Memory& memory, const Plan& plan) {
  timeline::RecordedWork work;
  work.ranks = plan.layer.ranks;
  work.tokens = plan.layer.tokens;
  work.row_blocks = memory.shape().row_blocks();
  work.n_tiles_2 = plan.fused.gemm.n_tiles;
  work.watermark_chunks = plan.fused.push.watermark_chunks;
  work.combine_compute_blocks = plan.fused.compute_blocks;
  work.combine_job_blocks = plan.blocks - plan.fused.compute_blocks;
  work.job_groups_per_block = plan.fused.push.pushers;
  work.all_hands = plan.fused.all_hands;
  work.reduce_blocks = kernels::reduce_planes_blocks(plan.layer.tokens_per_rank);
  return work;
}

template <class T>
std::vector<T> read_back(const kernels::DeviceBlock& from, std::size_t count) {
  std::vector<T> values(count);
  FUSESCOPE_CUDA(cudaMemcpy(values.data(), from.get(), count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

}  // namespace

Records::Records(const Memory& memory, std::vector<Plan>& plans) {
  for (std::size_t r = 0; r < plans.size(); ++r) {
    Plan& plan = plans[r];
    OfRank rank;
    rank.device = memory.rank(static_cast<int>(r)).device;
    rank.layout = lay_out_records(recorded_work(memory, plan));
    if (rank.layout.records > std::numeric_limits<std::uint32_t>::max()) {
      throw std::length_error("an iteration of " + std::to_string(rank.layout.records) +
                              " records is more than the kernels count");
    }
    const kernels::OnDevice on(rank.device);
    rank.records = kernels::allocate_device(rank.layout.bytes());
    rank.dropped = kernels::allocate_device(rank.layout.writers * sizeof(std::uint32_t));
    rank.phases = kernels::allocate_device(kPhaseBytes);
    rank.unstamped = kernels::allocate_device(kPhaseBytes);
    const std::array<PhaseStamp, timeline::kPhases> unstamped{};
    FUSESCOPE_CUDA(
        cudaMemcpy(rank.unstamped.get(), unstamped.data(), kPhaseBytes, cudaMemcpyHostToDevice));
    // A copy from pageable memory may return before it has reached the device.
    FUSESCOPE_CUDA(cudaDeviceSynchronize());

    timeline::RecordBuffers buffers;
    buffers.records = static_cast<Record*>(rank.records.get());
    buffers.dropped = static_cast<std::uint32_t*>(rank.dropped.get());
    buffers.phases = static_cast<PhaseStamp*>(rank.phases.get());
    std::copy(rank.layout.families.begin(), rank.layout.families.end(), buffers.families);
    for (kernels::LayerArgs* args : {&plan.layer, &plan.fused.layer, &plan.reduce.layer}) {
      args->records = buffers;
    }
    ranks_.push_back(std::move(rank));
  }
}

void Records::enqueue_clear(int rank, cudaStream_t stream) const {
  const OfRank& r = at(rank);
  FUSESCOPE_CUDA(cudaMemsetAsync(r.records.get(), 0, r.layout.bytes(), stream));
  FUSESCOPE_CUDA(
      cudaMemsetAsync(r.dropped.get(), 0, r.layout.writers * sizeof(std::uint32_t), stream));
  FUSESCOPE_CUDA(cudaMemcpyAsync(r.phases.get(), r.unstamped.get(), kPhaseBytes,
                                 cudaMemcpyDeviceToDevice, stream));
}

RankTape Records::read(int rank) const {
  const OfRank& r = at(rank);
  const kernels::OnDevice on(r.device);
  return {read_back<Record>(r.records, r.layout.records),
          read_back<std::uint32_t>(r.dropped, r.layout.writers),
          read_back<PhaseStamp>(r.phases, timeline::kPhases)};
}

timeline::Wiring wiring_of(const Shape& shape, const Config& config) {
  const int columns = variant_of(config).out_cols();
  timeline::Wiring wiring;
  wiring.ranks = shape.ranks;
  wiring.tokens_per_rank = shape.tokens_per_rank;
  wiring.topk = 1;
  wiring.n_tiles_2 = (shape.hidden + columns - 1) / columns;
  wiring.watermark_chunks = config.watermark_chunks;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    std::vector<std::int32_t>& blocks = wiring.hit_row_block.emplace_back();
    for (int token = 0; token < shape.tokens(); ++token) {
      const int segment =
          kernels::segment_of(row_order(config), rank, shape.ranks, token / shape.tokens_per_rank);
      const int slot = segment * shape.tokens_per_rank + token % shape.tokens_per_rank;
      blocks.push_back(slot / kernels::kBlockRows);
    }
    wiring.expert_of_row_block.emplace_back(static_cast<std::size_t>(shape.row_blocks()), 0);
  }
  return wiring;
}

std::vector<std::int32_t> push_order(const Shape& shape, const Config& config, int rank) {
  std::vector<std::int32_t> order;
  for (int i = 0; i < shape.ranks - 1; ++i) {
    const int segment = kernels::remote_segment(row_order(config), rank, i);
    const int to = kernels::destination_of(row_order(config), rank, shape.ranks, segment);
    for (int t = 0; t < shape.tokens_per_rank; t += rows_of_push(shape, config)) {
      order.push_back(to * shape.tokens_per_rank + t);
    }
  }
  order.resize(static_cast<std::size_t>(shape.tokens()), -1);
  return order;
}

}  // namespace fusescope::engine::cuda::projection
