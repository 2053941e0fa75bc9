#include "sweep/legality.hpp"

#include <gtest/gtest.h>

#include "layer/gemm_path.hpp"
#include "sweep/search_space.hpp"
#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

std::string refusal(const Json& patch) {
  Json document = test::small_sweep_document();
  document.merge_patch(patch);
  const SweepConfig sweep = parse_sweep_config(document, "f.json");
  return test::input_error([&] {
    require_legal(sweep, test::small_problem(), {"small device", 110, 101376});
  });
}

TEST(Legality, AcceptsASweepWithSomeIllegalConfigs) {
  Json document = test::small_sweep_document();
  document["axes"]["dispatch_comm_sms"] = {16, 200};
  require_legal(parse_sweep_config(document, "f.json"), test::small_problem(),
                {"small device", 110, 101376});
}

TEST(Legality, NamesTheBaseKnobThatCannotRun) {
  EXPECT_EQ(
      refusal({{"base", {{"dispatch_comm_sms", 140}}}}),
      "f.json: /base/dispatch_comm_sms: dispatch_comm_sms 140 leaves no compute SM on a 110-SM "
      "device; accepted: knobs that can run together; \"fusescope list knobs\" explains them");
}

TEST(Legality, NamesTheBaseWhenOnlyItsKnobsTogetherCannotRun) {
  // Without all hands somebody must run the combine jobs.
  const std::string message = refusal({{"base", {{"combine_comm_sms", 0}, {"all_hands", false}}}});
  EXPECT_TRUE(message.starts_with("f.json: /base: the base config cannot run: ")) << message;
}

TEST(Legality, RefusesAxesWithoutALegalConfig) {
  const std::string message = refusal({{"axes", {{"dispatch_comm_sms", {150, 200}}}}});
  EXPECT_NE(message.find("f.json: /axes: none of the 12 configs can run on small device, the first "
                         "because dispatch_comm_sms 150 leaves no compute SM"),
            std::string::npos)
      << message;
}

TEST(Legality, RefusesConstraintsThatLeaveNothingAndCountsEach) {
  const std::string message =
      refusal({{"constraints", {"dispatch_comm_sms > device.sms", "all_hands"}}});
  EXPECT_NE(
      message.find("f.json: /constraints: none of the 24 configs is left on small device (110 "
                   "SMs): \"dispatch_comm_sms > device.sms\" excludes 24, \"all_hands\" "
                   "excludes 12"),
      std::string::npos)
      << message;
}

// A search that knows no other rules than the constraints would spend its budget on what is refused.
TEST(Legality, TheTunedSpaceLeavesNothingThatItsDeviceRefuses) {
  const std::string file = std::string(FUSESCOPE_TEST_SOURCE_DIR) + "/sweeps/tune.json";
  const DeviceLimits hopper{"hopper", 132, kLargeGemmBytes, true};
  const DeviceLimits workstation{"workstation", 110, kSmallGemmBytes, true};
  const auto configs_left = [&](const char* gemm, const DeviceLimits& device) {
    Json document = read_json_file(file);
    document["base"]["gemm"] = gemm;
    const SweepConfig sweep = parse_sweep_config(document, file);
    const Problem problem = make_problem(sweep.shape, sweep.routing);
    const SearchSpace space(sweep, device);
    const std::vector<long long> left = space.allowed_indices();
    for (const long long index : left) {
      EXPECT_EQ(why_illegal(problem, space.at(index), device), "") << describe(space.at(index));
    }
    return left.size();
  };
  const std::size_t one_tile = configs_left("auto", workstation);
  EXPECT_GT(one_tile, 0U);
  EXPECT_EQ(configs_left("mma", hopper), one_tile);
  // On Hopper each with two tiles more; where no SM is set apart, which is one split of seven, a quarter of the tokens
  // beside those two, and rows gathered by auto and one of them, by kernel 1 or pushed before it.
  EXPECT_EQ(one_tile % 7, 0U);
  EXPECT_EQ(configs_left("auto", hopper), 3 * one_tile + 6 * (one_tile / 7));
}

}  // namespace
}  // namespace fusescope::sweep
