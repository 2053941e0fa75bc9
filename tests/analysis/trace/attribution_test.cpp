// The partition of a device's time on traces made by hand, and against a slow method on random ones.

#include "analysis/trace/attribution.hpp"

#include <algorithm>
#include <random>

#include "timeline/import/traces.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Trace;
using timeline::test::read_text;
using timeline::test::slice;
using timeline::test::trace_of;

DeviceAttribution attribute_one(const Trace& trace, const Rules& rules = load_rules("default")) {
  const TraceAttribution attribution = attribute_traces({&trace, 1}, rules);
  EXPECT_EQ(attribution.devices.size(), 1U);
  EXPECT_EQ(check_closing(attribution.devices.at(0)), "");
  return attribution.devices.at(0);
}

// us:      0    10    20    30    40    50    60    70
// compute  |-----------|                       |-----|   0..20, 60..70
// nccl           |-----------|                           10..30
// copy                    |-----|                        25..35
TEST(TraceAttribution, PartsOfASpan) {
  const Trace trace =
      read_text(trace_of(slice("kernel", "gemm", "0", "20", 7, 1),
                         slice("kernel", "ncclDevKernel_X", "10", "20", 8, 2),
                         slice("gpu_memcpy", "Memcpy DtoH", "25", "10", 9, 3),
                         slice("kernel", "gemm", "60", "10", 7, 4),
                         slice("cuda_runtime", "cudaLaunchKernel", "40", "5", 1, 4)));
  const DeviceAttribution device = attribute_one(trace);
  EXPECT_EQ(device.span_ns(), 70000);
  EXPECT_EQ(device.part(WorkClass::compute), 30000);
  EXPECT_EQ(device.exposed_ns(), 10000);
  EXPECT_EQ(device.part(WorkClass::memory), 5000);
  EXPECT_EQ(device.overlap_ns, 10000);
  EXPECT_DOUBLE_EQ(device.overlap_share(), 0.5);
  EXPECT_EQ(device.idle.total_ns, 25000);
  EXPECT_EQ(device.idle.launch_ns, 10000);      // 35 to 45: the call had not returned
  EXPECT_EQ(device.idle.dependency_ns, 15000);  // 45 to 60
  ASSERT_EQ(device.communication.size(), 1U);
  EXPECT_EQ(device.communication[0].exposed_ns, 10000);
  ASSERT_EQ(device.communication[0].beside.size(), 1U);
  EXPECT_EQ(device.communication[0].beside[0].name, "gemm");
  EXPECT_EQ(device.communication[0].beside[0].ns, 10000);
}

TEST(TraceAttribution, FusedAndUnclearKernelsAreNeitherComputeNorCommunication) {
  const Trace trace = read_text(trace_of(slice("kernel", "dispatch_gemm<C>(Args)", "0", "20", 7),
                                         slice("kernel", "my_all_to_all", "30", "20", 7),
                                         slice("kernel", "gemm", "40", "20", 8)));
  const DeviceAttribution device = attribute_one(trace);
  EXPECT_EQ(device.part(WorkClass::fused), 20000);
  EXPECT_EQ(device.part(WorkClass::unclear), 10000);
  EXPECT_EQ(device.part(WorkClass::compute), 20000);
  EXPECT_EQ(device.exposed_ns(), 0);
  ASSERT_EQ(device.unclear.size(), 1U);
  EXPECT_EQ(device.unclear[0].name, "my_all_to_all");
  ASSERT_EQ(device.fused.size(), 1U);
  EXPECT_EQ(device.fused[0].total_ns, 20000);
}

TEST(TraceAttribution, RangesAndStepsTakeWhatTheirThreadLaunched) {
  const Trace trace = read_text(trace_of(
      slice("user_annotation", "ProfilerStep#1", "0", "100", 1),
      slice("user_annotation", "forward", "0", "50", 1),
      slice("user_annotation", "inner", "5", "10", 1),
      slice("cuda_runtime", "launch", "8", "1", 1, 1),
      slice("cuda_runtime", "launch", "20", "1", 1, 2),
      slice("cuda_runtime", "launch", "30", "1", 2, 3),  // another thread
      slice("kernel", "ncclX", "200", "10", 7, 1), slice("kernel", "gemm", "205", "10", 8, 2),
      slice("kernel", "gemm", "300", "10", 8, 3)));
  const DeviceAttribution device = attribute_one(trace);
  ASSERT_EQ(device.ranges.size(), 2U);
  const auto forward = std::find_if(device.ranges.begin(), device.ranges.end(),
                                    [](const RangeRow& row) { return row.name == "forward"; });
  ASSERT_NE(forward, device.ranges.end());
  EXPECT_EQ(forward->slices, 2);
  EXPECT_EQ(forward->communication_ns, 10000);
  EXPECT_EQ(forward->exposed_ns, 5000);
  EXPECT_EQ(forward->compute_ns, 10000);
  ASSERT_EQ(device.steps.size(), 1U);
  EXPECT_EQ(device.steps[0].slices, 3);
  EXPECT_EQ(device.steps[0].compute_ns, 20000);
}

TEST(TraceAttribution, SkewOfMatchedCollectives) {
  const auto rank = [](const char* first, const char* first_dur, const char* second) {
    return read_text(trace_of(slice("kernel", "ncclX", first, first_dur, 7),
                              slice("kernel", "ncclX", second, "10", 7)));
  };
  const std::vector<Trace> traces = [&] {
    std::vector<Trace> list;
    list.push_back(rank("0", "30", "100"));  // waits 20 for the other, then 10
    list.push_back(rank("20", "10", "100"));
    return list;
  }();
  const TraceAttribution attribution = attribute_traces(traces, load_rules("default"));
  ASSERT_EQ(attribution.skew.size(), 1U);
  const SkewRow& row = attribution.skew[0];
  EXPECT_EQ(row.launches, 2);
  EXPECT_EQ(row.total_skew_ns, 20000);
  EXPECT_EQ(row.most_skew_ns, 20000);
  EXPECT_EQ(row.wait_ns, (std::vector<std::int64_t>{20000, 0}));
  EXPECT_EQ(row.transfer_ns, (std::vector<std::int64_t>{20000, 20000}));
  EXPECT_EQ(row.apart, 0);
}

TEST(TraceAttribution, HtaDropsTheLastStepAndWhatItLaunched) {
  const Trace trace = read_text(trace_of(
      slice("user_annotation", "ProfilerStep#1", "0", "100", 1),
      slice("user_annotation", "ProfilerStep#2", "100", "100", 1),
      slice("cuda_runtime", "launch", "50", "1", 1, 1),
      slice("cuda_runtime", "launch", "150", "1", 1, 2),
      slice("kernel", "gemm", "60.3", "10.4", 7, 1), slice("kernel", "gemm", "160", "10", 7, 2)));
  const DeviceAttribution device = attribute_one(trace, load_rules("hta"));
  EXPECT_EQ(device.slices, 1);
  EXPECT_EQ(device.begin_ns, 61000);
  EXPECT_EQ(device.end_ns, 70000);
  EXPECT_EQ(attribute_one(trace).slices, 2);
}

// Every microsecond of the span by itself.
TEST(TraceAttribution, RandomTracesAgainstASlowMethod) {
  std::mt19937 random(7);
  const auto draw = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  for (int round = 0; round < 200; ++round) {
    std::string list;
    const int slices = 1 + draw(40);
    int first = 1000;
    int last = 0;
    std::vector<std::array<bool, 3>> runs(1000);
    for (int i = 0; i < slices; ++i) {
      const int begin = draw(300);
      const int length = draw(30);
      const int kind = draw(3);
      const char* names[] = {"gemm", "ncclX", "Memcpy DtoD"};
      list += (i == 0 ? "" : ",") + slice(kind == 2 ? "gpu_memcpy" : "kernel", names[kind],
                                          std::to_string(begin), std::to_string(length), draw(3));
      first = std::min(first, begin);
      last = std::max(last, begin + length);
      for (int t = begin; t < begin + length; ++t) {
        runs[static_cast<std::size_t>(t)][static_cast<std::size_t>(kind)] = true;
      }
    }
    std::int64_t compute = 0;
    std::int64_t exposed = 0;
    std::int64_t memory = 0;
    std::int64_t overlap = 0;
    for (const auto& [computes, communicates, copies] : runs) {
      compute += computes ? 1000 : 0;
      exposed += communicates && !computes ? 1000 : 0;
      memory += copies && !computes && !communicates ? 1000 : 0;
      overlap += communicates && computes ? 1000 : 0;
    }
    const DeviceAttribution device = attribute_one(read_text("{\"traceEvents\":[" + list + "]}"));
    EXPECT_EQ(device.span_ns(), (last - first) * 1000);
    EXPECT_EQ(device.part(WorkClass::compute), compute);
    EXPECT_EQ(device.exposed_ns(), exposed);
    EXPECT_EQ(device.part(WorkClass::memory), memory);
    EXPECT_EQ(device.overlap_ns, overlap);
  }
}

TEST(TraceAttribution, JsonHoldsWhatWasAsked) {
  const Trace trace = read_text(trace_of(slice("kernel", "ncclX", "0", "20", 7)));
  const TraceAttribution attribution = attribute_traces({&trace, 1}, load_rules("default"));
  const std::string json = to_json(attribution, {&trace, 1}, 10);
  EXPECT_NE(json.find("\"exposed_communication_ns\": 20000"), std::string::npos) << json;
  EXPECT_NE(json.find("\"rules\": \"default\""), std::string::npos);
}

}  // namespace
}  // namespace fusescope::analysis
