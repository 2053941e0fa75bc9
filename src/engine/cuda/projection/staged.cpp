#include "engine/cuda/projection/staged.hpp"

#include <utility>

namespace fusescope::engine::cuda::projection {
namespace {

kernels::Bf16* part(const kernels::DeviceBlock& block, std::size_t number, std::size_t bytes) {
  return reinterpret_cast<kernels::Bf16*>(static_cast<char*>(block.get()) + number * bytes);
}

}  // namespace

Staged::Staged(const Memory& memory, RowOrder order, std::vector<std::uint64_t> seeds,
               int iterations)
    : memory_(memory), inputs_(seeds.size()), iterations_(iterations) {
  for (int r = 0; r < memory_.ranks(); ++r) {
    const kernels::OnDevice on(memory_.rank(r).device);
    RankStage& staged = ranks_.emplace_back();
    const std::size_t kept = static_cast<std::size_t>(iterations_) * memory_.output_bytes();
    staged.inputs = kernels::allocate_device(inputs_ * memory_.input_bytes());
    staged.outputs = kernels::allocate_device(kept);
    FUSESCOPE_CUDA(cudaMemset(staged.outputs.get(), 0xFF, kept));
    const kernels::DeviceBlock by_token = kernels::allocate_device(memory_.input_bytes());
    auto* x = static_cast<kernels::Bf16*>(by_token.get());
    for (std::size_t i = 0; i < inputs_; ++i) {
      memory_.make_input(r, seeds[i], x);
      memory_.arrange(r, order, x, part(staged.inputs, i, memory_.input_bytes()), nullptr);
    }
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
  }
}

void Staged::enqueue_input(int rank, int iteration, cudaStream_t stream) const {
  const std::size_t i = static_cast<std::size_t>(iteration) % inputs_;
  FUSESCOPE_CUDA(
      cudaMemcpyAsync(memory_.rank(rank).rows,
                      part(ranks_[static_cast<std::size_t>(rank)].inputs, i, memory_.input_bytes()),
                      memory_.input_bytes(), cudaMemcpyDeviceToDevice, stream));
}

void Staged::enqueue_keep(int rank, int iteration, cudaStream_t stream) const {
  FUSESCOPE_CUDA(cudaMemcpyAsync(part(ranks_[static_cast<std::size_t>(rank)].outputs,
                                      static_cast<std::size_t>(iteration), memory_.output_bytes()),
                                 memory_.rank(rank).args.output, memory_.output_bytes(),
                                 cudaMemcpyDeviceToDevice, stream));
}

std::vector<kernels::Bf16> Staged::read_output(int rank, int iteration) const {
  const kernels::OnDevice on(memory_.rank(rank).device);
  std::vector<kernels::Bf16> output(memory_.output_bytes() / sizeof(kernels::Bf16));
  FUSESCOPE_CUDA(cudaMemcpy(output.data(),
                            part(ranks_.at(static_cast<std::size_t>(rank)).outputs,
                                 static_cast<std::size_t>(iteration), memory_.output_bytes()),
                            memory_.output_bytes(), cudaMemcpyDeviceToHost));
  return output;
}

}  // namespace fusescope::engine::cuda::projection
