#include "base/suggest.hpp"

#include <gtest/gtest.h>

namespace fusescope {
namespace {

TEST(Suggest, FindsTheNearestName) {
  const std::vector<std::string> known = {"dispatch_comm_sms", "combine_comm_sms", "all_hands"};
  EXPECT_EQ(nearest_name("dispatch_com_sms", known), "dispatch_comm_sms");
  EXPECT_EQ(nearest_name("all_hand", known), "all_hands");
}

TEST(Suggest, SuggestsNothingWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("graph", {"dispatch_comm_sms", "all_hands"}), "");
  EXPECT_EQ(nearest_name("graph", {}), "");
}

TEST(Suggest, SpeaksLists) {
  EXPECT_EQ(spoken_list({}), "");
  EXPECT_EQ(spoken_list({"a"}), "a");
  EXPECT_EQ(spoken_list({"a", "b"}), "a or b");
  EXPECT_EQ(spoken_list({"a", "b", "c"}), "a, b or c");
}

}  // namespace
}  // namespace fusescope
