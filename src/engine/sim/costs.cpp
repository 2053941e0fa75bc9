#include "engine/sim/costs.hpp"

#include <algorithm>
#include <cmath>

#include "layer/gemm_path.hpp"

namespace fusescope::engine::sim {
namespace {

constexpr double kElement = 2;        // [bytes] bf16
constexpr double kMemoryStep = 6000;  // [ns] of products between two requests to memory
constexpr double kMostSteps = 32;

// Tiles by row steps: a ring stage takes no less than this part of the time of a whole tile's, 128x256, however
// few its products. The ring has four stages, however small. Fitted; README.md has to what, and what it leaves.
constexpr double kStageFloor = 0.75;
constexpr double kWholeColumns = 256;

struct GemmShape {
  double n, k;
  bool activation_fused;  // the epilogue stores half of what it computes
  bool rows_gathered;
  double sms;  // at work
};

// A profile has the rate of whole row blocks by 128 and by 256 columns. Tiles by row steps multiply at the rate of
// 256 columns, for all that the profile knows.
double tile_tflops(const Profile& profile, TileShape tile) {
  return tile == TileShape::m128n128 ? profile.gemm_m128n128 : profile.gemm_m128n256;
}

// A row block's, of so many columns [ns].
double products_time(const Profile& profile, const GemmShape& gemm, double tflops, double columns) {
  const double clock_gain = std::pow(gemm.sms / profile.sms, profile.power_exponent);
  return 2.0 * kRowBlock * columns * gemm.k / (tflops * 1e3 / profile.sms) * clock_gain;
}

TileCosts tile_costs(const Profile& profile, TileShape tile, const GemmShape& gemm) {
  const double tile_n = tile_columns(tile);
  const double products = products_time(profile, gemm, tile_tflops(profile, tile), tile_n);

  TileCosts costs;
  costs.n_tiles = static_cast<int>(std::ceil(gemm.n / tile_n));
  costs.columns = tile_columns(tile);
  costs.row_step = row_grouping(tile).row_step;
  costs.steps = static_cast<int>(std::clamp(std::ceil(products / kMemoryStep), 1.0, kMostSteps));
  costs.fill = profile.tile_fill * 1e3;
  costs.step = products / costs.steps;
  if (gemm.rows_gathered) {
    costs.copy = products_time(profile, gemm, profile.gemm_m128n256, kWholeColumns) *
                 (1 / profile.gemm_gather - 1) / costs.steps;
  }
  costs.weight_bytes = tile_n * gemm.k * kElement / costs.steps;
  costs.row_bytes = kRowBlock * gemm.k * kElement / costs.steps;
  // A narrow tile has half the registers to store.
  costs.epilogue = profile.tile_epilogue * 1e3 * tile_n / 256;
  costs.store_bytes = kRowBlock * tile_n * kElement;
  if (gemm.activation_fused) {
    costs.epilogue += profile.activation_epilogue * 1e3;
    costs.store_bytes /= 2;
  }
  return costs;
}

double schedule_cost(const Profile& profile, const Shape& shape, const Config& config) {
  if (config.schedule == ScheduleSite::host) {
    return profile.schedule_host * 1e3 +
           profile.schedule_host_per_hit * static_cast<double>(shape.hits());
  }
  if (config.schedule == ScheduleSite::fused) {
    return profile.prologue_schedule * 1e3 +
           profile.prologue_per_hit * static_cast<double>(shape.hits());
  }
  return (config.graph ? profile.schedule_device : profile.schedule_device_eager) * 1e3;
}

// Rates in GB/s are bytes per nanosecond, so that bytes over a rate are nanoseconds.
double capped(double rate, double cap) {
  return cap > 0 ? std::min(rate, cap) : rate;
}

}  // namespace

double TileCosts::row_blocks_of(const RowTile& tile) const {
  if (row_step == 0) {
    return tile.blocks;
  }
  const int stepped = (tile.rows + row_step - 1) / row_step * row_step;
  return static_cast<double>(stepped) / kRowBlock;
}

double TileCosts::step_of(const RowTile& tile) const {
  const double products = row_blocks_of(tile);
  return row_step == 0 ? products : std::max(products, kStageFloor * kWholeColumns / columns);
}

double TileCosts::copied_blocks_of(const RowTile& tile) const {
  constexpr int kCopiedRows = 32;  // gemm_gather.cuh, rows_to_copy()
  constexpr int kHalf = kRowBlock / 2;
  const int together = row_step == 0 ? kHalf : kCopiedRows;
  const int copied = (tile.rows + together - 1) / together * together;
  return static_cast<double>(copied) / kRowBlock;
}

DeviceLimits limits_of(const Profile& profile) {
  return {profile.name, static_cast<int>(profile.sms),
          static_cast<int>(profile.smem_per_block * 1024), true};
}

// Of the prologue's copy-in, which begins with the ids exchange and ends when the peers have heard of it. Pushed,
// a rank's tokens cross its own link to each peer, and those of all ranks the fabric.
double copy_in_left(const Profile& profile, const Shape& shape, const Config& config,
                    const Costs& costs) {
  const double plane = shape.tokens_per_rank * costs.row_bytes;
  double copied = 2 * plane / costs.memory_rate;
  if (pushes_tokens(config)) {
    const double out = (shape.ranks - 1) * plane;
    copied = std::max({copied, out / profile.link_push, shape.ranks * out / profile.fabric});
  }
  copied += profile.watermark_latency * 1e3;
  return std::max(0.0, copied - costs.ids_exchange - costs.schedule);
}

Costs make_costs(const Profile& profile, const Shape& shape, const Config& config, int rows) {
  Costs costs;
  const TileShape tile = with_gemm_chosen(config, limits_of(profile)).tile;
  const double hidden = shape.hidden;
  const double inner = shape.intermediate;
  // Where kernels overlap, an SM that has communicated computes for the next one: it saves no power.
  const bool splits = config.form == LayerForm::fused && config.study != Study::compute_all &&
                      config.launch == LaunchOrder::stream;
  const bool gathers = gathers_rows(config);
  costs.grouping = row_grouping(tile);
  costs.gemm_1 = tile_costs(profile, tile,
                            {2 * inner, hidden, config.activation == Activation::fused, gathers,
                             profile.sms - (splits ? config.dispatch_comm_sms : 0)});
  costs.gemm_2 = tile_costs(
      profile, tile,
      {hidden, inner, false, false, profile.sms - (splits ? config.combine_comm_sms : 0)});
  costs.gemm_memory_scale = 1 / profile.dram_gemm_fraction;
  costs.gather_memory_scale = 1 / profile.dram_gather_fraction;

  costs.row_bytes = hidden * kElement;
  costs.pull_remote_row = costs.row_bytes / profile.sm_pull_remote;
  costs.pull_local_row = costs.row_bytes / profile.sm_pull_local;
  costs.store_row = costs.row_bytes / profile.sm_store;
  costs.read_row = costs.row_bytes / profile.sm_job_read;
  costs.push_row = costs.row_bytes / profile.sm_push;
  costs.link_pull_row = costs.row_bytes / profile.link_pull;
  costs.link_push_row = costs.row_bytes / profile.link_push;
  // The kernels deal out the cap in equal lines, one to and one from each peer.
  costs.line_row =
      config.link_gbps > 0 ? (shape.ranks - 1) * costs.row_bytes / config.link_gbps : 0;
  costs.fabric_row = costs.row_bytes / profile.fabric;

  costs.memory_rate = profile.dram_peak * profile.dram_copy_fraction;
  costs.cache_bytes = profile.l2 * 1024 * 1024;

  // Where the tokens stay in the cache, beside the weights that stream through it.
  if (gathers && shape.tokens() * costs.row_bytes <= costs.cache_bytes / 2) {
    costs.gemm_1.row_bytes = 0;
  }

  const double floor = profile.small_kernel * 1e3;
  const double plane = shape.tokens_per_rank * costs.row_bytes;
  costs.schedule = schedule_cost(profile, shape, config);
  costs.ids_exchange =
      (config.schedule == ScheduleSite::fused ? profile.prologue_exchange : profile.ids_exchange) *
      1e3;
  costs.copy_in = floor + 2 * plane / costs.memory_rate;
  costs.copy_in_left = copy_in_left(profile, shape, config, costs);
  costs.launch_gap = (config.graph ? profile.launch_gap_graph : profile.launch_gap_eager) * 1e3;
  costs.activation_floor = floor;
  costs.activation_row = profile.activation_passes * inner * kElement / costs.memory_rate;

  // The serial layer's collectives move R-1 planes in and out of every GPU.
  const double collective =
      profile.collective_latency * 1e3 +
      (shape.ranks - 1) * plane / capped(profile.collective_rate, config.link_gbps);
  costs.all_gather = costs.reduce_scatter = shape.ranks > 1 ? collective : floor;
  const double gathered = (rows + shape.tokens()) * costs.row_bytes;
  costs.scatter_rows = costs.combine =
      floor + gathered / costs.memory_rate * costs.gather_memory_scale;
  return costs;
}

}  // namespace fusescope::engine::sim
