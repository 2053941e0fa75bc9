#include "sweep/sweep_config.hpp"

#include <gtest/gtest.h>

#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

using test::small_sweep_document;

TEST(SweepConfig, ReadsEveryKey) {
  Json document = small_sweep_document();
  document.update(Json::parse(R"({
    "why": "a test", "routing": {"kind": "zipf", "alpha": 1.5, "seed": 3}, "engine": "sim",
    "profile": "some-profile", "base": {"watermark_chunks": 2},
    "constraints": ["dispatch_comm_sms + 32 <= device.sms"],
    "search": {"strategy": "random", "seed": 5,
               "budget": {"trials": 9, "seconds": 2.5, "improvement": {"at_least": 0.01, "trials": 30}}},
    "measure": {"warmup": 1, "min_samples": 7, "target_rel_ci": 0.01, "max_seconds": 4, "rest_ms": 15,
                "seed": 8, "l2": "warm", "throttle_below": 0.8, "base_every": 12, "deadline_seconds": 6},
    "finalists": {"configs": 3, "rounds": 5, "samples": 11},
    "ladder": true})"));
  const SweepConfig sweep = parse_sweep_config(document, "f.json");
  EXPECT_EQ(sweep.name, "small");
  EXPECT_EQ(sweep.why, "a test");
  EXPECT_EQ(sweep.shape.tokens(), 32);
  EXPECT_EQ(sweep.routing.kind, RoutingKind::zipf);
  EXPECT_EQ(sweep.routing.alpha, 1.5);
  EXPECT_EQ(sweep.routing.seed, 3u);
  EXPECT_EQ(sweep.engine, "sim");
  EXPECT_EQ(sweep.profile, "some-profile");
  EXPECT_EQ(sweep.base.watermark_chunks, 2);
  ASSERT_EQ(sweep.axes.size(), 3u);
  EXPECT_EQ(sweep.axes[0].knob, "dispatch_comm_sms");
  EXPECT_EQ(sweep.axes[1].knob, "tokens_per_block");
  EXPECT_EQ(sweep.axes[2].knob, "all_hands");
  EXPECT_EQ(sweep.axes[1].values.size(), 3u);
  EXPECT_EQ(sweep.constraints.size(), 1u);
  EXPECT_EQ(sweep.search.kind, SearchKind::random);
  EXPECT_EQ(sweep.search.trials, 9);
  EXPECT_EQ(sweep.search.seconds, 2.5);
  EXPECT_EQ(sweep.search.seed, 5u);
  EXPECT_EQ(sweep.measure.min_samples, 7);
  EXPECT_EQ(sweep.search.improvement.at_least, 0.01);
  EXPECT_EQ(sweep.search.improvement.trials, 30);
  EXPECT_EQ(sweep.measure.rest_ms, 15);
  EXPECT_EQ(sweep.measure.seed, 8u);
  EXPECT_EQ(sweep.measure.throttle_below, 0.8);
  EXPECT_EQ(sweep.measure.base_every, 12);
  EXPECT_EQ(sweep.measure.deadline_seconds, 6);
  EXPECT_EQ(sweep.finalists.configs, 3);
  EXPECT_EQ(sweep.finalists.rounds, 5);
  EXPECT_EQ(sweep.finalists.samples, 11);
  EXPECT_TRUE(sweep.ladder);
}

TEST(SweepConfig, RoutingMayBeItsPrintedForm) {
  Json document = small_sweep_document();
  document["routing"] = "hot:2,0.75";
  const SweepConfig sweep = parse_sweep_config(document, "f.json");
  EXPECT_EQ(sweep.routing.kind, RoutingKind::hot);
  EXPECT_EQ(sweep.routing.hot_experts, 2);
  EXPECT_EQ(sweep.routing.hot_share, 0.75);
}

TEST(SweepConfig, ItsDocumentStandsAlone) {
  Json document = small_sweep_document();
  document["shape"] = "seed-tp4";
  const SweepConfig sweep = parse_sweep_config(document, "f.json");
  EXPECT_TRUE(sweep.document["shape"].is_object());
  EXPECT_EQ(parse_sweep_config(sweep.document, "again").shape, sweep.shape);
  EXPECT_EQ(identity(parse_sweep_config(sweep.document, "again")), identity(sweep));
}

TEST(SweepConfig, IdentityIsWithoutNameAndBudget) {
  Json document = small_sweep_document();
  const Json before = identity(parse_sweep_config(document, "f"));
  document["name"] = "other";
  document["search"] = {{"strategy", "grid"}, {"budget", {{"trials", 3}}}};
  EXPECT_EQ(identity(parse_sweep_config(document, "f")), before);
  document["axes"]["tokens_per_block"].push_back(16);
  EXPECT_NE(identity(parse_sweep_config(document, "f")), before);
}

// Logs from before there were rests go on; a rest makes it another sweep.
TEST(SweepConfig, IdentityHasARestOnlyWhereThereIsOne) {
  Json document = small_sweep_document();
  const Json before = identity(parse_sweep_config(document, "f"));
  EXPECT_FALSE(before.at("measure").contains("rest_ms"));
  document["measure"]["rest_ms"] = 0;
  EXPECT_EQ(identity(parse_sweep_config(document, "f")), before);
  document["measure"]["rest_ms"] = 10;
  Json rested = before;
  rested["measure"]["rest_ms"] = 10;
  EXPECT_EQ(identity(parse_sweep_config(document, "f")), rested);
}

struct Refusal {
  const char* patch;    // merged into the small sweep; null deletes
  const char* message;  // a part of it
};

class SweepRefused : public testing::TestWithParam<Refusal> {};

TEST_P(SweepRefused, NamingFilePathAndWhatWouldBeAccepted) {
  Json document = small_sweep_document();
  document.merge_patch(Json::parse(GetParam().patch));
  const std::string message =
      test::input_error([&] { (void)parse_sweep_config(document, "f.json"); });
  EXPECT_TRUE(message.starts_with("f.json: /")) << message;
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message << "\nlacks\n"
                                                                 << GetParam().message;
}

INSTANTIATE_TEST_SUITE_P(
    Documents, SweepRefused,
    testing::Values(
        Refusal{R"({"axis": {}})", "/axis: unknown key \"axis\", did you mean \"axes\"?"},
        Refusal{R"({"search": {"strategy": "grid", "budgets": {}}})",
                "/search/budgets: unknown key \"budgets\", did you mean \"budget\"?"},
        Refusal{R"({"search": {"strategy": "grid", "budget": {"trial": 3}}})",
                "/search/budget/trial: unknown key"},
        Refusal{R"({"search": {"strategy": "greed"}})",
                "/search/strategy: \"greed\" is not a known choice; accepted: grid, random, local, "
                "racing or sim_guided"},
        Refusal{R"({"search": {"strategy": "grid", "budget": {"trials": 0}}})",
                "/search/budget/trials: 0 is out of range"},
        Refusal{R"({"search": {}})", "/search: the key \"strategy\" is missing"},
        Refusal{R"({"measure": {"min_sample": 3}})",
                "/measure/min_sample: unknown key \"min_sample\", did you mean \"min_samples\"?"},
        Refusal{R"({"measure": {"rest_ms": -1}})",
                "/measure/rest_ms: -1 is out of range; accepted: an integer from 0 to 10000"},
        Refusal{R"({"measure": {"rest_ms": 10001}})", "/measure/rest_ms: 10001 is out of range"},
        Refusal{R"({"measure": {"rest_ms": 0.5}})", "/measure/rest_ms: 0.5 is not an integer"},
        Refusal{R"({"measure": {"rest": 10}})", "/measure/rest: unknown key \"rest\""},
        Refusal{R"({"measure": {"l2": "cold"}})",
                "/measure/l2: no engine can start an iteration on a cold L2"},
        Refusal{R"({"search": {"strategy": "racing", "profile": "h200-nvlink"}})",
                "/search/profile: only sim_guided has a profile to rank by"},
        Refusal{R"({"search": {"strategy": "grid", "budget": {"improvement": {}}}})",
                "/search/budget/improvement: the key \"at_least\" is missing"},
        Refusal{R"({"finalists": {"rounds": 1}})", "/finalists/rounds: 1 is out of range"},
        Refusal{R"({"measure": {"min_samples": 0}})", "/measure/min_samples: 0 is out of range"},
        Refusal{R"({"name": null})", "the key \"name\" is missing"},
        Refusal{R"({"name": ""})", "/name: the name is empty"},
        Refusal{R"({"axes": null})", "the key \"axes\" is missing"},
        Refusal{R"({"axes": {"dispatch_comm_sms": null, "tokens_per_block": null,
                             "all_hands": null}})",
                "/axes: there is no axis"},
        Refusal{R"({"axes": {"tokens_per_block": []}})",
                "/axes/tokens_per_block: the axis is empty"},
        Refusal{R"({"axes": {"tokens_per_block": 4}})",
                "/axes/tokens_per_block: 4 is not an array"},
        Refusal{R"({"axes": {"tokens_per_block": [4, 8, 4]}})",
                "/axes/tokens_per_block/2: 4 stands twice on this axis, first at "
                "/axes/tokens_per_block/0"},
        Refusal{R"({"axes": {"tokens_per_block": [4, "many"]}})",
                "/axes/tokens_per_block/1: tokens_per_block cannot be \"many\""},
        Refusal{R"({"axes": {"tokens_per_block": [4, null]}})",
                "/axes/tokens_per_block/1: a knob's value cannot be null"},
        Refusal{R"({"axes": {"dispatch_com_sms": [4]}})",
                "/axes/dispatch_com_sms: unknown knob \"dispatch_com_sms\", did you mean "
                "\"dispatch_comm_sms\"?"},
        Refusal{R"({"axes": {"link_gbps": [1, 1.0]}})", "/axes/link_gbps/1: 1 stands twice"},
        Refusal{
            R"({"base": {"pull_order": "by_slots"}})",
            "/base/pull_order: pull_order cannot be \"by_slots\"; accepted: by_slot or by_token"},
        Refusal{R"({"base": {"pull_odor": "by_slot"}})",
                "/base/pull_odor: unknown knob \"pull_odor\", did you mean \"pull_order\"?"},
        Refusal{R"({"base": {"dispatch_comm_sms": 123456789012345678901}})",
                "/base/dispatch_comm_sms: dispatch_comm_sms cannot be"},
        Refusal{R"({"shape": "seed-tp5"})", "/shape: \"seed-tp5\" is not in "},
        Refusal{R"({"shape": "seed-tp5"})", "did you mean \"seed-tp"},
        Refusal{R"({"shape": "no/such.json"})", "/shape: no/such.json: "},
        Refusal{R"({"shape": 4})", "/shape: 4 is not a shape"},
        Refusal{R"({"shape": {"topk": 9}})", "/shape/topk: 9 is more than the 4 experts"},
        Refusal{R"({"shape": {"hiden": 9}})", "/shape/hiden: unknown key \"hiden\""},
        Refusal{R"({"routing": "zip:1.0"})", "/routing: \"zip:1.0\": "},
        Refusal{R"({"routing": {"kind": "zip"}})",
                "/routing/kind: \"zip\" is not a known choice; accepted: balanced, uniform, zipf, "
                "hot or file"},
        Refusal{R"({"routing": {"kind": "uniform", "alpha": 1}})",
                "/routing/alpha: unknown key \"alpha\""},
        Refusal{R"({"routing": {"kind": "file"}})", "/routing: the key \"path\" is missing"},
        Refusal{R"({"engine": "cpu"})", "/engine: \"cpu\" is not a known choice"},
        Refusal{R"({"constraints": ["dispatch_comm_sms <"]})",
                "/constraints/0 column 20: unexpected end"},
        Refusal{R"({"constraints": "all_hands"})", "/constraints: \"all_hands\" is not an array"},
        Refusal{R"({"ladder": 1})", "/ladder: 1 is not a boolean"}));

TEST(SweepConfig, RefusesAxesThatSpanTooMuch) {
  Json document = small_sweep_document();
  for (const char* knob : {"dispatch_comm_sms", "combine_comm_sms", "tokens_per_block"}) {
    document["axes"][knob] = Json::array();
    for (int value = 1; value <= 101; ++value) {
      document["axes"][knob].push_back(value);
    }
  }
  const std::string message = test::input_error([&] { (void)parse_sweep_config(document, "f"); });
  EXPECT_NE(message.find("/axes: the axes span more than 1000000 configs"), std::string::npos)
      << message;
}

TEST(SweepConfig, NamesAMissingFile) {
  const std::string message =
      test::input_error([] { (void)read_sweep_config("no/such/sweep.json"); });
  EXPECT_NE(message.find("no/such/sweep.json: cannot be read: No such file"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace fusescope::sweep
