#include "sweep/trial_log.hpp"

#include <gtest/gtest.h>

#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

using test::input_error;
using test::read_text;
using test::small_header;
using test::TemporaryFolder;
using test::write_text;

Trial some_trial(int id) {
  Trial trial;
  trial.id = id;
  trial.config.dispatch_comm_sms = 4 + id;
  trial.config.inject = {InjectPoint::token, 500, -1, 7};
  trial.config.link_gbps = 12.5;
  trial.source = "made up by a test";
  trial.wall_us = {1000.25, 0.1 + 0.2, 1e-300 + id};
  trial.median_us = 1000.0 / 3;
  trial.steps_us = {{"gemm 1", 10.5}, {"launch gap", 0}};
  trial.timeline_wall_us = 10.5;
  trial.exposed_us = 3;
  trial.seconds = 0.01;
  return trial;
}

TEST(TrialLine, RoundTripsExactly) {
  Trial trial = some_trial(3);
  EXPECT_EQ(trial_from_line(to_line(trial), "f", "line 2"), trial);
  trial.label = "+ pull \"order\"";
  trial.verdict = Verdict::crashed;
  trial.reason = "line\nbreak, \xc3\xa9 and a backslash \\";
  EXPECT_EQ(trial_from_line(to_line(trial), "f", "line 2"), trial);
  EXPECT_EQ(to_line(trial).find('\n'), std::string::npos);
}

TEST(TrialLine, SurvivesAReasonThatIsNoUtf8) {
  Trial trial = some_trial(3);
  trial.verdict = Verdict::aborted;
  trial.reason = "bad \xff byte";
  EXPECT_NE(trial_from_line(to_line(trial), "f", "line 2").reason.find("bad "), std::string::npos);
}

TEST(TrialLog, KeepsTrialsAcrossOpenings) {
  const TemporaryFolder folder;
  const std::string path = folder.file("trials.jsonl");
  {
    TrialLog log(path, small_header());
    EXPECT_FALSE(log.resumed());
    log.append(some_trial(0));
    log.append(some_trial(1));
  }
  {
    TrialLog log(path, small_header());
    EXPECT_TRUE(log.resumed());
    EXPECT_EQ(log.repair(), "");
    EXPECT_EQ(log.trials(), (std::vector<Trial>{some_trial(0), some_trial(1)}));
    log.append(some_trial(2));
  }
  const LogContents contents = read_trial_log(path);
  EXPECT_EQ(contents.trials.size(), 3u);
  EXPECT_EQ(contents.header.device, "fake device");
  EXPECT_EQ(contents.header.identity, identity(test::small_sweep()).dump());
}

TEST(TrialLog, RefusesTheLogOfAnotherSweepAndSaysWhatDiffers) {
  const TemporaryFolder folder;
  const std::string path = folder.file("trials.jsonl");
  { TrialLog(path, small_header()).append(some_trial(0)); }
  const std::string before = read_text(path);
  const auto refusal = [&](auto change) {
    LogHeader header = small_header();
    change(header);
    const std::string message = input_error([&] { TrialLog(path, header); });
    EXPECT_TRUE(message.starts_with(path + ": line 1: is the log of another sweep: ")) << message;
    EXPECT_EQ(read_text(path), before);
    return message;
  };
  EXPECT_NE(refusal([](LogHeader& header) {
              header.device = "other";
            }).find("the device was fake device, is other"),
            std::string::npos);
  EXPECT_NE(
      refusal([](LogHeader& header) { header.engine = "sim"; }).find("the engine was fake, is sim"),
      std::string::npos);
  EXPECT_NE(refusal([](LogHeader& header) {
              header.fusescope = "1 (new)";
            }).find("the program was 0 (test), is 1 (new)"),
            std::string::npos);
  EXPECT_NE(refusal([](LogHeader& header) {
              header.problem = "large problem";
              header.problem_hash = "1234";
            }).find("the problem was small problem, is large problem"),
            std::string::npos);
  EXPECT_NE(refusal([](LogHeader& header) {
              header.problem_hash = "1234";
            }).find("the routing of small problem has other values"),
            std::string::npos);
  EXPECT_NE(refusal([](LogHeader& header) {
              Json identity = Json::parse(header.identity);
              identity["axes"]["tokens_per_block"] = {4, 8};
              header.identity = identity.dump();
            }).find("/axes/tokens_per_block was [4,8,12], is [4,8]"),
            std::string::npos);
  EXPECT_NE(refusal([](LogHeader& header) {
              Json identity = Json::parse(header.identity);
              identity["axes"].erase("all_hands");
              header.identity = identity.dump();
            }).find("/axes/all_hands was [true,false], is null"),
            std::string::npos);
}

TEST(TrialLog, RefusesALogOfAnotherRest) {
  const TemporaryFolder folder;
  const auto header_of = [](int rest_ms) {
    Json document = test::small_sweep_document();
    document["measure"]["rest_ms"] = rest_ms;
    return small_header(parse_sweep_config(document, "small.json"));
  };
  const auto refusal = [&](int was, int is) {
    const std::string path = folder.file(std::to_string(was) + ".jsonl");
    { TrialLog(path, header_of(was)).append(some_trial(0)); }
    EXPECT_EQ(TrialLog(path, header_of(was)).trials().size(), 1u);
    return input_error([&] { TrialLog(path, header_of(is)); });
  };
  EXPECT_NE(refusal(0, 10).find("/measure/rest_ms was null, is 10"), std::string::npos);
  EXPECT_NE(refusal(10, 0).find("/measure/rest_ms was 10, is null"), std::string::npos);
  EXPECT_NE(refusal(20, 10).find("/measure/rest_ms was 20, is 10"), std::string::npos);
}

TEST(TrialLog, ResumesUnderAnotherNameAndCommand) {
  const TemporaryFolder folder;
  const std::string path = folder.file("trials.jsonl");
  { TrialLog(path, small_header()).append(some_trial(0)); }
  LogHeader header = small_header();
  header.sweep = "renamed";
  header.command = "another command";
  header.started = "later";
  EXPECT_EQ(TrialLog(path, header).trials().size(), 1u);
}

TEST(TrialLog, RefusesACorruptLineAndTouchesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.file("trials.jsonl");
  {
    TrialLog log(path, small_header());
    for (int id = 0; id < 3; ++id) {
      log.append(some_trial(id));
    }
  }
  const std::string whole = read_text(path);
  std::vector<std::size_t> ends;  // of each line
  for (std::size_t at = whole.find('\n'); at != std::string::npos; at = whole.find('\n', at + 1)) {
    ends.push_back(at);
  }
  const auto refused = [&](const std::string& text, const std::string& part) {
    write_text(path, text);
    const std::string writing = input_error([&] { TrialLog(path, small_header()); });
    const std::string reading = input_error([&] { (void)read_trial_log(path); });
    EXPECT_EQ(writing, reading);
    EXPECT_TRUE(writing.starts_with(path + ": ")) << writing;
    EXPECT_NE(writing.find(part), std::string::npos) << writing << "\nlacks\n" << part;
    EXPECT_EQ(read_text(path), text);
  };
  const auto replaced = [&](std::size_t line, const std::string& text) {
    return whole.substr(0, ends[line - 2] + 1) + text + whole.substr(ends[line - 1]);
  };
  refused(replaced(3, "rubbish"), "line 3: is not a whole JSON object");
  refused(replaced(2, ""), "line 2: is not a whole JSON object");
  refused(replaced(3, "{\"id\": 1e999}"), "line 3: is not a whole JSON object");
  refused(replaced(4, "[]"), "line 4: [] is not an object");
  refused(replaced(4, "{\"id\": 1}"), "line 4: the key \"kind\" is missing");
  Json odd = Json::parse(to_line(some_trial(1)));
  odd["config"]["tokens_per_block"] = "x";
  refused(replaced(3, odd.dump()), "line 3/config/tokens_per_block: tokens_per_block cannot be");
  odd = Json::parse(to_line(some_trial(1)));
  odd["verdict"] = "fine";
  refused(replaced(3, odd.dump()), "line 3/verdict: \"fine\" is not a known choice");
  refused("{\"format\":\"other\"}\n", "line 1: is not the first line of a trial log");
  refused("{\"format\":\"fusescope-trials\",\"version\":2,\"fusescope\":\n",
          "line 1: is not a whole JSON object");
}

TEST(TrialLog, RefusesAnotherFileWithoutANewline) {
  const TemporaryFolder folder;
  const std::string path = folder.file("notes");
  write_text(path, "my notes");
  EXPECT_NE(input_error([&] { TrialLog(path, small_header()); }).find("is not the first line"),
            std::string::npos);
  EXPECT_EQ(read_text(path), "my notes");
}

TEST(TrialLog, IsWrittenByOneProcessAtATime) {
  const TemporaryFolder folder;
  const std::string path = folder.file("trials.jsonl");
  const TrialLog log(path, small_header());
  EXPECT_NE(input_error([&] {
              TrialLog(path, small_header());
            }).find("is being written by another process"),
            std::string::npos);
}

TEST(TrialLog, SaysWhyItCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_NE(input_error([&] {
              TrialLog(folder.file("no/such/trials.jsonl"), small_header());
            }).find("cannot be written: No such file or directory"),
            std::string::npos);
  EXPECT_NE(input_error([&] { TrialLog("/dev/full", small_header()); }).find("/dev/full: "),
            std::string::npos);
  EXPECT_NE(input_error([&] {
              (void)read_trial_log(folder.file("absent.jsonl"));
            }).find("cannot be read: No such file"),
            std::string::npos);
}

}  // namespace
}  // namespace fusescope::sweep
