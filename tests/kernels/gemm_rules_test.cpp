// The host's refusals, and the registry. Needs no device.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "kernels/gemm/gemm_launch.hpp"

namespace fusescope::kernels {
namespace {

alignas(16) unsigned char buffer[64];

GroupedGemmDesc shape(std::int64_t n, std::int64_t k, std::int64_t rows = 256) {
  return {rows, n, k, 4, buffer, buffer, buffer, nullptr};
}

void expect_refusal(const GroupedGemmDesc& desc, const GemmVariant& v, const std::string& words) {
  const std::string why = why_unsupported(desc, v);
  EXPECT_NE(why.find(words), std::string::npos) << "got: " << why;
}

TEST(GemmRules, ModelShapesFitEveryVariant) {
  for (const GemmVariant& v : kGemmVariants) {
    for (const std::int64_t h : {512, 2048, 2880, 4096, 7168}) {
      for (const std::int64_t i : {352, 768, 1024, 2048}) {
        EXPECT_EQ(why_unsupported(shape(2 * i, h), v), "") << to_string(v);
        if (!v.gathers) {  // the down GEMM's rows are in place
          EXPECT_EQ(why_unsupported(shape(h, i), v), "") << to_string(v);
        }
      }
    }
  }
}

TEST(GemmRules, RefusalsNameTheValueAndTheRule) {
  const GemmVariant store{};
  const GemmVariant fused{.epilogue = Epilogue::kSiluMul};
  expect_refusal(shape(1001, 512), store, "N 1001 is not a multiple of 8");
  expect_refusal(shape(1000, 516), store, "K 516 is not a multiple of 8");
  expect_refusal(shape(1000, 512), fused, "N 1000 is not a multiple of 16");
  expect_refusal(shape(512, 520), gathering(store), "K 520 is not a multiple of 64");
  expect_refusal(shape(512, 512, 200), store, "row capacity 200 is not a multiple of 128");
  expect_refusal(shape(512, 0), store, "must be positive");
  GroupedGemmDesc shifted = shape(512, 512);
  shifted.a = buffer + 2;
  expect_refusal(shifted, store, "16-byte boundaries");
  GroupedGemmDesc grouped = shape(1536, 512);
  grouped.column_groups = 4;
  expect_refusal(grouped, store, "N tiles 6 is not a multiple of 4");
  grouped.column_groups = 0;
  expect_refusal(grouped, store, "column groups 0: at least 1");
}

TEST(GemmRules, TransposedVariantsRefuseMoreExpertsThanTheirTablesHold) {
  GroupedGemmDesc desc = shape(512, 512);
  desc.experts = kMostTransposedExperts;
  const GemmVariant v = transposed({256, 64, 4, Epilogue::kStore});
  EXPECT_EQ(why_unsupported(desc, v), "");
  desc.experts = 1025;
  expect_refusal(desc, v, "experts 1025");
  EXPECT_EQ(why_unsupported(desc, GemmVariant{}), "");
}

TEST(GemmRules, ArgumentsAreRefusedBeforeTheDriverIsAsked) {
  EXPECT_THROW(make_grouped_gemm_args(shape(1001, 512), GemmVariant{}), std::invalid_argument);
  EXPECT_THROW(launch_grouped_gemm({}, GemmVariant{.stages = 3}, 1, nullptr),
               std::invalid_argument);
  EXPECT_THROW(launch_grouped_gemm({}, GemmVariant{}, 0, nullptr), std::invalid_argument);
}

TEST(GemmRules, ChoiceWastesTheFewestColumns) {
  EXPECT_EQ(choose_gemm_variant(1536, Epilogue::kStore).block_n, 256);
  EXPECT_EQ(choose_gemm_variant(640, Epilogue::kStore).block_n, 128);
  EXPECT_EQ(choose_gemm_variant(704, Epilogue::kStore).block_n, 256);
  EXPECT_EQ(choose_gemm_variant(1536, Epilogue::kSiluMul).epilogue, Epilogue::kSiluMul);
}

TEST(GemmRules, AStageLendsNoMoreThanItsReaderHasAndATileNeeds) {
  for (const GemmVariant& v : kGemmVariants) {
    SCOPED_TRACE(to_string(v));
    EXPECT_GE(lent_chunks(v), 0);
    EXPECT_LE(lent_chunks(v) * staged_chunk_bytes(v), own_stage_bytes(v));
    if (lent_chunks(v) > 0) {
      EXPECT_LE(all_chunks(v), chunks_of_tile(v));
      // Of gate and of up, whole chunks each: chunks go to parts in turn.
      EXPECT_EQ(own_stage_bytes(v) / (v.transposed ? b_boxes(v) : 1) % staged_chunk_bytes(v), 0);
    }
  }
}

TEST(GemmRules, SharedMemoryFitsWithRoomForStatics) {
  for (const GemmVariant& v : kGemmVariants) {
    EXPECT_LE(shared_bytes(v) + 1024, kMaxSharedBytes) << to_string(v);
  }
}

}  // namespace
}  // namespace fusescope::kernels
