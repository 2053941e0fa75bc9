// The grouped GEMM behind C functions, so that a Python script can time it beside other libraries on the
// same tensors. A shared library of its own; nothing in the project links it.
#include <cstdint>
#include <cstdio>
#include <exception>

#include "gemm_clocks.cuh"
#include "gemm_kernel.cuh"

namespace fk = fusescope::kernels;

namespace {

constexpr int kPlain = fk::variant_index({256, 64, 4, fk::Epilogue::kStore});
constexpr int kDeferred = fk::variant_index({256, 64, 4, fk::Epilogue::kStore, true});

struct Handle {
  fk::GroupedGemmArgs args;
  bool deferred;
};

}  // namespace

extern "C" {

// Shapes and pointers as in GroupedGemmDesc; slack and next_tile may be null. Returns null and writes why
// to `error` (256 bytes) if the shape is refused.
void* fusescope_gemm_create(std::int64_t rows_capacity, std::int64_t n, std::int64_t k, int experts,
                            const void* a, const void* b, void* d, const std::int32_t* expert_rows,
                            const std::int32_t* slack, std::uint32_t* next_tile, int deferred,
                            char* error) {
  try {
    fk::GroupedGemmDesc desc{rows_capacity, n, k, experts, a, b, d, expert_rows};
    desc.slack = slack;
    desc.next_tile = next_tile;
    const int index = deferred != 0 ? kDeferred : kPlain;
    return new Handle{fk::make_grouped_gemm_args(desc, fk::kGemmVariants[index]), deferred != 0};
  } catch (const std::exception& refused) {
    std::snprintf(error, 256, "%s", refused.what());
    return nullptr;
  }
}

void fusescope_gemm_destroy(void* handle) {
  delete static_cast<Handle*>(handle);
}

// A cudaError_t. Capturable.
int fusescope_gemm_launch(const void* handle, int workers, void* stream) {
  const Handle& h = *static_cast<const Handle*>(handle);
  const auto on = static_cast<cudaStream_t>(stream);
  return h.deferred ? fk::launch_grouped_gemm_variant<kDeferred>(h.args, workers, on)
                    : fk::launch_grouped_gemm_variant<kPlain>(h.args, workers, on);
}

// Cycles and nanoseconds of every SM, 16 bytes each.
int fusescope_gemm_read_clocks(void* per_sm, int sms, void* stream) {
  fk::bench::read_clocks<<<sms, 1024, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<fk::bench::Clock*>(per_sm));
  return cudaGetLastError();
}

}  // extern "C"
