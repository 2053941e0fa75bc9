// The reader of PyTorch profiler traces: what it takes, and what it says it lost.

#include <zlib.h>

#include <cstdint>

#include "base/error.hpp"
#include "traces.hpp"

namespace fusescope::timeline::test {
namespace {

std::string gzipped(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Kineto, TakesKernelsCallsAndRanges) {
  const Trace trace = read_text(
      "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA H200\"}],"
      "\"distributedInfo\":{\"rank\":3,\"world_size\":8},\"traceEvents\":[\n" +
      slice("kernel", "gemm", "100.5", "20.25", 7, 1) + "," +
      slice("cuda_runtime", "cudaLaunchKernel", "90", "5.125", 11, 1) + "," +
      slice("user_annotation", "step", "80", "50", 11) + "," +
      slice("gpu_user_annotation", "step", "80", "50", 7) +
      ",{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":10,\"tid\":11,\"args\":{\"name\":\"main\"}}]"
      ","
      "\"traceName\":\"a.json\"}");
  EXPECT_EQ(trace.source, "PyTorch profiler");
  EXPECT_EQ(trace.device_name, "NVIDIA H200");
  EXPECT_EQ(trace.name, "a.json");
  EXPECT_EQ(trace.rank, 3);
  EXPECT_EQ(trace.world_size, 8);
  ASSERT_EQ(trace.gpu.size(), 1U);
  EXPECT_EQ(trace.gpu[0].begin_ns, 100500);
  EXPECT_EQ(trace.gpu[0].end_ns, 120750);
  EXPECT_EQ(trace.gpu[0].correlation, 1);
  EXPECT_EQ(trace.names[trace.gpu[0].name], "gemm");
  ASSERT_EQ(trace.queues.size(), 1U);
  EXPECT_EQ(trace.queues[0], (Queue{0, 0, 7}));
  ASSERT_EQ(trace.host.size(), 2U);
  EXPECT_EQ(trace.host[0].kind, HostKind::range);
  EXPECT_EQ(trace.host[1].kind, HostKind::call);
  EXPECT_EQ(trace.threads[trace.host[1].thread].name, "main");
  EXPECT_TRUE(trace.notes.empty()) << trace.notes.front();
}

TEST(Kineto, KeysInAnyOrderAndEscapesInNames) {
  const Trace trace = read_text(
      R"({"traceEvents":[{"args":{"stream":7,"x":{"y":[1,{"}":"]"}]}},"dur":1,"ts":2,"tid":9,"pid":0,)"
      R"("name":"a \"b\" \\ {é\n","cat":"kernel","ph":"X"}]})");
  ASSERT_EQ(trace.gpu.size(), 1U);
  EXPECT_EQ(trace.names[trace.gpu[0].name], "a \"b\" \\ {\xc3\xa9\n");
  EXPECT_EQ(trace.queues[0].stream, 7);
}

TEST(Kineto, OutOfOrderNegativeZeroAndMissingDurations) {
  const Trace trace = read_text(trace_of(
      slice("kernel", "late", "30", "1", 7), slice("kernel", "early", "10", "0", 7),
      slice("kernel", "negative", "20", "-5", 7), slice("kernel", "endless", "25", "", 7)));
  ASSERT_EQ(trace.gpu.size(), 4U);
  EXPECT_EQ(trace.names[trace.gpu[0].name], "early");
  EXPECT_EQ(trace.names[trace.gpu[3].name], "late");
  for (const GpuSlice& each : trace.gpu) {
    EXPECT_LE(each.begin_ns, each.end_ns);
  }
  EXPECT_TRUE(has_note(trace, "1 event with a negative duration"));
  EXPECT_TRUE(has_note(trace, "1 event without a duration"));
}

TEST(Kineto, BareArraysAndOldCategories) {
  const Trace trace =
      read_text("[" + slice("Kernel", "a", "1", "2", 7) + "," + slice("Memcpy", "b", "3", "4", 7) +
                "," + slice("hip_runtime", "hipLaunchKernel", "0", "1", 1) + "]");
  ASSERT_EQ(trace.gpu.size(), 2U);
  EXPECT_EQ(trace.gpu[1].kind, GpuKind::memcpy);
  EXPECT_EQ(trace.host.at(0).kind, HostKind::call);
}

TEST(Kineto, TruncatedFilesGiveEveryWholeEvent) {
  const std::string first = slice("kernel", "first", "1", "2", 7);
  const std::string whole = trace_of(first, slice("kernel", "second", "5", "2", 7));
  const std::size_t after_first = whole.find(first) + first.size();
  for (std::size_t size = after_first; size < whole.size() - 2; ++size) {
    const Trace trace = read_text(whole.substr(0, size));
    ASSERT_EQ(trace.gpu.size(), 1U) << size;
    EXPECT_TRUE(has_note(trace, "ends at byte " + std::to_string(size))) << size;
  }
  for (std::size_t size = 0; size < after_first; ++size) {
    EXPECT_THROW(read_text(whole.substr(0, size)), InputError) << size;
  }
}

TEST(Kineto, TruncatedAndDamagedGzip) {
  std::string many;
  for (int i = 0; i < 5000; ++i) {
    many += (i == 0 ? "" : ",") +
            slice("kernel", "k" + std::to_string(i * 7919 % 5000), std::to_string(i * 10), "5", 7);
  }
  const std::string packed = gzipped("{\"traceEvents\":[" + many + "]}");
  EXPECT_EQ(read_text(packed).gpu.size(), 5000U);
  const Trace half = read_text(packed.substr(0, packed.size() / 2));
  EXPECT_GT(half.gpu.size(), 1000U);
  EXPECT_LT(half.gpu.size(), 5000U);
  EXPECT_TRUE(has_note(half, "gzip data is truncated at byte"));
}

TEST(Kineto, AMalformedEventCostsOnlyItself) {
  const Trace trace =
      read_text(trace_of(slice("kernel", "a", "1", "2", 7), "{\"ph\":\"X\",,}",
                         slice("kernel", "b", "x", "2", 7), slice("kernel", "c", "9", "2", 7)));
  ASSERT_EQ(trace.gpu.size(), 2U);
  EXPECT_TRUE(has_note(trace, "1 event could not be read as JSON"));
  EXPECT_TRUE(has_note(trace, "1 event without a usable time"));
}

// Events across the window's edge, and one longer than the window.
TEST(Kineto, EventsAtTheEdgesOfTheWindow) {
  const std::string long_name(3 << 20, 'n');
  std::string list;
  std::size_t count = 0;
  while (list.size() < (5U << 20)) {
    list +=
        slice("kernel", "k\\\\" + std::string(count % 97, 'x'), std::to_string(count * 3), "2", 7) +
        ",";
    ++count;
  }
  const Trace trace =
      read_text("{\"traceEvents\":[" + list + slice("kernel", long_name, "1", "1", 7) + "]}");
  EXPECT_EQ(trace.gpu.size(), count + 1);
  EXPECT_TRUE(trace.notes.empty());
}

TEST(Kineto, WhatIsNoTraceIsRefusedWithTheFile) {
  for (const std::string text :
       {"{}", "{\"traceEvents\":[]}", "{\"traceEvents\":5}", "[]", "{\"events\":[{}]}", "no JSON",
        "", "{\"traceEvents\":[{\"ph\":\"M\"}]}"}) {
    try {
      read_text(text);
      FAIL() << text;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("test.json"), std::string::npos) << error.what();
    }
  }
}

TEST(Kineto, RealTracesAreReadWithoutLoss) {
  const std::pair<const char*, std::size_t> files[] = {
      {"kineto-a100-training.json.gz", 9450},
      {"kineto-a100-nccl.json.gz", 3774},
      {"kineto-sampled-rank0.json.gz", 1204},
      {"kineto-b200-overlapping-kernels.json.gz", 929}};
  for (const auto& [name, slices] : files) {
    const std::string path = real_trace(name);
    if (path.empty()) {
      GTEST_SKIP() << name << " is not here";
    }
    const Trace trace = read_trace(path);
    EXPECT_EQ(trace.gpu.size(), slices) << name;
    EXPECT_TRUE(trace.notes.empty()) << trace.notes.front();
  }
}

}  // namespace
}  // namespace fusescope::timeline::test
