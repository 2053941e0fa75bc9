// Where there is no CUPTI: collectors say so and what to do, and nothing else happens. A program of its
// own, because the library is looked for once.

#include <gtest/gtest.h>

#include <cstdlib>

#include "timeline/collect/cupti_activity.hpp"
#include "timeline/collect/pm_sampling.hpp"

namespace fusescope::timeline {
namespace {

class MissingCupti : public testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("FUSESCOPE_CUPTI", "/nowhere/libcupti.so.13", 1); }
};

TEST_F(MissingCupti, ActivityIsNotCollected) {
  std::string why_not;
  EXPECT_EQ(CuptiActivity::start({0}, why_not), nullptr);
  EXPECT_NE(why_not.find("/nowhere/libcupti.so.13"), std::string::npos) << why_not;
  EXPECT_NE(why_not.find("FUSESCOPE_CUPTI"), std::string::npos) << why_not;
}

TEST_F(MissingCupti, CountersAreNotSampled) {
  std::string why_not;
  EXPECT_EQ(PmSampling::make(0, why_not), nullptr);
  EXPECT_NE(why_not.find("CUPTI is not found"), std::string::npos) << why_not;
}

}  // namespace
}  // namespace fusescope::timeline
