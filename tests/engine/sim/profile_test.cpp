// Profiles: what ships loads, and what is wrong in one is refused with its place.
#include "engine/sim/profile.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "engine/sim/figures.hpp"

namespace fusescope::engine::sim {
namespace {

TEST(Profile, ThoseThatShipLoad) {
  const std::vector<std::string> names = list_profiles();
  EXPECT_GE(names.size(), 2u);
  for (const std::string& name : names) {
    const Profile profile = load_profile(name);
    EXPECT_EQ(profile.name, name);
    ASSERT_EQ(profile.origins.size(), profile_numbers().size());
  }
  EXPECT_EQ(load_profile("").name, kSeedProfile);
  EXPECT_EQ(load_profile("h200-nvlink").sms, 132);
  EXPECT_EQ(load_profile("rtx-pro-5000-pcie5").sms, 110);
}

TEST(Profile, FiguresHaveKnownNamesAndFewAreFitted) {
  const Profile profile = load_profile(kSeedProfile);
  int fitted = 0;
  for (const ReferenceFigure& reference : profile.reference_figures) {
    const std::vector<std::string> known = {figure::kFusedUnorderedVsSerial, figure::kTunedVsSerial,
                                            figure::kExposedKernel1, figure::kHeadShare,
                                            figure::kScheduleRebuild};
    EXPECT_NE(std::find(known.begin(), known.end(), reference.name), known.end()) << reference.name;
    fitted += reference.fitted;
  }
  EXPECT_EQ(profile.reference_figures.size(), 5u);
  EXPECT_LE(fitted, 2);
}

// Loads the seed's profile with one change; returns the error's parts.
InputError::Parts refusal(const std::function<void(Json&)>& change) {
  Json document = read_json_file(load_profile(kSeedProfile).path);
  change(document);
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("fusescope_profile_test_" + std::to_string(::getpid()) + ".json");
  std::ofstream(path) << document;
  try {
    load_profile(path.string());
  } catch (const InputError& error) {
    std::filesystem::remove(path);
    EXPECT_EQ(error.parts().file, path.string());
    return error.parts();
  }
  std::filesystem::remove(path);
  ADD_FAILURE() << "was accepted";
  return {};
}

TEST(Profile, RefusesAMissingNumber) {
  const auto parts = refusal([](Json& document) { document["numbers"].erase("sm_store"); });
  EXPECT_NE(parts.problem.find("sm_store"), std::string::npos);
  EXPECT_EQ(parts.place, "/numbers");
}

TEST(Profile, RefusesAnUnknownNumberWithASuggestion) {
  const auto parts = refusal(
      [](Json& document) { document["numbers"]["sm_stor"] = document["numbers"]["sm_store"]; });
  EXPECT_NE(parts.problem.find("did you mean \"sm_store\""), std::string::npos);
}

TEST(Profile, RefusesAnotherUnit) {
  const auto parts = refusal([](Json& document) { document["numbers"]["l2"]["unit"] = "MB"; });
  EXPECT_EQ(parts.place, "/numbers/l2/unit");
  EXPECT_EQ(parts.accepted, "\"MiB\"");
}

TEST(Profile, RefusesAValueOutOfRange) {
  const auto parts = refusal([](Json& document) { document["numbers"]["sms"]["value"] = 0; });
  EXPECT_EQ(parts.place, "/numbers/sms/value");
}

TEST(Profile, RefusesANumberWithoutASource) {
  const auto parts = refusal([](Json& document) { document["numbers"]["sms"]["source"] = ""; });
  EXPECT_EQ(parts.place, "/numbers/sms/source");
}

TEST(Profile, RefusesAnUnknownProvenance) {
  const auto parts =
      refusal([](Json& document) { document["numbers"]["sms"]["provenance"] = "guessed"; });
  EXPECT_EQ(parts.place, "/numbers/sms/provenance");
}

TEST(Profile, RefusesAnUnknownName) {
  try {
    load_profile("h200-nvlnk");
    FAIL() << "was accepted";
  } catch (const InputError& error) {
    EXPECT_NE(error.parts().problem.find("did you mean \"h200-nvlink\""), std::string::npos);
    EXPECT_NE(error.parts().accepted.find("rtx-pro-5000-pcie5"), std::string::npos);
  }
}

TEST(Profile, RefusesAMissingFile) {
  EXPECT_THROW(load_profile("no/such/profile.json"), InputError);
}

}  // namespace
}  // namespace fusescope::engine::sim
