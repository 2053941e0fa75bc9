#pragma once
// The GEMM's tile variant that a config asks for.

#include <string>

#include "kernels/gemm/gemm_variants.hpp"
#include "layer/config.hpp"

namespace fusescope::engine::cuda {

// What kernel 1 may want of its GEMM.
struct GemmWishes {
  bool gathers = false;
  bool leaves_room = false;
};

// `path` and `tile` chosen, and fit for each other: layer/gemm_path.hpp. Throws std::logic_error otherwise.
kernels::GemmVariant gemm_variant(GemmPath path, TileShape tile, kernels::Epilogue epilogue,
                                  const GemmWishes& wishes = {});

inline kernels::GemmVariant gemm_variant(const Config& config, kernels::Epilogue epilogue,
                                         const GemmWishes& wishes = {}) {
  return gemm_variant(config.gemm, config.tile, epilogue, wishes);
}

}  // namespace fusescope::engine::cuda
