#pragma once
// Which of the GEMM's forms runs on a device: what `gemm` and `tile` come to there.

#include <string>

#include "layer/problem.hpp"

namespace fusescope {

// Shared memory that a block must be able to have [bytes]: for wgmma and for mma's deep ring; for
// mma_small, which is mma with a ring that fits sm_120.
inline constexpr int kLargeGemmBytes = 227 * 1024;
inline constexpr int kSmallGemmBytes = 99 * 1024;

// The config with `gemm` and `tile` no longer automatic. mma on a device without room for the deep ring is
// mma_small.
Config with_gemm_chosen(Config config, const DeviceLimits& device);

// Of such a config: its tile as the knob writes it, and the columns of that; and both in words, "wgmma, tiles
// of 128x256".
std::string tile_text(TileShape tile);
int tile_columns(TileShape tile);
int tile_columns(const Config& chosen);
std::string describe_gemm(const Config& chosen);

// "" if the device can run the config's GEMMs, else why not.
std::string why_no_gemm(const Config& config, const DeviceLimits& device);

}  // namespace fusescope
