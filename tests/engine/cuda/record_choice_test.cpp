// Which recorded iteration becomes the timeline, and what is not recorded. Needs no GPU.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "engine/cuda/record_turns.hpp"
#include "engine/cuda/recorder.hpp"

namespace fusescope::engine::cuda::test {
namespace {

using Pick = IterationChoice::Pick;

Turns turns_of(const std::vector<double>& walls) {
  Turns turns;
  for (const double wall : walls) {
    turns.recorded.emplace_back();
    turns.recorded.back().number = static_cast<int>(turns.recorded.size()) - 1;
    turns.recorded.back().wall_us = wall;
  }
  return turns;
}

TEST(RecordChoice, MedianSlowestAndNumber) {
  const Turns turns = turns_of({5, 9, 7, 9, 6});
  EXPECT_EQ(chosen_of(turns, {Pick::median, 0}).number, 2);
  EXPECT_EQ(chosen_of(turns, {Pick::slowest, 0}).number, 1) << "the first of equals";
  EXPECT_EQ(chosen_of(turns, {Pick::number, 4}).number, 4);
  EXPECT_EQ(chosen_of(turns_of({8, 3}), {Pick::median, 0}).number, 1) << "the faster of the two";
}

TEST(RecordChoice, IsWrittenDown) {
  const Turns turns = turns_of({5, 9, 7});
  EXPECT_EQ(describe_choice(turns, {Pick::median, 0}),
            "number 2 (from 0) of 3 recorded iterations, whose wall is the median: 7.0 us");
  EXPECT_EQ(describe_choice(turns, {Pick::number, 1}),
            "number 1 (from 0) of 3 recorded iterations, as asked: 9.0 us");
}

TEST(RecordChoice, IsReadFromWords) {
  EXPECT_EQ(parse_iteration_choice("median"), (IterationChoice{Pick::median, 0}));
  EXPECT_EQ(parse_iteration_choice("slowest"), (IterationChoice{Pick::slowest, 0}));
  EXPECT_EQ(parse_iteration_choice("12"), (IterationChoice{Pick::number, 12}));
  for (const char* const wrong : {"", "fastest", "-1", "3x", "99999999999"}) {
    EXPECT_THROW(parse_iteration_choice(wrong), InputError) << wrong;
  }
}

TEST(RecordChoice, WhatIsNotRecordedIsSaid) {
  Config config;
  EXPECT_EQ(why_not_recorded(config), "");
  config.study = Study::gates_open;
  EXPECT_NE(why_not_recorded(config), "");
  config = Config{};
  config.form = LayerForm::serial;
  EXPECT_NE(why_not_recorded(config), "");
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
