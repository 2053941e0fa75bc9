// In-kernel records: they change no output, and make a timeline that holds to the event contract.
#include "analysis/critical_path.hpp"
#include "base/error.hpp"
#include "engine/cuda/cuda_engine.hpp"
#include "engine/cuda/cuda_test_support.hpp"
#include "engine/cuda/recorder.hpp"

namespace fusescope::engine::cuda::test {
namespace {

struct RecordedCase {
  std::string name;
  std::vector<std::string> knobs;
};

const std::vector<RecordedCase>& recorded_cases() {
  static const std::vector<RecordedCase> kCases = {
      {"the default config", {}},
      {"no graph", {"graph=false"}},
      {"no communication blocks", {"dispatch_comm_sms=0", "combine_comm_sms=0"}},
      {"few communication blocks", {"dispatch_comm_sms=1", "tokens_per_block=3"}},
      {"not all hands", {"all_hands=false"}},
      {"block per job", {"combine=block_per_job", "all_hands=false"}},
      {"fused activation", {"activation=fused"}},
      {"small tiles", {"tile=128x128"}},
      {"small tiles, fused activation", {"tile=128x128", "activation=fused"}},
      {"orders by token, four chunks",
       {"pull_order=by_token", "job_order=by_token", "watermark_chunks=4"}},
      {"schedule from the host", {"schedule=host"}},
      {"schedule by Thrust", {"schedule=device"}},
      {"schedule in the prologue", {"schedule=fused"}},
      {"programmatic", {"schedule=fused", "activation=fused", "launch=programmatic"}},
      {"programmatic, tiles by a counter",
       {"activation=fused", "launch=programmatic", "tile_counter=both", "dispatch_comm_sms=0"}},
      {"an emulated link", {"link_gbps=20"}},
      {"rows gathered", {"dispatch=gather"}},
      {"rows gathered, no communication blocks",
       {"dispatch=gather", "dispatch_comm_sms=0", "activation=fused"}},
      {"tokens pushed, communication blocks", {"dispatch=push", "schedule=fused"}},
      {"tokens pushed, tiles by row steps, programmatic",
       {"dispatch=push", "schedule=fused", "tile=160x256", "activation=fused",
        "launch=programmatic", "tile_counter=both", "dispatch_comm_sms=0"}},
      {"rows gathered by small tiles, an emulated link",
       {"dispatch=gather", "tile=128x128", "link_gbps=20"}},
      {"tiles by row steps", {"tile=160x256"}},
      {"tiles by row steps, programmatic",
       {"tile=160x256", "activation=fused", "launch=programmatic", "tile_counter=both"}},
      {"rows gathered by tiles by row steps, programmatic",
       {"dispatch=gather", "tile=160x256", "activation=fused", "launch=programmatic",
        "tile_counter=both", "dispatch_comm_sms=0"}},
      {"tokens fetched beside tiles by row steps",
       {"tile=160x256", "activation=fused", "dispatch_comm_sms=0", "dispatch_head=40"}},
      {"tiles of two row blocks", {"tile=288x128"}},
      {"all tokens fetched beside tiles of two row blocks, programmatic, an emulated link",
       {"tile=288x128", "activation=fused", "launch=programmatic", "tile_counter=both",
        "dispatch_comm_sms=0", "dispatch_head=0", "link_gbps=20"}},
      {"tiles of two row blocks, programmatic",
       {"tile=288x128", "activation=fused", "launch=programmatic", "tile_counter=both"}},
  };
  return kCases;
}

Config config_of(const RecordedCase& recorded) {
  Config config;
  for (const std::string& knob : recorded.knobs) {
    set_knob_text(config, knob, "test");
  }
  return config;
}

RecorderOptions few_iterations() {
  RecorderOptions options;
  options.iterations = 3;
  return options;
}

void expect_sound(const RecordedTimeline& recorded) {
  EXPECT_EQ(recorded.report.dropped, 0U);
  EXPECT_EQ(recorded.report.incomplete, 0U) << recorded.report.first_incomplete;
  EXPECT_GT(recorded.report.records, 0U);
  EXPECT_EQ(timeline::check(recorded.timeline), "");
  const auto path = analysis::critical_path(recorded.timeline);
  std::int64_t sum = 0;
  for (const std::int64_t part : path.by_step) {
    sum += part;
  }
  EXPECT_EQ(sum, recorded.timeline.wall_ns());
}

void expect_same_outputs_and_sound_timelines(int ranks, const std::vector<Device>& devices) {
  const Problem problem = make_test_problem(make_shape(ranks, 301, 1024, 16, 4, 256), "zipf", 21);
  LayerRunner runner(problem, devices, {.seed = 1, .deadline_ns = kTestDeadlineNs});
  for (const RecordedCase& recorded : recorded_cases()) {
    SCOPED_TRACE(recorded.name);
    const Config config = as_built(config_of(recorded), devices);
    ASSERT_EQ(checked_run(runner, config), "");
    const Outputs plain = read_outputs(runner);
    runner.prepare_records();
    runner.memory().poison();
    runner.run_recorded();
    EXPECT_EQ(first_difference(plain, read_outputs(runner)), "");
    expect_sound(record_timeline(runner, problem, config, few_iterations()));
  }
}

TEST(Records, OneRank) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_same_outputs_and_sound_timelines(1, devices);
}

TEST(Records, TwoRanksOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_same_outputs_and_sound_timelines(2, devices);
}

TEST(Records, TwoRanksOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_same_outputs_and_sound_timelines(2, devices);
}

TEST(Records, FourRanksOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_same_outputs_and_sound_timelines(4, devices);
}

TEST(Records, FourDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  expect_same_outputs_and_sound_timelines(4, devices);
}

// Needs no GPU, so that an illegal case is found before one is there.
TEST(Records, EveryCaseIsLegal) {
  const Device h200{0, "NVIDIA H200", 132, 232448, ""};
  const Problem problem = make_test_problem(make_shape(2, 301, 1024, 16, 4, 256), "zipf", 21);
  for (const RecordedCase& recorded : recorded_cases()) {
    EXPECT_EQ(why_illegal_on_device(problem, config_of(recorded), limits_of(h200)), "")
        << recorded.name;
  }
}

// What does not fit is counted, in the timeline too, and harms nothing else.
TEST(Records, FullBuffersAreCounted) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const Problem problem = make_test_problem(make_shape(2, 301, 1024, 16, 4, 256), "uniform", 3);
  LayerRunner runner(problem, devices, {.seed = 1, .deadline_ns = kTestDeadlineNs});
  const Config config;
  ASSERT_EQ(checked_run(runner, config), "");
  RecorderOptions options = few_iterations();
  options.most_per_writer = 2;
  const RecordedTimeline recorded = record_timeline(runner, problem, config, options);
  EXPECT_GT(recorded.report.dropped, 0U);
  EXPECT_GE(recorded.timeline.meta.dropped, recorded.report.dropped);
  EXPECT_EQ(what_is_wrong(runner), "");
}

TEST(Records, TheIterationIsAChoice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const Problem problem = make_test_problem(make_shape(1, 257, 512, 8, 2, 128), "uniform", 3);
  LayerRunner runner(problem, devices, {.seed = 1, .deadline_ns = kTestDeadlineNs});
  const Config config;
  ASSERT_EQ(checked_run(runner, config), "");
  RecorderOptions options = few_iterations();
  options.choice = {IterationChoice::Pick::number, 2};
  const RecordedTimeline third = record_timeline(runner, problem, config, options);
  EXPECT_EQ(third.timeline.meta.chosen.rfind("number 2 ", 0), 0U) << third.timeline.meta.chosen;
  expect_sound(third);
  options.choice = {IterationChoice::Pick::slowest, 0};
  const RecordedTimeline slowest = record_timeline(runner, problem, config, options);
  EXPECT_NE(slowest.timeline.meta.chosen.find("slowest"), std::string::npos);
  expect_sound(slowest);
  options.choice = {IterationChoice::Pick::number, 3};
  EXPECT_THROW(record_timeline(runner, problem, config, options), InputError);
}

TEST(Records, TheEngineSaysWhatItRecorded) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const auto engine = make_cuda_engine({.engine = "cuda", .profile = "", .devices = {0}});
  const Problem problem = make_test_problem(make_shape(2, 65, 512, 8, 2, 128), "uniform", 2);
  RunRequest request;
  request.problem = &problem;
  request.min_samples = 3;
  request.max_seconds = 1;
  request.timeline = true;
  request.command = "a test";
  const RunResult fused = engine->run(request);
  ASSERT_TRUE(fused.timeline.has_value()) << fused.why_no_timeline;
  const timeline::Meta& meta = fused.timeline->meta;
  EXPECT_EQ(meta.provenance, timeline::Provenance::measured);
  EXPECT_EQ(meta.command, "a test");
  EXPECT_FALSE(meta.chosen.empty());
  EXPECT_FALSE(meta.clocks.empty());
  EXPECT_GT(meta.unrecorded_us, 0);
  EXPECT_GT(meta.recorded_us, 0);
  EXPECT_GT(meta.dispatch_clock_mhz, 100);
  EXPECT_GT(meta.combine_clock_mhz, 100);
  request.config.form = LayerForm::serial;
  const RunResult serial = engine->run(request);
  EXPECT_FALSE(serial.timeline.has_value());
  EXPECT_NE(serial.why_no_timeline, "");
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
