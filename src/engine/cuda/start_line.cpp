#include "engine/cuda/start_line.hpp"

#include <atomic>
#include <cstdio>
#include <new>

namespace fusescope::engine::cuda {

StartLine::StartLine()
    : block_(kernels::allocate_host(sizeof(kernels::HoldWords))),
      words_(new (block_.get()) kernels::HoldWords{}) {}

void StartLine::hold(const kernels::Guard& guard, cudaStream_t stream) const {
  kernels::launch_hold(guard, words_, next_, stream);
}

void StartLine::release() {
  if (!told_ && words_->missed != 0 && words_->missed + 1 == next_) {
    told_ = true;
    std::fprintf(
        stderr,
        "fusescope: the host had not enqueued an iteration when the device stopped waiting "
        "for it (do launches block, by CUDA_LAUNCH_BLOCKING or a tool?): walls contain host "
        "time\n");
  }
  // Orders the launches before the device's acquire in the hold.
  std::atomic_ref<std::uint64_t>(words_->released).store(next_++, std::memory_order_release);
}

}  // namespace fusescope::engine::cuda
