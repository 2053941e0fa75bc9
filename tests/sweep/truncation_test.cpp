// A sweep that is killed leaves its log cut off at any byte. Whatever is left, the sweep goes on: no
// trial whose line was whole is lost or run again, and none is missing in the end.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "fake_engine.hpp"
#include "sweep/runner.hpp"
#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

TEST(TruncatedLog, ResumesFromAnyByte) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("trials.jsonl");
  const SweepConfig sweep = test::small_sweep();
  const Problem problem = test::small_problem();
  const LogHeader header = test::small_header(sweep);
  test::FakeEngine engine;
  const auto executor = make_in_process({&engine, &problem, sweep.measure, nullptr, "a test"});
  {
    TrialLog log(path, header);
    EXPECT_EQ(run_search(sweep, engine.device(), *executor, log, {}).ran, 24);
  }
  const std::string whole = test::read_text(path);

  std::mt19937_64 generator(11);
  std::vector<std::size_t> lengths = {0, 1, whole.size() - 1, whole.size()};
  const std::size_t header_end = whole.find('\n');
  lengths.insert(lengths.end(), {header_end, header_end + 1, header_end + 2});
  for (int i = 0; i < 150; ++i) {
    lengths.push_back(generator() % whole.size());
  }
  for (const std::size_t length : lengths) {
    const std::string left = whole.substr(0, length);
    const auto lines = std::count(left.begin(), left.end(), '\n');
    const auto finished = std::max<std::ptrdiff_t>(0, lines - 1);
    test::write_text(path, left);
    engine.runs = 0;
    {
      TrialLog log(path, header);
      const bool torn = !left.empty() && left.back() != '\n';
      EXPECT_EQ(log.repair().empty(), !torn) << "cut at byte " << length;
      const Outcome outcome = run_search(sweep, engine.device(), *executor, log, {});
      EXPECT_EQ(outcome.ran, 24 - finished) << "cut at byte " << length;
      EXPECT_EQ(outcome.found, finished) << "cut at byte " << length;
      EXPECT_EQ(engine.runs, 24 - finished) << "cut at byte " << length;
    }
    const LogContents contents = read_trial_log(path);
    std::map<std::uint64_t, int> seen;
    for (const Trial& trial : contents.trials) {
      ++seen[hash(trial.config)];
    }
    EXPECT_EQ(seen.size(), 24u) << "cut at byte " << length;
    EXPECT_EQ(contents.trials.size(), 24u) << "cut at byte " << length;
    if (finished > 0) {  // what was whole is byte for byte what it was
      const std::size_t kept = left.rfind('\n') + 1;
      EXPECT_EQ(test::read_text(path).substr(0, kept), whole.substr(0, kept));
    }
  }
}

}  // namespace
}  // namespace fusescope::sweep
