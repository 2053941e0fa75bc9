// fusescope attribute and timeline on traces of other tools.

#include "program.hpp"

namespace fusescope::cli::test {
namespace {

constexpr const char* kTrace =
    R"({"distributedInfo":{"rank":2,"world_size":4},"traceEvents":[
{"ph":"X","cat":"kernel","name":"ncclDevKernel_X","pid":0,"tid":7,"ts":0,"dur":20,"args":{"device":0,"stream":7}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":8,"ts":10,"dur":30,"args":{"device":0,"stream":8}}]})";

class CliTrace : public ProgramTest {
 protected:
  CliTrace() { write_text(folder_ / "a.json", kTrace); }
};

TEST_F(CliTrace, AttributesInTextAndJson) {
  const Said text = fusescope("attribute a.json");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("rank 2"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("Exposed communication is 10.000"), std::string::npos) << text.out;
  const Said json = fusescope("attribute a.json --json --rules hta");
  ASSERT_EQ(json.code, 0) << json.err;
  const Json device = json.json().at("devices").at(0);
  EXPECT_EQ(device.at("exposed_communication_ns"), 10000);
  EXPECT_EQ(device.at("compute_ns"), 30000);
  EXPECT_EQ(device.at("span_ns"), 40000);
}

TEST_F(CliTrace, WritesAReportAndConverts) {
  EXPECT_EQ(fusescope("attribute a.json --report out").code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/report.html"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/report.md"));
  EXPECT_EQ(fusescope("timeline a.json -o b.json").code, 0);
  EXPECT_EQ(fusescope("timeline a.json -o b.pftrace").code, 0);
  EXPECT_EQ(fusescope("attribute b.json --json").json().at("devices"), [&] {
    Json devices = fusescope("attribute a.json --json").json().at("devices");
    devices.at(0).at("file") = "b.json";
    return devices;
  }());
}

TEST_F(CliTrace, MistakesSayWhatWouldBeAccepted) {
  write_text(folder_ / "cut.json", std::string(kTrace).substr(0, 90));
  const std::pair<const char*, const char*> lines[] = {
      {"attribute cut.json", "cut.json"},
      {"attribute a.json a.json", "given twice"},
      {"attribute a.json --rules nofile", "nofile"},
      {"attribute nofile.json", "nofile.json"},
      {"attribute a.json tiny.json", "tiny.json"},
      {"timeline a.json --format fst -o x", "perfetto or chrome"}};
  for (const auto& [line, part] : lines) {
    const Said said = fusescope(line);
    EXPECT_EQ(said.code, 2) << line;
    EXPECT_NE(said.err.find(part), std::string::npos) << line << ": " << said.err;
  }
}

}  // namespace
}  // namespace fusescope::cli::test
