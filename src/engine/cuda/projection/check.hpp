#pragma once
// Checks the outputs of all ranks on the GPUs against a reference in fp32 that shares no kernel with what
// it checks, computed once per input.

#include <vector>

#include "engine/cuda/projection/memory.hpp"
#include "engine/cuda/verifier.hpp"

namespace fusescope::engine::cuda::projection {

class Check {
 public:
  explicit Check(const Memory& memory) : memory_(memory) {}

  // The inputs have changed: the reference is computed anew when it is next needed.
  void forget_reference() { current_ = false; }
  OutputError output_error();

 private:
  void compute_reference();
  std::vector<kernels::RowDifference> compare(int rank) const;

  const Memory& memory_;
  std::vector<kernels::DeviceBlock> parts_;  // by rank: [R*T, H] fp32, that rank's part of the sum
  bool current_ = false;
};

}  // namespace fusescope::engine::cuda::projection
