// The plain grouped GEMM: every variant against the fp64 reference over many shapes, bitwise
// repeatability, replay with changed routing, and the host's refusals.
#include "gemm_fixture.cuh"

namespace fusescope::kernels::testing {
namespace {

#define SKIP_WITHOUT_DEVICE() \
  if (no_device())            \
  GTEST_SKIP() << "no CUDA device"

std::string name_of(const ::testing::TestParamInfo<GemmVariant>& info) {
  return to_string(info.param);
}

class GroupedGemm : public ::testing::TestWithParam<GemmVariant> {
 protected:
  void check(const Shape& shape, int workers = sm_count(), int group = 1, int column_groups = 1) {
    SCOPED_TRACE("experts " + std::to_string(shape.experts()) + ", row blocks " +
                 std::to_string(shape.row_blocks()) + ", N " + std::to_string(shape.n) + ", K " +
                 std::to_string(shape.k) + ", workers " + std::to_string(workers));
    Fixture fixture(shape, GetParam());
    GroupedGemmArgs args = fixture.args();
    args.block_group = group;
    args.column_groups = column_groups;
    launch_grouped_gemm(args, GetParam(), workers, nullptr);
    ASSERT_CUDA(cudaDeviceSynchronize());
    EXPECT_LE(fixture.relative_error(), kTolerance);
    EXPECT_TRUE(fixture.spare_rows_untouched());
    const std::vector<std::uint16_t> round_robin = fixture.output();
    args.next_tile = fixture.next_tile.get();
    for (int repeat = 0; repeat < 2; ++repeat) {  // the first launch leaves the counter as it was
      fixture.d.fill_bytes(0xFF);
      launch_grouped_gemm(args, GetParam(), workers, nullptr);
      ASSERT_CUDA(cudaDeviceSynchronize());
      EXPECT_EQ(fixture.next_tile.download()[0], 0u);
      EXPECT_EQ(fixture.output(), round_robin);
    }
  }
};

// Of rows that hold something.
void expect_same_rows(const std::vector<std::uint16_t>& one,
                      const std::vector<std::uint16_t>& other, const Fixture& fixture) {
  const std::vector<std::int32_t> slack = fixture.shape().slack();
  for (std::size_t i = 0; i < slack.size() * kBlockRows * fixture.d_cols(); ++i) {
    const std::size_t row = i / fixture.d_cols();
    if (static_cast<int>(row % kBlockRows) < kBlockRows - slack[row / kBlockRows]) {
      ASSERT_EQ(one[i], other[i]) << "row " << row;
    }
  }
}

TEST_P(GroupedGemm, OneRowBlock) {
  SKIP_WITHOUT_DEVICE();
  check({{1}, 512, 512});
  check({{1}, 256, 64});
}

TEST_P(GroupedGemm, NothingRouted) {
  SKIP_WITHOUT_DEVICE();
  check({{0, 0, 0}, 512, 512});
}

TEST_P(GroupedGemm, OddExpertCountsAndEmptyExperts) {
  SKIP_WITHOUT_DEVICE();
  check({{0, 2, 1, 0, 0, 3, 1}, 768, 512});
  check({{1, 0, 5}, 768, 512});
  std::vector<int> many(67, 1);
  for (std::size_t i = 0; i < many.size(); i += 3)
    many[i] = 0;
  many[40] = 4;
  check({many, 512, 256});
  std::vector<int> far(300, 0);  // the answer lies many lookup steps ahead
  far[299] = 2;
  check({far, 256, 128});
}

TEST_P(GroupedGemm, RaggedN) {
  SKIP_WITHOUT_DEVICE();
  for (const std::int64_t n : {16, 48, 272, 352, 704, 720, 1008})
    check({{2, 1}, n, 256});
}

TEST_P(GroupedGemm, RaggedK) {
  SKIP_WITHOUT_DEVICE();
  for (const std::int64_t k : {8, 56, 72, 200, 352, 704, 1000}) {
    if (!GetParam().gathers || k % 64 == 0)
      check({{2, 1}, 512, k});
  }
}

TEST_P(GroupedGemm, ModelShapes) {
  SKIP_WITHOUT_DEVICE();
  check({{2, 3}, 1536, 4096});
  check({{3, 2}, 4096, 768});
  check({{1, 2}, 7168, 2048});
  check({{2, 1}, 4096, 7168});
  check({{1, 1, 1}, 2880, GetParam().gathers ? 1472 : 1440});
}

TEST_P(GroupedGemm, InterleavedRowBlocks) {
  SKIP_WITHOUT_DEVICE();
  check({{1, 2, 0, 3, 1, 1, 1}, 1024, 512}, sm_count(), 2);
  check({{1}, 1024, 512}, sm_count(), 2);
  check({{2, 2}, 768, 512}, 5, 2);
  check({{5, 0, 7, 2}, 768, 512}, 9, 3);
}

TEST_P(GroupedGemm, ColumnGroups) {
  SKIP_WITHOUT_DEVICE();
  check({{1, 2, 0, 3, 1, 1, 1}, 1024, 512}, sm_count(), 2, 4);
  check({{2, 0, 2}, 1536, 512}, 5, 2, 3);
  std::vector<int> many(70, 1);  // each range starts its lookup at the first expert again
  many[5] = many[33] = 0;
  check({many, 1024, 128}, 3, 1, 2);
}

TEST_P(GroupedGemm, HalfEmptyRowBlocks) {
  SKIP_WITHOUT_DEVICE();
  check({{1}, 512, 512, {1}});
  check({{3, 0, 1, 2, 1}, 1536, 512, {64, 0, 65, 5, 128}}, sm_count(), 2);
  check({{1, 1, 1, 1, 1, 1, 1}, 768, 64, {64, 3, 64, 128, 17, 1, 64}}, 1);  // many in a row
  check({{1, 2, 1, 3}, 704, GetParam().gathers ? 384 : 352, {2, 63, 127, 33}}, 2, 2);
  const std::vector<int> all_half(40, 1);
  check({all_half, 1024, 128, std::vector<int>(40, 9)}, 3, 1, 2);
}

TEST_P(GroupedGemm, HalfEmptyRowBlocksHaveTheSameBits) {
  SKIP_WITHOUT_DEVICE();
  Fixture fixture({{2, 1, 0, 3}, 1536, 1024, {40, 64, 0, 70}}, GetParam());
  GroupedGemmArgs args = fixture.args();
  launch_grouped_gemm(args, GetParam(), sm_count(), nullptr);
  ASSERT_CUDA(cudaDeviceSynchronize());
  const std::vector<std::uint16_t> skipped = fixture.output();
  args.slack = nullptr;
  launch_grouped_gemm(args, GetParam(), sm_count(), nullptr);
  ASSERT_CUDA(cudaDeviceSynchronize());
  expect_same_rows(skipped, fixture.output(), fixture);
}

TEST_P(GroupedGemm, PaddingIsNotReadAndGivesZeros) {
  SKIP_WITHOUT_DEVICE();
  if (!GetParam().shifts())
    GTEST_SKIP() << "multiplies what is there";
  Fixture fixture({{2, 1, 0, 3, 1, 1}, 1536, 328, {40, 64, 0, 70, 1, 121}}, GetParam());
  launch_grouped_gemm(fixture.args(), GetParam(), sm_count(), nullptr);
  ASSERT_CUDA(cudaDeviceSynchronize());
  const std::vector<std::uint16_t> before = fixture.output();
  const std::vector<std::int32_t> slack = fixture.shape().slack();
  for (std::size_t block = 0; block < slack.size(); ++block) {
    const std::int64_t first = static_cast<std::int64_t>(block + 1) * kBlockRows - slack[block];
    cudaMemset(fixture.a.get() + first * fixture.shape().k, 0xFF,  // NaN
               static_cast<std::size_t>(slack[block] * fixture.shape().k * 2));
  }
  fixture.d.fill_bytes(0xFF);
  launch_grouped_gemm(fixture.args(), GetParam(), sm_count(), nullptr);
  ASSERT_CUDA(cudaDeviceSynchronize());
  EXPECT_TRUE(fixture.spare_rows_untouched());
  const std::vector<std::uint16_t> after = fixture.output();
  EXPECT_EQ(after, before);
  for (std::size_t i = 0; i < slack.size() * kBlockRows * fixture.d_cols(); ++i) {
    const std::size_t row = i / fixture.d_cols();
    const auto at = static_cast<int>(row % kBlockRows);
    const int held = kBlockRows - slack[row / kBlockRows];
    if (at >= held && at < halves_of(held) * kConsumerRows) {
      ASSERT_EQ(after[i], 0) << "row of padding " << row;
    }
  }
}

TEST_P(GroupedGemm, ManyTilesPerWorker) {
  SKIP_WITHOUT_DEVICE();
  check({{3, 0, 4, 1}, 1536, 320}, 1);
  check({{3, 0, 4, 1}, 1536, 64}, 2);  // one stage per tile: the ring holds several tiles
}

TEST_P(GroupedGemm, BitwiseSameForAnyWorkersOrderAndRepeat) {
  SKIP_WITHOUT_DEVICE();
  Fixture fixture({{3, 1, 0, 4}, 1536, 1024}, GetParam());
  GroupedGemmArgs args = fixture.args();
  launch_grouped_gemm(args, GetParam(), 1, nullptr);
  ASSERT_CUDA(cudaDeviceSynchronize());
  const std::vector<std::uint16_t> want = fixture.output();
  for (int repeat = 0; repeat < 20; ++repeat) {
    args.block_group = 1 + repeat % 3;
    args.column_groups = 1 + repeat % 2;
    args.next_tile = repeat % 4 < 2 ? nullptr : fixture.next_tile.get();
    fixture.d.fill_bytes(0xFF);
    launch_grouped_gemm(args, GetParam(), 1 + (repeat * 37) % sm_count(), nullptr);
    ASSERT_CUDA(cudaDeviceSynchronize());
    ASSERT_EQ(want, fixture.output()) << "repeat " << repeat;
  }
}

TEST_P(GroupedGemm, GatheredRowsHaveTheSameBitsAsRowsInPlace) {
  SKIP_WITHOUT_DEVICE();
  if (!GetParam().gathers)
    GTEST_SKIP() << "gathers nothing";
  GemmVariant plain = GetParam();
  plain.gathers = false;
  Fixture fixture({{3, 1, 0, 4}, 1536, 1024, {128, 40, 0, 70}}, GetParam());
  launch_grouped_gemm(fixture.args(), GetParam(), sm_count(), nullptr);
  ASSERT_CUDA(cudaDeviceSynchronize());
  const std::vector<std::uint16_t> gathered = fixture.output();
  GroupedGemmDesc desc{fixture.capacity(),        fixture.shape().n,        fixture.shape().k,
                       fixture.shape().experts(), fixture.a.get(),          fixture.b.get(),
                       fixture.d.get(),           fixture.expert_rows.get()};
  desc.slack = fixture.slack.get();
  fixture.d.fill_bytes(0xFF);
  launch_grouped_gemm(make_grouped_gemm_args(desc, plain), plain, sm_count(), nullptr);
  ASSERT_CUDA(cudaDeviceSynchronize());
  expect_same_rows(gathered, fixture.output(), fixture);
}

TEST_P(GroupedGemm, ReplayedGraphFollowsTheRouting) {
  SKIP_WITHOUT_DEVICE();
  Fixture fixture({{4, 4, 4}, 768, 512}, GetParam());
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_CUDA(cudaStreamCreate(&stream));
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  launch_grouped_gemm(fixture.args(), GetParam(), sm_count(), stream);
  ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  const std::vector<std::vector<std::int32_t>> routings = {
      {0, 512, 1024, 1536}, {0, 0, 1536, 1536}, {0, 128, 1280, 1536}};
  for (const auto& routing : routings) {
    fixture.expert_rows.upload(routing);
    fixture.d.fill_bytes(0xFF);
    ASSERT_CUDA(cudaDeviceSynchronize());
    ASSERT_CUDA(cudaGraphLaunch(exec, stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_LE(fixture.relative_error(), kTolerance);
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

INSTANTIATE_TEST_SUITE_P(Variants, GroupedGemm, ::testing::ValuesIn(kGemmVariants), name_of);

}  // namespace
}  // namespace fusescope::kernels::testing
