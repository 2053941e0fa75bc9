#pragma once
// Checks the outputs of all ranks on the GPUs: against a reference in fp32 that shares no kernel with
// the layer, computed once per routing, and by a checksum for bitwise comparisons.

#include <cstdint>
#include <vector>

#include "engine/cuda/layer_memory.hpp"
#include "kernels/cuda_check.hpp"
#include "kernels/reference_layer.hpp"
#include "layer/routing.hpp"

namespace fusescope::engine::cuda {

// sqrt(sum of squared errors / sum of squares); infinity if any output is not finite.
struct OutputError {
  double relative = 0;   // over all ranks
  double worst_row = 0;  // of the row that is furthest off, in itself
  int worst_rank = 0;    // whose row it is,
  int worst_token = 0;   // of its T
};

class Verifier {
 public:
  Verifier(const LayerMemory& memory, const Routing& routing);

  void set_routing(const Routing& routing);
  // The inputs have changed: the reference is computed anew when it is next needed.
  void forget_reference() { current_ = false; }
  OutputError output_error();
  std::uint64_t checksum() const;

 private:
  void compute_reference();
  void compute_part(int rank);
  std::vector<kernels::RowDifference> compare(int rank) const;

  const LayerMemory& memory_;
  Routing routing_;
  std::vector<kernels::DeviceBlock>
      parts_;             // by rank: [R*T, H] fp32, that rank's part of the output
  bool current_ = false;  // `parts_` belong to `routing_` and the inputs
};

}  // namespace fusescope::engine::cuda
