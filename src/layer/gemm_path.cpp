#include "layer/gemm_path.hpp"

#include <fmt/format.h>

#include "layer/row_tiles.hpp"

namespace fusescope {
namespace {

GemmPath path_on(const DeviceLimits& device, GemmPath wanted) {
  const bool roomy = device.smem_per_block >= kLargeGemmBytes;
  if (wanted == GemmPath::automatic && device.wgmma && roomy) {
    return GemmPath::wgmma;
  }
  if (wanted == GemmPath::automatic || wanted == GemmPath::mma) {
    return roomy ? GemmPath::mma : GemmPath::mma_small;
  }
  return wanted;
}

}  // namespace

Config with_gemm_chosen(Config config, const DeviceLimits& device) {
  config.gemm = path_on(device, config.gemm == GemmPath::automatic ? device.gemm : config.gemm);
  if (config.tile == TileShape::automatic) {
    config.tile = config.gemm == GemmPath::wgmma ? TileShape::m128n256 : TileShape::m128n128;
  }
  return config;
}

std::string tile_text(TileShape tile) {
  Config config;
  config.tile = tile;
  return knob_text(config, "tile");
}

int tile_columns(TileShape tile) {
  return tile == TileShape::m128n256 || tile == TileShape::m160n256 ? 256 : 128;
}

int tile_columns(const Config& chosen) {
  return tile_columns(chosen.tile);
}

std::string describe_gemm(const Config& chosen) {
  const char* const by = chosen.gemm == GemmPath::wgmma ? "wgmma"
                         : chosen.gemm == GemmPath::mma ? "mma.sync"
                                                        : "mma.sync in 99 KiB of shared memory";
  return fmt::format("{}, tiles of {}", by, tile_text(chosen.tile));
}

std::string why_no_gemm(const Config& config, const DeviceLimits& device) {
  const Config chosen = with_gemm_chosen(config, device);
  const bool wgmma = chosen.gemm == GemmPath::wgmma;
  if (wgmma && (!device.wgmma || device.smem_per_block < kLargeGemmBytes)) {
    return fmt::format("gemm wgmma has no instructions on {}: auto or mma run there", device.name);
  }
  if (!wgmma && chosen.tile != TileShape::m128n128) {
    return fmt::format(
        "tile {} needs wgmma, and the GEMMs run with mma.sync{}: its warps have registers for "
        "128x128 (tile auto or 128x128)",
        tile_text(chosen.tile), config.gemm == GemmPath::automatic ? " on " + device.name : "");
  }
  const bool gathered_by_steps =
      chosen.tile == TileShape::m160n256 && config.activation == Activation::fused;
  if (gathers_rows(config) && row_grouping(chosen.tile).row_step > 0 && !gathered_by_steps) {
    return fmt::format(
        "dispatch {} is built for tiles of 128x128, 128x256 and, with activation fused, of "
        "160x256, and tile is {}: set dispatch to scatter, or tile and activation to one of these",
        knob_text(config, "dispatch"), tile_text(chosen.tile));
  }
  if (device.smem_per_block < kSmallGemmBytes) {
    return fmt::format("the GEMMs need {} bytes of shared memory, and a block of {} has {}",
                       kSmallGemmBytes, device.name, device.smem_per_block);
  }
  return "";
}

}  // namespace fusescope
