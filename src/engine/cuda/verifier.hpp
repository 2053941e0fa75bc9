#pragma once
// Checks the outputs of all ranks on the GPUs: against a reference in fp32 that shares no kernel with
// the layer, computed once per routing, and by a checksum for bitwise comparisons.

#include <cstdint>
#include <vector>

#include "engine/cuda/layer_memory.hpp"
#include "kernels/cuda_check.hpp"
#include "layer/routing.hpp"

namespace fusescope::engine::cuda {

class Verifier {
 public:
  Verifier(const LayerMemory& memory, const Routing& routing);

  void set_routing(const Routing& routing);
  // sqrt(sum of squared errors / sum of squares), over all ranks; infinity if any output is not finite.
  double relative_error();
  std::uint64_t checksum() const;

 private:
  void compute_reference();
  void compute_part(int rank);

  const LayerMemory& memory_;
  Routing routing_;
  std::vector<kernels::DeviceBlock>
      parts_;             // by rank: [R*T, H] fp32, that rank's part of the output
  bool current_ = false;  // `parts_` belong to `routing_`
};

}  // namespace fusescope::engine::cuda
