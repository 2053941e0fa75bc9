// The H200 profile against what two H200s measured: each role alone, table by table. The errors are
// printed; the median of each table is held to 15%.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "engine/sim/role_bench.hpp"
#include "sim_run.hpp"

namespace fusescope::engine::sim {
namespace {

// The tables of the communication role were timed around a launch. Both of them run straight through
// this intercept when their time is drawn over the rounds that a block makes.
constexpr double kLaunchAndTiming = 15;  // [us]

class Comparison {
 public:
  void row(const std::string& what, double measured, double simulated) {
    const double error = simulated / measured - 1;
    std::printf("%-34s measured %8.1f simulated %8.1f  %+5.1f%%\n", what.c_str(), measured,
                simulated, 100 * error);
    errors_.push_back(std::abs(error));
  }
  double median() {
    std::sort(errors_.begin(), errors_.end());
    std::printf("median error %.1f%%, worst %.1f%%\n", 100 * errors_[errors_.size() / 2],
                100 * errors_.back());
    return errors_[errors_.size() / 2];
  }
  double worst() const { return *std::max_element(errors_.begin(), errors_.end()); }

 private:
  std::vector<double> errors_;
};

// 2048 tokens of 8 KiB, half of them remote, K=8.
Problem seed_pair() {
  return problem_of("seed-tp2", "balanced");
}

class H200Facts : public testing::Test {
 protected:
  const Profile profile_ = load_profile("h200-nvlink");
  Comparison comparison_;
};

TEST_F(H200Facts, DispatchAlone) {
  const Problem problem = seed_pair();
  const int lanes[] = {8, 12, 16, 24};
  const struct {
    int sms;
    double us[4];
  } kMeasured[] = {{4, {1011, 870, 837, 790}}, {8, {513, 451, 425, 401}},
                   {16, {272, 237, 219, 218}}, {24, {191, 171, 163, 156}},
                   {32, {144, 136, 117, 119}}, {132, {58, 69, 62, 69}}};
  for (const auto& row : kMeasured) {
    for (int column = 0; column < 4; ++column) {
      comparison_.row(
          std::to_string(row.sms) + " SMs x " + std::to_string(lanes[column]) + " [us]",
          row.us[column],
          kLaunchAndTiming + dispatch_alone_us(problem, profile_, row.sms, lanes[column]));
    }
  }
  EXPECT_LT(comparison_.median(), 0.15);
  EXPECT_LT(comparison_.worst(), 0.40);
}

TEST_F(H200Facts, PullAlone) {
  const Problem problem = seed_pair();
  const struct {
    int sms;
    double gbps;
  } kMeasured[] = {{8, 124}, {16, 228}, {24, 250}, {48, 294}};
  for (const auto& row : kMeasured) {
    comparison_.row(std::to_string(row.sms) + " SMs x 12 [GB/s]", row.gbps,
                    pull_alone_gbps(problem, profile_, row.sms, 12));
  }
  EXPECT_LT(comparison_.median(), 0.15);
}

TEST_F(H200Facts, JobsAlone) {
  const Problem problem = seed_pair();
  const struct {
    int sms;
    double us;
  } kMeasured[] = {{16, 334}, {32, 176}, {64, 98}, {132, 60}};
  for (const auto& row : kMeasured) {
    comparison_.row(std::to_string(row.sms) + " SMs [us]", row.us,
                    kLaunchAndTiming + jobs_alone_us(problem, profile_, row.sms));
  }
  EXPECT_LT(comparison_.median(), 0.15);
}

// Kernel-only times of the grouped GEMMs in round robin: reports/h200-gemm, run 5, beside DeepGEMM (another draw of
// the uniform routing). At 128 rows gemm_bench's, rested; gate+up's with the same kernels, in another process.
TEST_F(H200Facts, Gemms) {
  const Shape shape = load_shape("seed-tp2");
  const struct {
    TileShape tile;
    const char* name;
    double balanced[2];
    double uniform[2];
  } kMeasured[] = {{TileShape::m128n256, "128x256", {293, 169}, {373, 202}},
                   {TileShape::m160n256, "160x256", {296, 169}, {334, 177}},
                   {TileShape::m288n128, "288x128", {303, 173}, {315, 178}}};
  for (const auto& row : kMeasured) {
    const std::string tile = std::string(row.name) + " [us]";
    const GemmTimes balanced = gemms_alone_us(problem_of(shape, "balanced"), profile_, row.tile);
    comparison_.row("gate+up, balanced, " + tile, row.balanced[0], balanced.gemm_1_us);
    comparison_.row("down, balanced, " + tile, row.balanced[1], balanced.gemm_2_us);
    const GemmTimes uniform = gemms_alone_us(problem_of(shape, "uniform"), profile_, row.tile);
    comparison_.row("gate+up, uniform, " + tile, row.uniform[0], uniform.gemm_1_us);
    comparison_.row("down, uniform, " + tile, row.uniform[1], uniform.gemm_2_us);
  }

  Shape half = shape;
  half.tokens_per_rank /= 2;
  const Problem few_rows = problem_of(half, "balanced");
  const GemmTimes wide = gemms_alone_us(few_rows, profile_, TileShape::m160n256);
  comparison_.row("gate+up, 128 rows, 160x256 [us]", 227, wide.gemm_1_us);
  comparison_.row("down, 128 rows, 160x256 [us]", 126.7, wide.gemm_2_us);
  comparison_.row("down, 128 rows, 288x128 [us]", 130.2,
                  gemms_alone_us(few_rows, profile_, TileShape::m288n128).gemm_2_us);

  // Measured with older kernels, and not since.
  Shape dense = load_shape("seed-tp2");
  dense.experts = 8;
  dense.intermediate = 7168 / 2;
  const GemmTimes large =
      gemms_alone_us(problem_of(dense, "balanced"), profile_, TileShape::m128n256);
  comparison_.row("8 x 2048 rows, 7168 x 4096 [us]", 1213, large.gemm_1_us);
  EXPECT_LT(comparison_.median(), 0.15);
  EXPECT_LT(comparison_.worst(), 0.30);
}

// Rows gathered against rows scattered, one rank, the whole layer and compute only:
// reports/h200-x2-seed-tp2/tried/gather-look-ahead.json, found behind the last stage. What is within 1.1% is level.
TEST_F(H200Facts, GatherAgainstScatter) {
  constexpr int kTokens[] = {128, 256, 512, 1024, 2048, 4096};
  // 128x256 at 128 tokens has the wrong sign: the model reads whole row blocks for few rows, the kernel half of them.
  const struct {
    TileShape tile;
    Study study;
    const char* name;
    int signs_from;
    double measured[6];  // [% of scatter]
  } kMeasured[] = {
      {TileShape::m160n256, Study::full, "160x256", 128, {98.4, 96.9, 95.3, 94.2, 106.1, 119.3}},
      {TileShape::m160n256,
       Study::compute_all,
       "160x256, compute only",
       128,
       {99.5, 99.0, 97.8, 97.7, 114.7, 127.6}},
      {TileShape::m128n256, Study::full, "128x256", 256, {100.5, 97.3, 96.1, 99.0, 104.4, 110.5}},
      {TileShape::m128n256,
       Study::compute_all,
       "128x256, compute only",
       256,
       {102.4, 99.7, 98.8, 105.7, 110.4, 119.4}}};
  for (const auto& row : kMeasured) {
    for (std::size_t i = 0; i < std::size(kTokens); ++i) {
      Shape shape = load_shape("seed-tp2");
      shape.ranks = 1;
      shape.tokens_per_rank = kTokens[i];
      const Problem problem = problem_of(shape, "uniform@1");
      Config config;
      config.dispatch_comm_sms = config.combine_comm_sms = 0;
      config.tokens_per_block = 8;
      config.activation = Activation::fused;
      config.tile = row.tile;
      config.tile_counter = TileCounter::both;
      config.schedule = ScheduleSite::fused;
      config.launch = LaunchOrder::programmatic;
      config.study = row.study;
      const double scattered = wall_us(problem, config, profile_);
      config.dispatch = Dispatch::gather;
      const double simulated = 100 * wall_us(problem, config, profile_) / scattered;
      const std::string what = std::string(row.name) + ", T = " + std::to_string(kTokens[i]);
      comparison_.row(what, row.measured[i], simulated);
      if (kTokens[i] >= row.signs_from && std::abs(row.measured[i] - 100) > 1.1) {
        EXPECT_EQ(simulated > 100, row.measured[i] > 100) << what;
      }
    }
  }
  EXPECT_LT(comparison_.median(), 0.05);
  EXPECT_LT(comparison_.worst(), 0.15);
}

}  // namespace
}  // namespace fusescope::engine::sim
