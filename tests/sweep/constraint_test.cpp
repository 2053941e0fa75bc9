#include "sweep/constraint.hpp"

#include <gtest/gtest.h>

#include "layer/gemm_path.hpp"
#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

struct Case {
  const char* text;
  bool holds;
};

class ConstraintHolds : public testing::TestWithParam<Case> {};

// Over dispatch_comm_sms 16, tokens_per_block 12, all_hands true, combine dispenser, 110 SMs, H 4096.
TEST_P(ConstraintHolds, AsWritten) {
  Shape shape;
  shape.ranks = 4;
  shape.tokens_per_rank = 512;
  shape.hidden = 4096;
  const DeviceLimits device{"test", 110, 101376};
  EXPECT_EQ(Constraint(GetParam().text, "f.json", "/constraints/0").holds(Config{}, device, shape),
            GetParam().holds)
      << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Expressions, ConstraintHolds,
    testing::Values(Case{"dispatch_comm_sms + 32 <= device.sms", true},
                    Case{"dispatch_comm_sms + 95 <= device.sms", false},
                    Case{"tokens_per_block * shape.hidden * 2 <= device.smem_per_block", true},
                    Case{"tokens_per_block*shape.hidden*2+8*tokens_per_block<device.smem_per_block",
                         true},
                    Case{"combine == 'dispenser'", true}, Case{"combine != \"dispenser\"", false},
                    Case{"'block_per_job' == combine", false}, Case{"all_hands", true},
                    Case{"not all_hands", false}, Case{"not not all_hands", true},
                    Case{"all_hands == false", false},
                    // "and" binds tighter than "or", "not" tighter than both.
                    Case{"true or false and false", true}, Case{"(true or false) and false", false},
                    Case{"not false or true", true}, Case{"not (false or true)", false},
                    Case{"2 + 3 * 4 == 14", true}, Case{"(2 + 3) * 4 == 20", true},
                    Case{"10 - 4 - 3 == 3", true}, Case{"24 / 4 / 2 == 3", true},
                    Case{"-2 * -3 == 6", true}, Case{"2 - -2 == 4", true}, Case{"7 % 4 == 3", true},
                    Case{"dispatch_comm_sms % 4 == 0", true},
                    Case{"0.5 * dispatch_comm_sms == 8", true}, Case{".5 < 1e3", true},
                    Case{"dispatch_comm_sms >= combine_comm_sms", true},
                    Case{"dispatch_comm_sms > combine_comm_sms", false},
                    Case{"shape.ranks * shape.tokens_per_rank == shape.tokens", true},
                    Case{"device.wgmma", false},
                    // The right side of a decided "or" is not evaluated.
                    Case{"true or 1 / 0 == 1", true}));

struct Refusal {
  const char* text;
  const char* message;  // a part of it
};

class ConstraintRefused : public testing::TestWithParam<Refusal> {};

TEST_P(ConstraintRefused, WithPlaceColumnAndWhatWasExpected) {
  const std::string message =
      test::input_error([] { Constraint(GetParam().text, "f.json", "/constraints/3"); });
  EXPECT_TRUE(message.starts_with("f.json: /constraints/3 column ")) << message;
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message << "\nlacks\n"
                                                                 << GetParam().message;
  EXPECT_NE(message.find("; accepted: "), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Expressions, ConstraintRefused,
    testing::Values(
        Refusal{"", "column 1: unexpected end of the expression"},
        Refusal{"dispatch_com_sms < 4",
                "column 1: unknown name \"dispatch_com_sms\", did you mean \"dispatch_comm_sms\"?"},
        Refusal{"device.sm > 4", "did you mean \"device.sms\"?"},
        Refusal{"combine == dispenser", "column 12: unknown name \"dispenser\""},
        Refusal{"combine == 'dispencer'",
                "column 12: combine is never \"dispencer\", did you mean \"dispenser\"?"},
        Refusal{"dispatch_comm_sms +", "column 20: unexpected end of the expression"},
        Refusal{"dispatch_comm_sms + 4", "column 1: this is a number"},
        Refusal{"(1 < 2", "\")\" for the \"(\" at column 1"},
        Refusal{"1 < 2)", "column 6: unexpected \")\""},
        Refusal{"1 < 2 3", "column 7: unexpected \"3\""},
        Refusal{"1 < 2 < 3", "column 7: comparisons do not chain"},
        Refusal{"all_hands + 1 < 2", "column 1: this is a truth value"},
        Refusal{"device.wgmma >= 1", "column 1: this is a truth value"},
        Refusal{"combine < 4", "column 1: this is a string"},
        Refusal{"tokens_per_block == 'four'", "column 21: this is a string"},
        Refusal{"1 and 2 < 3", "column 1: this is a number"},
        Refusal{"combine == 'dispenser", "column 12: a string is not closed"},
        Refusal{"1 = 1", "column 3: unexpected \"=\""}, Refusal{"12abc < 4", "column 1"},
        Refusal{"1..2 < 4", "\"1..2\" is not a number"},
        Refusal{"and 1 < 2", "column 1: unexpected \"and\""},
        Refusal{"not", "column 4: unexpected end of the expression"}));

// By the device, its shared memory, and what the config asks for.
TEST(Constraint, KnowsWhereTheGemmsMultiplyWithWgmma) {
  const Constraint constraint("device.wgmma", "f.json", "/constraints/0");
  DeviceLimits device{"test", 132, kLargeGemmBytes};
  Config config;
  EXPECT_TRUE(constraint.holds(config, device, {}));
  config.gemm = GemmPath::mma;
  EXPECT_FALSE(constraint.holds(config, device, {}));
  config.gemm = GemmPath::automatic;
  device.smem_per_block = kSmallGemmBytes;
  EXPECT_FALSE(constraint.holds(config, device, {}));
  device.smem_per_block = kLargeGemmBytes;
  device.wgmma = false;
  EXPECT_FALSE(constraint.holds(config, device, {}));
}

TEST(Constraint, RefusesDivisionByZeroWithTheConfig) {
  const Constraint constraint("4 / (dispatch_comm_sms - 16) > 1", "f.json", "/constraints/0");
  const std::string message =
      test::input_error([&] { (void)constraint.holds(Config{}, DeviceLimits{}, Shape{}); });
  EXPECT_NE(message.find("column 6: divides by zero"), std::string::npos) << message;
}

TEST(Constraint, RefusesHostileNesting) {
  for (const std::string& deep : {std::string(1'000, '('), std::string(1'000, '-') + "1 < 2", [] {
                                    std::string text;
                                    for (int i = 0; i < 1'000; ++i) {
                                      text += "not ";
                                    }
                                    return text + "true";
                                  }()}) {
    EXPECT_NE(test::input_error([&] { Constraint(deep, "f", "/c"); }).find("nested too deeply"),
              std::string::npos);
  }
}

TEST(Constraint, RefusesHostileLength) {
  const auto chain = [](int terms) {
    std::string text = "0";
    for (int i = 1; i < terms; ++i) {
      text += "+1";
    }
    return text + " < 3000";
  };
  EXPECT_TRUE(Constraint(chain(2000), "f", "/c").holds(Config{}, DeviceLimits{}, Shape{}));
  EXPECT_NE(test::input_error([&] {
              Constraint(chain(1'000'000), "f", "/c");
            }).find("/c: is 2000006 characters long; accepted: at most 4096"),
            std::string::npos);
}

}  // namespace
}  // namespace fusescope::sweep
