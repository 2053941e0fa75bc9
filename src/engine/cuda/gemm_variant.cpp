#include "engine/cuda/gemm_variant.hpp"

#include <stdexcept>

#include "layer/gemm_path.hpp"
#include "layer/row_tiles.hpp"

namespace fusescope::engine::cuda {

static_assert(kLargeGemmBytes == kernels::kMaxSharedBytes);
static_assert(kSmallGemmBytes == kernels::kSmallSharedBytes);

kernels::GemmVariant gemm_variant(GemmPath path, TileShape tile, kernels::Epilogue epilogue,
                                  const GemmWishes& wishes) {
  const auto mainloop =
      path == GemmPath::wgmma ? kernels::Mainloop::kWgmma : kernels::Mainloop::kMma;
  const int columns = tile_columns(tile);
  const bool transposed = row_grouping(tile).row_step > 0;
  const int most_bytes =
      path == GemmPath::mma_small ? kernels::kSmallSharedBytes : kernels::kMaxSharedBytes;
  const kernels::GemmVariant* found = nullptr;
  for (const kernels::GemmVariant& v : kernels::kGemmVariants) {
    const bool fits = v.mainloop == mainloop && v.block_n == columns && v.epilogue == epilogue &&
                      !v.deferred && v.gathers == wishes.gathers &&
                      v.leaves_room == wishes.leaves_room && v.transposed == transposed &&
                      shared_bytes(v) <= most_bytes;
    // The deepest ring of those that fit.
    if (fits && (found == nullptr || ring_bytes(v) > ring_bytes(*found))) {
      found = &v;
    }
  }
  if (path == GemmPath::automatic || tile == TileShape::automatic || found == nullptr) {
    throw std::logic_error("no GEMM variant of " + std::to_string(columns) +
                           " columns is built for this choice of instructions");
  }
  return *found;
}

}  // namespace fusescope::engine::cuda
