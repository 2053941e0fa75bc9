// Prints the table of docs/protocol-search.md: for each planted bug the schedules that it takes to find it,
// over 21 seeds.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "protocol/search.hpp"

int main() {
  using namespace fusescope::protocol;
  constexpr int kSeeds = 21;
  constexpr std::int64_t kBudget = 50'000;
  bool all = true;
  for (const BugEntry& entry : bugs()) {
    if (entry.harmless) {
      continue;
    }
    std::vector<std::int64_t> taken;
    std::string kind;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SearchOptions options;
      options.schedules = kBudget;
      options.seed = seed;
      options.bug = entry.bug;
      const SearchResult result = search(options);
      all = all && result.found;
      taken.push_back(result.found ? result.found->index + 1 : kBudget);
      kind = result.found ? to_string(result.found->finding.kind) : "not found";
    }
    std::sort(taken.begin(), taken.end());
    std::printf("| `%s` | %s | %lld | %lld | %s |\n", std::string(entry.name).c_str(),
                std::string(entry.what).c_str(), static_cast<long long>(taken[kSeeds / 2]),
                static_cast<long long>(taken.back()), kind.c_str());
    std::fflush(stdout);
  }
  return all ? 0 : 1;
}
