#pragma once
// `fusescope check --search N` and `--replay TEXT`: the protocol under many schedules.

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fusescope::cli {

struct SearchFlags {
  long long schedules = 0;          // --search
  std::string replay;               // --replay
  std::string kernel = "layer";     // --kernel
  std::string bug = "none";         // --bug
  std::vector<std::string> limits;  // --limit name=value
  int threads = 0;
  void add_to(CLI::App& command);
  // Throws InputError where one of them is given that means nothing without a search.
  bool asked() const;
};

// Searches, or replays; returns the exit code. Throws InputError naming the option.
int execute_search(const SearchFlags& flags, std::uint64_t seed, bool json);

}  // namespace fusescope::cli
