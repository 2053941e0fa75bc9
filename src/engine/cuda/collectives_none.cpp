// In place of collectives.cpp where there was no nccl.h to build it with.
#include "engine/cuda/collectives.hpp"

namespace fusescope::engine::cuda {
namespace {

constexpr const char* kWhyNot = "this build has no NCCL: there was no nccl.h when it was built";

}  // namespace

struct NcclCollectives::State {};

NcclFound find_nccl() {
  return {"", "", kWhyNot};
}

NcclCollectives::NcclCollectives(const std::vector<int>&) {
  throw NcclError(kWhyNot);
}

NcclCollectives::~NcclCollectives() = default;

std::string NcclCollectives::describe() const {
  return kWhyNot;
}

void NcclCollectives::all_gather(int, const kernels::Bf16*, kernels::Bf16*, std::size_t,
                                 cudaStream_t) const {
  throw NcclError(kWhyNot);
}

void NcclCollectives::reduce_scatter(int, const kernels::Bf16*, kernels::Bf16*, std::size_t,
                                     cudaStream_t) const {
  throw NcclError(kWhyNot);
}

void NcclCollectives::abort() noexcept {}

bool NcclCollectives::aborted() const {
  return false;
}

}  // namespace fusescope::engine::cuda
