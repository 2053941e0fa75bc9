#include "engine/cuda/record_memory.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

namespace fusescope::engine::cuda {
namespace {

using timeline::FamilyLayout;
using timeline::PhaseStamp;
using timeline::Record;
using timeline::RecordLayout;

// The same writers with less room.
RecordLayout with_at_most(RecordLayout layout, int most_per_writer) {
  layout.records = 0;
  for (FamilyLayout& at : layout.families) {
    at.capacity = std::min(at.capacity, static_cast<std::uint32_t>(most_per_writer));
    at.first_record = layout.records;
    layout.records += static_cast<std::uint64_t>(at.blocks) * at.writers_per_block * at.capacity;
  }
  return layout;
}

constexpr std::size_t kPhaseBytes = timeline::kPhases * sizeof(PhaseStamp);

template <class T>
std::vector<T> read_back(const kernels::DeviceBlock& from, std::size_t count) {
  std::vector<T> values(count);
  FUSESCOPE_CUDA(cudaMemcpy(values.data(), from.get(), count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

}  // namespace

timeline::RecordedWork recorded_work(const TableSizes& sizes, const RankPlan& plan) {
  const bool per_job = plan.combine.announces_residency;
  timeline::RecordedWork work;
  work.ranks = plan.layer.ranks;
  work.tokens = plan.layer.tokens;
  work.row_blocks = sizes.max_row_blocks();
  work.n_tiles_1 = plan.dispatch.gemm.n_tiles;
  work.n_tiles_2 = plan.combine.gemm.n_tiles;
  work.counter_1 = plan.dispatch.gemm.next_tile != nullptr;
  work.counter_2 = plan.combine.gemm.next_tile != nullptr;
  work.watermark_chunks = plan.combine.combine.watermark_chunks;
  work.dispatch_compute_blocks = plan.dispatch.compute_blocks;
  work.dispatch_slot_blocks = plan.dispatch.fetches_first
                                  ? plan.dispatch.compute_blocks
                                  : plan.dispatch_blocks - plan.dispatch.compute_blocks;
  work.slots_per_block = plan.dispatch.tokens_per_block;
  work.beside_tiles = plan.dispatch.fetches_first ? plan.layer.tokens - plan.dispatch.head : 0;
  work.combine_compute_blocks = plan.combine.compute_blocks;
  work.combine_job_blocks =
      per_job ? plan.layer.tokens : plan.combine_blocks - plan.combine.compute_blocks;
  work.job_groups_per_block = per_job ? 1 : kernels::job_groups(plan.combine_variant);
  work.block_per_job = per_job;
  work.all_hands = plan.combine.runs_jobs && plan.combine.all_hands;
  work.reduce_blocks = kernels::final_reduce_blocks(plan.layer.tokens_per_rank);
  return work;
}

RecordMemory::RecordMemory(const LayerMemory& memory, std::vector<RankPlan>& plans,
                           int most_per_writer) {
  for (std::size_t r = 0; r < plans.size(); ++r) {
    RankPlan& plan = plans[r];
    Rank rank;
    rank.device = memory.rank(static_cast<int>(r)).device;
    rank.layout = lay_out_records(recorded_work(memory.sizes(), plan));
    if (most_per_writer > 0) {
      rank.layout = with_at_most(rank.layout, most_per_writer);
    }
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
    for (kernels::LayerArgs* args : {&plan.layer, &plan.prologue.layer, &plan.dispatch.layer,
                                     &plan.combine.layer, &plan.reduce.layer}) {
      args->records = buffers;
    }
    ranks_.push_back(std::move(rank));
  }
}

std::size_t RecordMemory::bytes() const {
  std::size_t sum = 0;
  for (const Rank& rank : ranks_) {
    sum += rank.layout.bytes();
  }
  return sum;
}

void RecordMemory::enqueue_clear(int rank, cudaStream_t stream) const {
  const Rank& r = at(rank);
  FUSESCOPE_CUDA(cudaMemsetAsync(r.records.get(), 0, r.layout.bytes(), stream));
  FUSESCOPE_CUDA(
      cudaMemsetAsync(r.dropped.get(), 0, r.layout.writers * sizeof(std::uint32_t), stream));
  FUSESCOPE_CUDA(cudaMemcpyAsync(r.phases.get(), r.unstamped.get(), kPhaseBytes,
                                 cudaMemcpyDeviceToDevice, stream));
}

RankTape RecordMemory::read(int rank) const {
  const Rank& r = at(rank);
  const kernels::OnDevice on(r.device);
  return {read_back<Record>(r.records, r.layout.records),
          read_back<std::uint32_t>(r.dropped, r.layout.writers),
          read_back<PhaseStamp>(r.phases, timeline::kPhases)};
}

}  // namespace fusescope::engine::cuda
