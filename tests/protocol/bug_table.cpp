// Prints the table of docs/protocol-search.md: for each planted bug the schedules that it takes to find it,
// over 21 seeds, in the layer and in the third kernel.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "protocol/search.hpp"

namespace {

using namespace fusescope::protocol;

constexpr int kSeeds = 21;
constexpr std::int64_t kBudget = 50'000;

std::string cell(const BugEntry& entry, Subject subject) {
  if (effect_on(entry, subject) != Effect::found) {
    return effect_on(entry, subject) == Effect::implied ? "implied" : "";
  }
  std::vector<std::int64_t> taken;
  std::string kind = "not found";
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SearchOptions options;
    options.schedules = kBudget;
    options.seed = seed;
    options.subject = subject;
    options.bug = entry.bug;
    const SearchResult result = search(options);
    taken.push_back(result.found ? result.found->index + 1 : kBudget);
    kind = result.found ? to_string(result.found->finding.kind) : kind;
  }
  std::sort(taken.begin(), taken.end());
  return fmt::format("{} (at most {}), {}", taken[kSeeds / 2], taken.back(), kind);
}

}  // namespace

int main() {
  for (const BugEntry& entry : bugs()) {
    std::printf("| `%s` | %s | %s | %s |\n", std::string(entry.name).c_str(),
                std::string(entry.what).c_str(), cell(entry, Subject::layer).c_str(),
                cell(entry, Subject::gemm_reduce_scatter).c_str());
    std::fflush(stdout);
  }
}
