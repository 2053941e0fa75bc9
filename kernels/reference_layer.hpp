#pragma once
// The layer again, naively, to check the real one against: one dot product per warp in fp32, no
// intermediate rounding, no tables, nothing shared with the kernels that it checks. And the inputs:
// reproducible random tensors made on the device.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

// Normally distributed bf16 with this standard deviation; element i depends on (seed, i) only.
void launch_random_bf16(Bf16* to, std::int64_t count, float deviation, std::uint64_t seed,
                        cudaStream_t stream);

struct ReferenceArgs {
  const Bf16* tokens = nullptr;           // [R*T, H]
  const std::int32_t* experts = nullptr;  // [R*T, K]
  const float* weights = nullptr;         // [R*T, K]
  const Bf16* gate_up = nullptr;          // [E, 2I, H], this rank's
  const Bf16* down = nullptr;             // [E, H, I]
  float* activated = nullptr;             // [R*T * K, I], scratch
  float* partial = nullptr;               // [R*T, H], out: this rank's part of the layer's output
  std::int32_t token_count = 0, topk = 0, hidden = 0, intermediate = 0;
};
void launch_reference_layer(const ReferenceArgs& args, cudaStream_t stream);

// Of one row: sums over its elements of (found - expected)^2 and expected^2, and how many found are
// not finite.
struct RowDifference {
  double squared_error = 0;
  double squared_norm = 0;
  std::uint64_t not_finite = 0;
};
// `found`: [rows][columns]. `expected`: [parts][rows][columns], summed over parts in fp64. `out`:
// [rows], device memory.
void launch_compare(const Bf16* found, const float* const* expected, int parts, int rows,
                    int columns, RowDifference* out, cudaStream_t stream);

// Hash of a buffer that depends on every bit and its place; `out` is device memory, zeroed by the
// caller.
void launch_checksum(const Bf16* from, std::int64_t count, std::uint64_t* out, cudaStream_t stream);

}  // namespace fusescope::kernels
