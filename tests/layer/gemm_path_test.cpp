// What `gemm` and `tile` come to on a device, and what is refused.
#include "layer/gemm_path.hpp"

#include <gtest/gtest.h>

#include "layer_test_support.hpp"

namespace fusescope {
namespace {

const DeviceLimits kHopper{"an H200", 132, 227 * 1024, true, true};
const DeviceLimits kDatacentre{"an sm_100", 148, 227 * 1024, true, false};
const DeviceLimits kWorkstation{"an sm_120", 110, 99 * 1024, true, false};

Config with(GemmPath gemm, TileShape tile = TileShape::automatic) {
  Config config;
  config.gemm = gemm;
  config.tile = tile;
  return config;
}

TEST(GemmPaths, AutoIsTheFastestThatTheDeviceHas) {
  const Config hopper = with_gemm_chosen({}, kHopper);
  EXPECT_EQ(hopper.gemm, GemmPath::wgmma);
  EXPECT_EQ(tile_columns(hopper), 256);
  const Config datacentre = with_gemm_chosen({}, kDatacentre);
  EXPECT_EQ(datacentre.gemm, GemmPath::mma);
  EXPECT_EQ(tile_columns(datacentre), 128);
  const Config workstation = with_gemm_chosen({}, kWorkstation);
  EXPECT_EQ(workstation.gemm, GemmPath::mma_small);
  EXPECT_EQ(tile_columns(workstation), 128);
}

TEST(GemmPaths, ForcedOnADeviceThatHasBoth) {
  EXPECT_EQ(with_gemm_chosen(with(GemmPath::mma), kHopper).gemm, GemmPath::mma);
  EXPECT_EQ(with_gemm_chosen(with(GemmPath::mma), kHopper).tile, TileShape::m128n128);
  EXPECT_EQ(with_gemm_chosen(with(GemmPath::mma_small), kHopper).gemm, GemmPath::mma_small);
  EXPECT_EQ(with_gemm_chosen(with(GemmPath::mma), kWorkstation).gemm, GemmPath::mma_small);
  DeviceLimits told = kHopper;
  told.gemm = GemmPath::mma;
  EXPECT_EQ(with_gemm_chosen({}, told).gemm, GemmPath::mma);
  EXPECT_EQ(with_gemm_chosen(with(GemmPath::wgmma), told).gemm, GemmPath::wgmma);
}

TEST(GemmPaths, AreSaidInWords) {
  EXPECT_EQ(describe_gemm(with_gemm_chosen({}, kHopper)), "wgmma, tiles of 128x256");
  EXPECT_EQ(describe_gemm(with_gemm_chosen({}, kWorkstation)),
            "mma.sync in 99 KiB of shared memory, tiles of 128x128");
  EXPECT_EQ(
      describe_gemm(with_gemm_chosen(with(GemmPath::automatic, TileShape::m160n256), kHopper)),
      "wgmma, tiles of 160x256");
}

TEST(GemmPaths, TilesAreWrittenAndReadByTheirRowsAndColumns) {
  for (const auto& [shape, text, columns] : {std::tuple{TileShape::m128n128, "128x128", 128},
                                             {TileShape::m128n256, "128x256", 256},
                                             {TileShape::m160n256, "160x256", 256},
                                             {TileShape::m288n128, "288x128", 128}}) {
    Config config;
    set_knob_text(config, std::string("tile=") + text, "--set");
    EXPECT_EQ(config.tile, shape);
    EXPECT_EQ(tile_text(shape), text);
    EXPECT_EQ(tile_columns(shape), columns);
  }
  Config config;
  const auto refused = test::refusal([&] { set_knob_text(config, "tile=160x128", "--set"); });
  EXPECT_TRUE(test::contains(refused.accepted, "160x256")) << refused.accepted;
}

TEST(GemmPaths, EveryDeviceRunsItsOwnChoice) {
  for (const DeviceLimits& device : {kHopper, kDatacentre, kWorkstation}) {
    EXPECT_EQ(why_no_gemm({}, device), "");
    EXPECT_EQ(why_no_gemm(with_gemm_chosen({}, device), device), "");
    EXPECT_EQ(why_no_gemm(with(GemmPath::mma, TileShape::m128n128), device), "");
  }
}

TEST(GemmPaths, RefusalsSayWhatWouldRun) {
  EXPECT_EQ(why_no_gemm(with(GemmPath::wgmma), kWorkstation),
            "gemm wgmma has no instructions on an sm_120: auto or mma run there");
  EXPECT_NE(why_no_gemm(with(GemmPath::wgmma), kDatacentre), "");
  EXPECT_EQ(
      why_no_gemm(with(GemmPath::mma, TileShape::m128n256), kHopper),
      "tile 128x256 needs wgmma, and the GEMMs run with mma.sync: its warps have registers for "
      "128x128 (tile auto or 128x128)");
  EXPECT_EQ(
      why_no_gemm(with(GemmPath::automatic, TileShape::m128n256), kWorkstation),
      "tile 128x256 needs wgmma, and the GEMMs run with mma.sync on an sm_120: its warps have "
      "registers for 128x128 (tile auto or 128x128)");
  for (const TileShape tile : {TileShape::m160n256, TileShape::m288n128}) {
    EXPECT_EQ(why_no_gemm(with(GemmPath::automatic, tile), kHopper), "");
    EXPECT_EQ(why_no_gemm(with(GemmPath::mma, tile), kHopper),
              "tile " + tile_text(tile) +
                  " needs wgmma, and the GEMMs run with mma.sync: its warps have registers for "
                  "128x128 (tile auto or 128x128)");
  }
  EXPECT_EQ(why_no_gemm({}, {"an old GPU", 80, 64 * 1024}),
            "the GEMMs need 101376 bytes of shared memory, and a block of an old GPU has 65536");
}

TEST(GemmPaths, RowsAreGatheredByTheTilesThatAreBuiltForIt) {
  const auto gathered = [](TileShape tile, Activation activation) {
    Config config = with(GemmPath::automatic, tile);
    config.dispatch = Dispatch::gather;
    config.activation = activation;
    return config;
  };
  for (const Activation activation : {Activation::separate, Activation::fused}) {
    for (const TileShape tile : {TileShape::automatic, TileShape::m128n128, TileShape::m128n256,
                                 TileShape::m160n256, TileShape::m288n128}) {
      Config config = gathered(tile, activation);
      const bool refused = tile == TileShape::m288n128 ||
                           (tile == TileShape::m160n256 && activation == Activation::separate);
      EXPECT_EQ(why_no_gemm(config, kHopper),
                refused ? "dispatch gather is built for tiles of 128x128, 128x256 and, with "
                          "activation fused, of 160x256, and tile is " +
                              tile_text(tile) +
                              ": set dispatch to scatter, or tile and activation to one of these"
                        : "");
      config.dispatch = Dispatch::scatter;
      EXPECT_EQ(why_no_gemm(config, kHopper), "");
      config.dispatch = Dispatch::gather;
      config.form = LayerForm::serial;
      EXPECT_EQ(why_no_gemm(config, kHopper), "");
    }
  }
}

TEST(GemmPaths, LegalityAsks) {
  const Problem problem = make_problem(load_shape("seed-tp4"), parse_routing("balanced"));
  EXPECT_EQ(why_illegal(problem, {}, kWorkstation), "");
  EXPECT_NE(why_illegal(problem, with(GemmPath::wgmma), kWorkstation), "");
}

}  // namespace
}  // namespace fusescope
