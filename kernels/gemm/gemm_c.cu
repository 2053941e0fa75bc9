// The grouped GEMM behind C functions, so that a Python script can time it beside other libraries on the
// same tensors. A shared library of its own; nothing in the project links it.
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "gemm_clocks.cuh"
#include "gemm_kernel.cuh"

namespace fk = fusescope::kernels;

namespace {

using Launcher = cudaError_t (*)(const fk::GroupedGemmArgs&, int, cudaStream_t);

struct Form {
  int variant;  // position in kGemmVariants
  Launcher launch;
};

template <int Index>
constexpr Form form() {
  return {Index, &fk::launch_grouped_gemm_variant<Index>};
}

constexpr std::array kForms = {
    form<fk::variant_index({256, 64, 4, fk::Epilogue::kStore})>(),
    form<fk::variant_index({256, 64, 4, fk::Epilogue::kStore, true})>(),
    form<fk::variant_index(fk::transposed({256, 64, 4, fk::Epilogue::kStore}))>(),
    form<fk::variant_index(fk::transposed({128, 64, 4, fk::Epilogue::kStore}))>(),
};

const fk::GemmVariant& variant_of(const Form& form) {
  return fk::kGemmVariants[static_cast<std::size_t>(form.variant)];
}

const Form& form_named(const std::string& name) {
  std::string names;
  for (const Form& form : kForms) {
    if (to_string(variant_of(form)) == name)
      return form;
    names += ' ';
    names += to_string(variant_of(form));
  }
  throw std::invalid_argument("no variant " + name + "; there are" + names);
}

struct Handle {
  fk::GroupedGemmArgs args;
  Launcher launch;
};

}  // namespace

extern "C" {

// Shapes and pointers as in GroupedGemmDesc; slack and next_tile may be null; a variant's name as to_string writes
// it. Returns null and writes why to `error` (256 bytes) if there is no such variant, or it refuses the shape.
void* fusescope_gemm_create(std::int64_t rows_capacity, std::int64_t n, std::int64_t k, int experts,
                            const void* a, const void* b, void* d, const std::int32_t* expert_rows,
                            const std::int32_t* slack, std::uint32_t* next_tile,
                            const char* variant, char* error) {
  try {
    fk::GroupedGemmDesc desc{rows_capacity, n, k, experts, a, b, d, expert_rows};
    desc.slack = slack;
    desc.next_tile = next_tile;
    const Form& form = form_named(variant);
    return new Handle{fk::make_grouped_gemm_args(desc, variant_of(form)), form.launch};
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
  return h.launch(h.args, workers, static_cast<cudaStream_t>(stream));
}

// Cycles and nanoseconds of every SM, 16 bytes each.
int fusescope_gemm_read_clocks(void* per_sm, int sms, void* stream) {
  fk::bench::read_clocks<<<sms, 1024, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<fk::bench::Clock*>(per_sm));
  return cudaGetLastError();
}

}  // extern "C"
