// What these kernels can run: rules that need no GPU to be asked.
#include "engine/cuda/plan.hpp"

#include "engine/cuda/cuda_test_support.hpp"
#include "engine/cuda/gemm_variant.hpp"
#include "engine/cuda/longest_wait.hpp"
#include "layer/gemm_path.hpp"

namespace fusescope::engine::cuda::test {
namespace {

const Device kH200{0, "NVIDIA H200", 132, 232448, ""};

std::string why(const Shape& shape, const Config& config) {
  return why_illegal_on_device(make_test_problem(shape, "uniform", 1), config, limits_of(kH200));
}

void expect_refusal(const Shape& shape, const Config& config, const std::string& part) {
  const std::string reason = why(shape, config);
  EXPECT_NE(reason.find(part), std::string::npos) << "\"" << part << "\" is not in: " << reason;
}

const Shape kSmall = make_shape(2, 65, 512, 8, 2, 128);

const Device kWorkstation{0, "an sm_120", 110, 101376, "", false};

TEST(PlanRules, EveryModelsShapeRunsWithoutWgmmaToo) {
  for (const char* name : {"seed-tp2", "seed-tp4", "mixtral-8x7b", "qwen3-30b-a3b",
                           "qwen3-235b-a22b", "deepseek-v3", "gpt-oss-120b", "olmoe-1b-7b"}) {
    const Problem problem = make_problem(load_shape(name), parse_routing("uniform"));
    Config config;
    config.tokens_per_block = 4;
    for (const GemmPath path : {GemmPath::mma, GemmPath::mma_small}) {
      config.gemm = path;
      for (const Combine combine : {Combine::dispenser, Combine::block_per_job}) {
        config.combine = combine;
        config.all_hands = combine == Combine::dispenser;
        EXPECT_EQ(why_illegal_on_device(problem, config, limits_of(kH200)), "") << name;
        EXPECT_EQ(why_illegal_on_device(problem, config, limits_of(kWorkstation)), "") << name;
      }
    }
  }
}

TEST(PlanRules, WithoutWgmmaABlockHasFewerThreads) {
  Config config;
  config.gemm = GemmPath::mma;
  config.tokens_per_block = 200;
  EXPECT_EQ(why(kSmall, config), "");
  config.tokens_per_block = 300;
  Shape narrow = kSmall;
  narrow.hidden = 256;
  expect_refusal(narrow, config, "more than a block's 256 threads");
}

TEST(PlanRules, TilesByRowStepsAreTransposedAndTheOthersAreNot) {
  for (const kernels::Epilogue epilogue :
       {kernels::Epilogue::kStore, kernels::Epilogue::kSiluMul}) {
    for (const TileShape tile : {TileShape::m128n128, TileShape::m128n256}) {
      EXPECT_FALSE(gemm_variant(GemmPath::wgmma, tile, epilogue).transposed);
    }
    for (const TileShape tile : kTilesByRowSteps) {
      const kernels::GemmVariant variant = gemm_variant(GemmPath::wgmma, tile, epilogue);
      EXPECT_TRUE(variant.transposed);
      EXPECT_EQ(variant.block_n, tile_columns(tile));
    }
  }
  // Room for a token is taken from the output's, where it is asked for alone.
  for (const TileShape tile : kTilesByRowSteps) {
    const auto fused = kernels::Epilogue::kSiluMul;
    const kernels::GemmVariant plain = gemm_variant(GemmPath::wgmma, tile, fused);
    const kernels::GemmVariant room =
        gemm_variant(GemmPath::wgmma, tile, fused, {.leaves_room = true});
    EXPECT_EQ(work_bytes(plain), 0);
    EXPECT_GT(work_bytes(room), 0);
    EXPECT_LT(staged_rows(room), staged_rows(plain));
  }
  for (const TileShape tile : kTilesByRowSteps) {
    Config config;
    config.tile = tile;
    EXPECT_EQ(why(kSmall, config), "");
    config.dispatch = Dispatch::gather;
    expect_refusal(kSmall, config, "dispatch gather is built for tiles of 128x128");
    config.dispatch = Dispatch::scatter;
    config.gemm = GemmPath::mma;
    expect_refusal(kSmall, config, "needs wgmma");
  }
}

TEST(PlanRules, DefaultsAreLegal) {
  EXPECT_EQ(why(kSmall, Config{}), "");
}

TEST(PlanRules, KernelOneNeedsNoCommunicationBlocks) {
  Config config;
  config.dispatch_comm_sms = 0;
  EXPECT_EQ(why(kSmall, config), "");
  config.dispatch_comm_sms = -1;
  expect_refusal(kSmall, config, "dispatch_comm_sms -1");
}

TEST(PlanRules, FusedActivationNeedsWholeUnits) {
  Shape shape = kSmall;
  shape.intermediate = 72;
  Config config;
  config.activation = Activation::fused;
  EXPECT_EQ(why(shape, config), "");
}

TEST(PlanRules, AsManyRanksAsTheFlagsHaveRoomFor) {
  Shape shape = kSmall;
  shape.ranks = 17;
  expect_refusal(shape, Config{}, "at most 16");
}

TEST(PlanRules, AsManyChunksAsAPlaneHasFlags) {
  Config config;
  config.watermark_chunks = 65;
  expect_refusal(kSmall, config, "64 flags");
  config.form = LayerForm::serial;
  EXPECT_EQ(why(kSmall, config), "");
}

TEST(PlanRules, PartialRowsWithin32BitUnits) {
  Shape shape = kSmall;
  shape.hidden = 65536;
  shape.experts = 2040;
  Config config;
  config.form = LayerForm::serial;
  EXPECT_EQ(why(shape, config), "");
  shape.experts = 2048;  // 2050 row blocks at most: 2050 * 128 * 65536 / 8 units
  expect_refusal(shape, config, "2149580800 units");
  config.form = LayerForm::fused;
  config.tokens_per_block = 1;
  expect_refusal(shape, config, "2149580800 units");
}

TEST(PlanRules, TokensPerBlockWithinABlocksThreads) {
  Shape shape = kSmall;
  shape.hidden = 64;
  Config config;
  config.tokens_per_block = 385;
  expect_refusal(shape, config, "384 threads");
  // Where blocks fetch before they multiply, the threads that multiply do, and the GEMM's other roles have begun.
  config.dispatch_comm_sms = 0;
  config.tokens_per_block = 256;
  EXPECT_EQ(why(shape, config), "");
  config.tokens_per_block = 257;
  expect_refusal(shape, config, "256 threads that fetch before they multiply");
  shape.hidden = 4096;
  config.tokens_per_block = 27;
  EXPECT_EQ(why(shape, config), "");
  config.tokens_per_block = 28;
  expect_refusal(shape, config, "tokens_per_block to at most 27");
  Config beside = config;
  beside.tile = TileShape::m160n256;
  beside.activation = Activation::fused;
  beside.dispatch_head = 50;
  beside.tokens_per_block = 26;
  EXPECT_EQ(why(shape, beside), "");
  beside.tokens_per_block = 27;
  expect_refusal(shape, beside, "tokens_per_block to at most 26");
  config.dispatch_comm_sms = 8;
  EXPECT_EQ(why(shape, config), "");
}

TEST(PlanRules, RowsAreGatheredInPieces) {
  Shape shape = kSmall;
  shape.hidden = 520;
  Config config;
  EXPECT_EQ(why(shape, config), "");
  config.dispatch = Dispatch::gather;
  expect_refusal(shape, config, "pieces of 64 columns, and H=520 is no multiple of that");
  expect_refusal(shape, config, "set dispatch to scatter");
  config.form = LayerForm::serial;  // has its rows in place
  EXPECT_EQ(why(shape, config), "");
  config.form = LayerForm::fused;
  shape.hidden = 576;
  EXPECT_EQ(why(shape, config), "");
}

// R=2 T=65 H=512: 66560 bytes per kernel cross the link.
TEST(PlanRules, EmulatedLinkWithinTheDeadline) {
  Config config;
  config.link_gbps = 0.001;
  const DeviceLimits device = limits_of(kH200);
  EXPECT_DOUBLE_EQ(longest_wait_ns(kSmall, config, device), 66'560'000);
  EXPECT_EQ(why_past_deadline(kSmall, config, device, 200'000'000), "");
  const std::string reason = why_past_deadline(kSmall, config, device, 100'000'000);
  EXPECT_NE(reason.find("link_gbps 0.001: a kernel's rows take 67 ms"), std::string::npos)
      << reason;
  EXPECT_NE(reason.find("at most 50 ms"), std::string::npos) << reason;
  EXPECT_EQ(why(kSmall, config), "");
  Shape shape = kSmall;
  shape.tokens_per_rank = 1024;
  expect_refusal(shape, config, "link_gbps 0.001");
  config.form = LayerForm::serial;
  expect_refusal(shape, config, "link_gbps 0.001");
}

TEST(PlanRules, InjectedDelaysWithinTheDeadline) {
  Shape shape = kSmall;
  shape.tokens_per_rank = 1024;
  const DeviceLimits device = limits_of(kH200);
  Config config;
  config.dispatch_comm_sms = 4;
  config.tokens_per_block = 8;
  config.combine_comm_sms = 4;
  config.all_hands = false;
  config = with_gemm_chosen(config, device);
  const auto in_a_row = [&](InjectPoint point) {
    config.inject = {point, 1000, 1, 3};
    return longest_wait_ns(shape, config, device) / 1000;
  };
  EXPECT_EQ(in_a_row(InjectPoint::none), 0);
  EXPECT_EQ(in_a_row(InjectPoint::pull), 2048 / 32);
  EXPECT_EQ(in_a_row(InjectPoint::scatter), 2048 / 32);
  EXPECT_EQ(in_a_row(InjectPoint::source_rank), 2048 / 32);
  EXPECT_EQ(in_a_row(InjectPoint::token), 1);
  EXPECT_EQ(in_a_row(InjectPoint::job), (2048 + 11) / 12);
  EXPECT_EQ(in_a_row(InjectPoint::push), (2048 + 11) / 12);
  config.watermark_chunks = 4;
  EXPECT_EQ(in_a_row(InjectPoint::watermark), 8);

  config.inject = {InjectPoint::job, 1'000'000'000, -1, -1};
  expect_refusal(shape, config, "inject: 171 delays of 1000000000 ns");
  config.inject.delay_ns = 1'000'000;
  EXPECT_EQ(why(shape, config), "");
  config.combine = Combine::block_per_job;
  EXPECT_EQ(in_a_row(InjectPoint::job), (2048 + 47) / 48) << "12 blocks of 18848 bytes on an SM";
}

// With R ranks a GPU's cap is dealt out in R - 1 lines per direction; a short row is not rounded to
// whole nanoseconds.
TEST(Plan, RowsOfTheEmulatedLink) {
  Shape shape = kSmall;
  EXPECT_EQ(link_row_time(shape, 0), 0U);
  EXPECT_EQ(link_row_time(shape, 1), 1024U * 1024);
  EXPECT_EQ(link_row_time(shape, 450), 2330U);  // 1024 bytes in 2.2756 ns
  shape.ranks = 4;
  EXPECT_EQ(link_row_time(shape, 450), 6991U);
  shape.ranks = 1;
  EXPECT_EQ(link_row_time(shape, 450), 0U);
}

TEST(PlanRules, JobsFitIntoWhatTheGemmLeaves) {
  Shape shape = kSmall;
  shape.hidden = 32768;
  Config config;
  config.tokens_per_block = 1;
  expect_refusal(shape, config, "combine dispenser");
  config.combine = Combine::block_per_job;
  config.all_hands = false;
  EXPECT_EQ(why(shape, config), "");
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
