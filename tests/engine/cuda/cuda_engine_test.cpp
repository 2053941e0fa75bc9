// The engine behind its interface: what it returns, what it refuses.
#include "engine/cuda/cuda_engine.hpp"

#include <chrono>

#include "base/error.hpp"
#include "engine/cuda/cuda_test_support.hpp"

namespace fusescope::engine::cuda::test {
namespace {

RunRequest quick_request(const Problem& problem) {
  RunRequest request;
  request.problem = &problem;
  request.warmup = 1;
  request.min_samples = 5;
  request.target_rel_ci = 1;
  request.max_seconds = 1;
  return request;
}

TEST(CudaEngine, ReturnsMeasuredSamples) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const auto engine = make_cuda_engine({.engine = "cuda", .profile = "", .devices = {0}});
  EXPECT_EQ(engine->name(), "cuda");
  EXPECT_EQ(engine->device().sms, devices.front().sms);
  const Problem problem = make_test_problem(make_shape(2, 65, 512, 8, 2, 128), "uniform", 2);
  const RunResult result = engine->run(quick_request(problem));
  EXPECT_EQ(result.provenance, timeline::Provenance::measured);
  EXPECT_NE(result.source.find("co-located"), std::string::npos) << result.source;
  ASSERT_GE(result.samples.size(), 5U);
  for (const Sample& sample : result.samples) {
    EXPECT_GT(sample.wall_us, 0);
    EXPECT_EQ(sample.rank_wall_us.size(), 2U);
    EXPECT_GT(sample.sm_clock_mhz, 100);
    EXPECT_LT(sample.sm_clock_mhz, 4000);
  }
}

// A rest is a lower bound, whatever else takes time: each iteration that rests adds one.
TEST(CudaEngine, RestsBeforeEachIteration) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const auto engine = make_cuda_engine({.engine = "cuda", .profile = "", .devices = {0}});
  const Problem problem = make_test_problem(make_shape(1, 257, 512, 8, 2, 128), "uniform", 2);
  RunRequest request = quick_request(problem);
  request.rest_ms = 20;
  request.max_seconds = 60;
  const auto iterations_rested = [&] {
    const auto begin = std::chrono::steady_clock::now();
    const RunResult result = engine->run(request);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(result.samples.size(), 5U);
    EXPECT_EQ(result.timeline.has_value(), request.timeline);
    return took.count() / request.rest_ms;
  };
  const double sampled = request.warmup + request.min_samples;
  EXPECT_GE(iterations_rested(), sampled);
  request.timeline = true;
  EXPECT_GE(iterations_rested(), sampled + 2 * kRecordedIterations);
  request.timeline = false;
  request.phases = true;
  EXPECT_GE(iterations_rested(), sampled + 2);
  request.phases = false;
  request.rung_rounds = 2;
  constexpr int kLeastPerTurn = 2;  // a warm-up and a sample
  EXPECT_GE(iterations_rested(),
            sampled + static_cast<double>(request.rung_rounds * kRungs.size() * kLeastPerTurn));
}

// What a rest takes away from max_seconds are samples.
TEST(CudaEngine, RestsCountIntoTheTimeOfSampling) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const auto engine = make_cuda_engine({.engine = "cuda", .profile = "", .devices = {0}});
  const Problem problem = make_test_problem(make_shape(1, 257, 512, 8, 2, 128), "uniform", 2);
  RunRequest request = quick_request(problem);
  request.rest_ms = 100;
  request.max_seconds = 0.25;
  const std::size_t samples = engine->run(request).samples.size();
  EXPECT_GE(samples, 1U);
  EXPECT_LE(samples, 3U);
}

TEST(CudaEngine, RunsEveryStudy) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const auto engine = make_cuda_engine({.engine = "cuda", .profile = "", .devices = {0}});
  const Problem problem = make_test_problem(make_shape(1, 257, 512, 8, 2, 128), "uniform", 2);
  for (const Study study : {Study::full, Study::compute_all, Study::compute_split,
                            Study::gates_open, Study::ideal_order}) {
    RunRequest request = quick_request(problem);
    request.config.study = study;
    EXPECT_GE(engine->run(request).samples.size(), 5U);
  }
}

TEST(CudaEngine, RefusesIllegalConfigs) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const auto engine = make_cuda_engine({.engine = "cuda", .profile = "", .devices = {}});
  const Problem problem = make_test_problem(make_shape(1, 65, 512, 8, 2, 128), "uniform", 2);
  RunRequest request = quick_request(problem);
  request.config.dispatch_comm_sms = devices.front().sms + 8;
  EXPECT_THROW(engine->run(request), InputError);
  request.config = Config{};
  request.config.watermark_chunks = 65;
  EXPECT_THROW(engine->run(request), InputError);
  // Legal as it is, but not as the full layer that checks the outputs.
  request.config = Config{};
  request.config.study = Study::compute_all;
  request.config.dispatch_comm_sms = devices.front().sms;
  EXPECT_THROW(engine->run(request), InputError);
}

TEST(CudaEngine, RefusesDevicesThatAreNotThere) {
  try {
    make_cuda_engine({.engine = "cuda", .profile = "", .devices = {917}});
    ADD_FAILURE() << "device 917 was accepted";
  } catch (const InputError& error) {
    EXPECT_NE(error.parts().problem.find("917"), std::string::npos) << error.what();
  }
}

TEST(CudaEngine, RefusesRepeatedDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  EXPECT_THROW(make_cuda_engine({.engine = "cuda", .profile = "", .devices = {0, 0}}), InputError);
}

TEST(DevicesOfRanks, LieInBlocks) {
  const std::vector<Device> two = {{0, "a", 132, 0, ""}, {1, "a", 132, 0, ""}};
  EXPECT_EQ(devices_of_ranks(two, 1), (std::vector<int>{0}));
  EXPECT_EQ(devices_of_ranks(two, 2), (std::vector<int>{0, 1}));
  EXPECT_EQ(devices_of_ranks(two, 4), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(devices_of_ranks({two.front()}, 3), (std::vector<int>{0, 0, 0}));
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
