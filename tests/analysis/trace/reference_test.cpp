// Real traces: the figures that Holistic Trace Analysis gives, to the microsecond; closing on each file.

#include <cmath>

#include "analysis/trace/attribution.hpp"
#include "timeline/import/traces.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Trace;
using timeline::test::real_trace;

struct Reference {
  const char* file;
  std::int64_t span, idle, compute, communication, overlap, exposed;  // us
  double overlap_percent;
};

class Hta : public testing::TestWithParam<Reference> {};

TEST_P(Hta, FiguresToTheMicrosecond) {
  const Reference& wanted = GetParam();
  const std::string path = real_trace(wanted.file);
  if (path.empty()) {
    GTEST_SKIP() << wanted.file << " is not here";
  }
  const Trace trace = timeline::read_trace(path);
  const TraceAttribution attribution = attribute_traces({&trace, 1}, load_rules("hta"));
  ASSERT_EQ(attribution.devices.size(), 1U);
  const DeviceAttribution& device = attribution.devices[0];
  EXPECT_EQ(device.span_ns(), wanted.span * 1000);
  EXPECT_EQ(device.idle.total_ns, wanted.idle * 1000);
  EXPECT_EQ(device.all(WorkClass::compute), wanted.compute * 1000);
  EXPECT_EQ(device.all(WorkClass::communication), wanted.communication * 1000);
  EXPECT_EQ(device.overlap_ns, wanted.overlap * 1000);
  EXPECT_EQ(device.exposed_ns(), wanted.exposed * 1000);
  EXPECT_EQ(std::round(device.overlap_share() * 10000) / 100, wanted.overlap_percent);
  EXPECT_EQ(check_closing(device), "");
}

INSTANTIATE_TEST_SUITE_P(Files, Hta,
                         testing::Values(Reference{"kineto-a100-training.json.gz", 383404, 62119,
                                                   234760, 132510, 62313, 70197, 47.03},
                                         Reference{"kineto-a100-nccl.json.gz", 435586, 338781,
                                                   75169, 24278, 3473, 20805, 14.31},
                                         Reference{"kineto-sampled-rank0.json.gz", 600058, 321378,
                                                   106252, 195327, 23068, 172259, 11.81}),
                         [](const auto& each) {
                           std::string name = each.param.file;
                           name = name.substr(0, name.find('.'));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(RealTraces, NsightSystemsToTheNanosecond) {
  const std::string path = real_trace("nsys-h100-2gpu.sqlite.gz");
  if (path.empty()) {
    GTEST_SKIP() << "nsys-h100-2gpu.sqlite.gz is not here";
  }
  const Trace trace = timeline::read_trace(path);
  for (const char* rules : {"default", "hta"}) {
    const TraceAttribution attribution = attribute_traces({&trace, 1}, load_rules(rules));
    ASSERT_EQ(attribution.devices.size(), 2U);
    EXPECT_EQ(attribution.devices[0].all(WorkClass::communication), 17172652);
    EXPECT_EQ(attribution.devices[0].all(WorkClass::compute), 253690832);
    EXPECT_EQ(attribution.devices[0].overlap_ns, 0);
    EXPECT_EQ(attribution.devices[1].all(WorkClass::communication), 8229100);
    EXPECT_EQ(attribution.devices[1].all(WorkClass::compute), 256095624);
    ASSERT_EQ(attribution.skew.size(), 1U);
    EXPECT_EQ(attribution.skew[0].launches, 33);
  }
}

TEST(RealTraces, EveryFileCloses) {
  for (const char* name :
       {"kineto-a100-training.json.gz", "kineto-a100-nccl.json.gz", "kineto-sampled-rank0.json.gz",
        "kineto-b200-overlapping-kernels.json.gz", "nsys-h100-2gpu.sqlite.gz"}) {
    const std::string path = real_trace(name);
    if (path.empty()) {
      GTEST_SKIP() << name << " is not here";
    }
    const Trace trace = timeline::read_trace(path);
    for (const char* rules : {"default", "hta"}) {
      for (const DeviceAttribution& device :
           attribute_traces({&trace, 1}, load_rules(rules)).devices) {
        EXPECT_EQ(check_closing(device), "") << name << " " << rules;
        EXPECT_GT(device.slices, 0) << name;
      }
    }
  }
}

TEST(RealTraces, ProgrammaticDependentLaunchesOverlapOnTheirStream) {
  const std::string path = real_trace("kineto-b200-overlapping-kernels.json.gz");
  if (path.empty()) {
    GTEST_SKIP() << "kineto-b200-overlapping-kernels.json.gz is not here";
  }
  const Trace trace = timeline::read_trace(path);
  const TraceAttribution attribution = attribute_traces({&trace, 1}, load_rules("default"));
  ASSERT_EQ(attribution.devices.size(), 1U);
  ASSERT_EQ(attribution.devices[0].streams.size(), 1U);
  EXPECT_EQ(attribution.devices[0].streams[0].overlapping, 74);
  EXPECT_EQ(attribution.devices[0].streams[0].slices, 929);
}

}  // namespace
}  // namespace fusescope::analysis
