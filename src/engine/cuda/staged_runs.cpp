#include "engine/cuda/staged_runs.hpp"

#include <utility>

namespace fusescope::engine::cuda {
namespace {

char* part(const kernels::DeviceBlock& block, std::size_t number, std::size_t bytes) {
  return static_cast<char*>(block.get()) + number * bytes;
}

void copy_on(cudaStream_t stream, void* to, const void* from, std::size_t bytes) {
  FUSESCOPE_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

StagedRuns::StagedRuns(const LayerMemory& memory, std::vector<Feed> feeds, int iterations)
    : memory_(memory),
      feeds_(std::move(feeds)),
      iterations_(iterations),
      hit_bytes_(static_cast<std::size_t>(memory.shape().tokens_per_rank) * memory.shape().topk *
                 4),
      plane_bytes_(static_cast<std::size_t>(memory.shape().tokens_per_rank) *
                   memory.shape().hidden * sizeof(kernels::Bf16)) {
  for (int r = 0; r < memory_.ranks(); ++r) {
    ranks_.emplace_back();
    stage(r);
  }
}

void StagedRuns::stage(int rank) {
  const kernels::OnDevice on(memory_.rank(rank).device);
  RankStage& staged = ranks_.back();
  staged.ids = kernels::allocate_device(feeds_.size() * hit_bytes_);
  staged.weights = kernels::allocate_device(feeds_.size() * hit_bytes_);
  staged.inputs = kernels::allocate_device(feeds_.size() * plane_bytes_);
  const std::size_t kept = static_cast<std::size_t>(iterations_) * plane_bytes_;
  staged.outputs = kernels::allocate_device(kept);
  FUSESCOPE_CUDA(cudaMemset(staged.outputs.get(), 0xFF, kept));
  const std::size_t first = static_cast<std::size_t>(rank) * (hit_bytes_ / 4);
  for (std::size_t i = 0; i < feeds_.size(); ++i) {
    const Feed& feed = feeds_[i];
    FUSESCOPE_CUDA(cudaMemcpy(part(staged.ids, i, hit_bytes_), feed.routing.experts.data() + first,
                              hit_bytes_, cudaMemcpyHostToDevice));
    FUSESCOPE_CUDA(cudaMemcpy(part(staged.weights, i, hit_bytes_),
                              feed.routing.weights.data() + first, hit_bytes_,
                              cudaMemcpyHostToDevice));
    memory_.make_input(rank, feed.input_seed,
                       reinterpret_cast<kernels::Bf16*>(part(staged.inputs, i, plane_bytes_)));
  }
  // A copy from pageable memory may return before it has reached the device.
  FUSESCOPE_CUDA(cudaDeviceSynchronize());
}

void StagedRuns::enqueue_feed(int rank, int iteration, cudaStream_t stream) const {
  const RankMemory& m = memory_.rank(rank);
  const RankStage& staged = ranks_[static_cast<std::size_t>(rank)];
  const std::size_t i = static_cast<std::size_t>(iteration) % feeds_.size();
  copy_on(stream, m.own_ids, part(staged.ids, i, hit_bytes_), hit_bytes_);
  copy_on(stream, m.own_weights, part(staged.weights, i, hit_bytes_), hit_bytes_);
  copy_on(stream, m.own_input, part(staged.inputs, i, plane_bytes_), plane_bytes_);
}

void StagedRuns::enqueue_keep(int rank, int iteration, cudaStream_t stream) const {
  const RankStage& staged = ranks_[static_cast<std::size_t>(rank)];
  copy_on(stream, part(staged.outputs, static_cast<std::size_t>(iteration), plane_bytes_),
          memory_.rank(rank).args.output, plane_bytes_);
}

std::vector<kernels::Bf16> StagedRuns::read_output(int rank, int iteration) const {
  const kernels::OnDevice on(memory_.rank(rank).device);
  const RankStage& staged = ranks_.at(static_cast<std::size_t>(rank));
  std::vector<kernels::Bf16> output(plane_bytes_ / sizeof(kernels::Bf16));
  FUSESCOPE_CUDA(cudaMemcpy(output.data(),
                            part(staged.outputs, static_cast<std::size_t>(iteration), plane_bytes_),
                            plane_bytes_, cudaMemcpyDeviceToHost));
  return output;
}

}  // namespace fusescope::engine::cuda
