// What a user gets wrong: each is one message that names the place and what would be accepted, exit code
// 2, and every file as it was.

#include "program.hpp"

namespace fusescope::cli {
namespace {

using Errors = test::ProgramTest;

TEST_F(Errors, CommandLines) {
  refused("", {"fusescope: no command is given; accepted: run, sweep, tune, merge"});
  refused("swep quickstart", {"unknown command \"swep\", did you mean \"sweep\"?"});
  refused("--verbos", {"unknown option \"--verbos\""});
  refused("sweep quickstart --trails 4",
          {"sweep: unknown option \"--trails\", did you mean \"--trials\"?"});
  refused("run --samples 0", {"run: --samples: Value 0 is too small"});
  refused("run --samples many", {"run: "});
  refused("sweep", {"sweep: sweep is required"});
  refused("attribute", {"attribute: timeline is required"});
  refused("list knob", {"there is no list of \"knob\", did you mean \"knobs\"?"});
  refused("report . extra", {"report: unexpected argument \"extra\""});
  refused("sweep .", {".: is a folder; accepted: the path of a sweep's JSON file"});
  refused("run --shape tiny.json --out tiny.json", {"--out: tiny.json: is not a folder"});
}

TEST_F(Errors, OutputThatIsLostIsNotSuccess) {
  if (!std::filesystem::exists("/dev/full")) {
    GTEST_SKIP() << "no /dev/full here";
  }
  const std::string line = std::string("'") + FUSESCOPE_BINARY + "' list knobs >/dev/full 2>'" +
                           (folder_ / "said").string() + "'";
  const int status = std::system(line.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_NE(test::read_text(folder_ / "said").find("the output could not be written in full"),
            std::string::npos);
}

TEST_F(Errors, NamesOfShapesRoutingsProfilesKnobs) {
  refused("run --shape seed-tp5",
          {"--shape: ", "\"seed-tp5\"", "did you mean \"seed-tp", "; accepted: "});
  refused("run --shape no/such.json", {"no/such.json: cannot be read: No such file"});
  refused("run --shape tiny.json --routing zpif:1", {"--routing: ", "zpif"});
  refused("run --shape tiny.json --routing file:absent.npy", {"absent.npy: "});
  refused("run --shape tiny.json --profile h200-nvlnk", {"h200-nvlnk", "h200-nvlink"});
  refused("run --shape tiny.json --engine gpu",
          {"--engine: \"gpu\" is not an engine; accepted: auto"});
  refused("run --shape tiny.json --set dispatch_com_sms=4",
          {"--set: unknown knob \"dispatch_com_sms\", did you mean \"dispatch_comm_sms\"?"});
  refused("run --shape tiny.json --set tokens_per_block=few",
          {"--set: tokens_per_block cannot be \"few\"; accepted: an integer"});
  refused("run --shape tiny.json --set tokens_per_block", {"--set: \"tokens_per_block\" is not"});
  refused("check --shape tiny.json --routing hot:9", {"--routing: "});
  refused("sweep quickstrat",
          {"quickstrat: there is no such sweep file, did you mean \"quickstart\"?"});
}

TEST_F(Errors, ImpossibleSplits) {
  refused("run --shape tiny.json --engine sim --set dispatch_comm_sms=140",
          {"--set: dispatch_comm_sms=140: dispatch_comm_sms 140 leaves no compute SM on a 110-SM "
           "device; accepted: "});
  // A knob that others make legal is not to blame for what is wrong elsewhere.
  refused(
      "run --shape seed-tp2 --engine sim --profile h200-nvlink --set dispatch=push "
      "schedule=fused link_gbps=50",
      {"--set: this config cannot run: dispatch push: link_gbps 50", "set link_gbps to 0"});
  test::write_text(folder_ / "knobs.json", R"({"combine_comm_sms": 500})");
  refused("run --shape tiny.json --engine sim --config knobs.json",
          {"knobs.json: ", "combine_comm_sms 500 leaves no compute SM"});
  test::write_text(folder_ / "base.json", R"({"name": "b", "shape": "tiny.json", "engine": "sim",
    "base": {"dispatch_comm_sms": 140}, "axes": {"tokens_per_block": [4, 8]}})");
  refused("sweep base.json --out s",
          {"base.json: /base/dispatch_comm_sms: dispatch_comm_sms 140 leaves no compute SM"});
  test::write_text(folder_ / "axes.json", R"({"name": "a", "shape": "tiny.json", "engine": "sim",
    "axes": {"dispatch_comm_sms": [140, 150]}})");
  refused("sweep axes.json --out s", {"axes.json: /axes: none of the 2 configs can run"});
}

TEST_F(Errors, SweepFiles) {
  const auto sweep = [&](const std::string& patch) {
    Json document = Json::parse(test::read_text(folder_ / "sweep.json"));
    document.merge_patch(Json::parse(patch));
    test::write_text(folder_ / "bad.json", document.dump());
  };
  sweep(R"({"axis": {}})");
  refused("sweep bad.json --out s",
          {"bad.json: /axis: unknown key \"axis\", did you mean \"axes\"?; accepted: name, why"});
  sweep(R"({"constraints": ["dispatch_comm_sms <= device.smss"]})");
  refused("sweep bad.json --out s",
          {"bad.json: /constraints/0 column 22: unknown name \"device.smss\", did you mean "
           "\"device.sms\"?"});
  sweep(R"({"constraints": ["dispatch_comm_sms > device.sms"]})");
  refused("sweep bad.json --out s", {"bad.json: /constraints: none of the 6 configs is left"});
  sweep(R"({"routing": "zip"})");
  refused("sweep bad.json --out s", {"bad.json: /routing: \"zip\""});
  sweep(R"({"shape": "tinny.json"})");
  refused("sweep bad.json --out s", {"bad.json: /shape: tinny.json: "});
  sweep(R"({"profile": "rtx"})");
  refused("sweep bad.json --out s", {"rtx", "; accepted: "});
  test::write_text(folder_ / "bad.json", "{\"name\": \"x\",\n \"axes\": }");
  refused("sweep bad.json --out s", {"bad.json: line 2 column"});
  refused("sweep absent.json --out s", {"absent.json: there is no such sweep file"});
  refused("sweep sweep.json --out s --resume", {"--resume: s: holds no trials.jsonl"});
}

TEST_F(Errors, ACorruptLogLineIsNamedAndLeft) {
  ASSERT_EQ(fusescope("sweep sweep.json --out s").code, 0);
  std::string log = test::read_text(folder_ / "s/trials.jsonl");
  const std::size_t third = log.find('\n', log.find('\n') + 1) + 1;
  log[third + 5] = '#';
  log[third] = '#';
  test::write_text(folder_ / "s/trials.jsonl", log);
  refused("sweep sweep.json --out s",
          {"s/trials.jsonl: line 3: is not a whole JSON object; accepted: "});
  refused("report s", {"s/trials.jsonl: line 3: "});
}

TEST_F(Errors, AnotherSweepsLogIsNamedAndLeft) {
  ASSERT_EQ(fusescope("sweep sweep.json --out s").code, 0);
  refused("sweep sweep.json --out s --profile h200-nvlink",
          {"s/trials.jsonl: line 1: is the log of another sweep: the device was "});
  Json document = Json::parse(test::read_text(folder_ / "sweep.json"));
  document["axes"]["tokens_per_block"] = {4};
  test::write_text(folder_ / "other.json", document.dump());
  refused("sweep other.json --out s", {"/axes/tokens_per_block was [4,8], is [4]"});
  refused("sweep sweep.json --out s --rest-ms 10", {"/measure/rest_ms was null, is 10"});
}

TEST_F(Errors, OutputsThatCannotBeWritten) {
  test::write_text(folder_ / "file", "mine");
  refused("run --shape tiny.json --engine sim --out file/r", {"--out: file/r: "});
  refused("run --shape tiny.json --engine sim --out file", {"--out: file: "});
  refused("run --shape tiny.json --engine sim --out /proc/nowhere", {"--out: /proc/nowhere: "});
  refused("sweep sweep.json --out file", {"--out: file: is not a folder"});
  refused("sweep sweep.json --out file/s", {"--out: file/s: "});
  ASSERT_EQ(fusescope("run --shape tiny.json --engine sim --out r").code, 0);
  refused("timeline r -o file/t.pftrace", {"file/t.pftrace: "});
  refused("timeline r -o no/t.pftrace", {"no/t.pftrace: "});
  refused("report r -o file", {"file: "});
}

TEST_F(Errors, FoldersWithOtherContentAreLeft) {
  std::filesystem::create_directory(folder_ / "full");
  test::write_text(folder_ / "full/notes.txt", "mine");
  refused("run --shape tiny.json --engine sim --out full", {"--out: full: holds other files"});
  refused("sweep sweep.json --out full", {"--out: full: holds other files and no trials.jsonl"});
  ASSERT_EQ(fusescope("run --shape tiny.json --engine sim --out r").code, 0);
  refused("run --shape tiny.json --engine sim --out r --set tokens_per_block=4",
          {"--out: r: holds another run: tiny (", "--force"});
  refused("timeline r -o full/notes.txt --format chrome", {"--out: full/notes.txt: exists"});
  EXPECT_EQ(
      fusescope("run --shape tiny.json --engine sim --out r --set tokens_per_block=4 --force").code,
      0);
}

TEST_F(Errors, InputsThatAreNotThere) {
  refused("attribute absent", {"absent: "});
  refused("attribute .", {".: the folder holds no timeline.fst"});
  refused("attribute tiny.json", {"tiny.json: "});
  refused("timeline absent -o t.pftrace", {"absent: "});
  refused("report absent", {"absent: is not a folder"});
  refused("report .", {".: the folder holds no trials.jsonl, no run.json and no series.json"});
  ASSERT_EQ(fusescope("run --shape tiny.json --engine sim --out r").code, 0);
  refused("timeline r --format pdf -o t", {"--format: unknown format \"pdf\"; accepted: perfetto"});
  refused("timeline r -o t.pdf", {"--out: t.pdf: its ending names no format"});
}

}  // namespace
}  // namespace fusescope::cli
