// The fuzzers' seeds and what they found interesting: a clean error or an attribution that adds up.

#include <fstream>
#include <iterator>

#include "analysis/trace/attribution.hpp"
#include "base/error.hpp"
#include "traces.hpp"

namespace fusescope::timeline::test {
namespace {

TEST(FuzzCorpus, EveryInputEndsCleanly) {
  const std::filesystem::path folder =
      std::filesystem::path(FUSESCOPE_TEST_SOURCE_DIR) / "tests/fuzz/corpus/traces";
  const analysis::Rules rules[] = {analysis::load_rules("default"), analysis::load_rules("hta")};
  std::size_t read = 0;
  std::size_t refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    try {
      const Trace trace = read_trace(entry.path().string(), bytes.data(), bytes.size());
      ++read;
      for (const analysis::Rules& each : rules) {
        for (const analysis::DeviceAttribution& device :
             analysis::attribute_traces({&trace, 1}, each).devices) {
          EXPECT_EQ(analysis::check_closing(device), "") << entry.path();
        }
      }
    } catch (const InputError& error) {
      ++refused;
      EXPECT_NE(std::string(error.what()), "") << entry.path();
    }
  }
  EXPECT_GT(read, 10U);
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace fusescope::timeline::test
