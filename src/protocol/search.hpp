#pragma once
// The search: many small scenarios, one schedule each, on all cores. Schedule `i` of seed `s` is the same
// whatever ran before it and on however many threads.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "protocol/schedule.hpp"

namespace fusescope::protocol {

struct SearchOptions {
  std::int64_t schedules = 10'000;
  std::uint64_t seed = 1;
  Subject subject = Subject::layer;
  Bug bug = Bug::none;
  Limits limits;
  int threads = 0;  // 0 = as many as the machine has
};

struct SearchProgress {
  std::int64_t done = 0;
  std::int64_t planned = 0;
  double seconds = 0;
};

// A schedule that breaks the protocol. The one with the smallest index, whatever the threads did.
struct Found {
  std::int64_t index = 0;
  Schedule schedule;
  StrategyKind strategy = StrategyKind::uniform;
  Finding finding;
};

struct SearchResult {
  std::int64_t schedules = 0;  // run; with a finding: up to it, however many threads ran
  std::uint64_t steps = 0;
  std::int64_t faults = 0;                 // with a fault ...
  std::int64_t aborted = 0;                // ... that waits ran out of time for
  std::array<std::int64_t, 9> by_ranks{};  // schedules with so many ranks
  std::array<std::int64_t, kStrategies> by_strategy{};
  double seconds = 0;
  bool interrupted = false;
  std::optional<Found> found;
};

// `progress` is called by one thread at a time, a few times a second; `stop` is looked at between
// schedules.
SearchResult search(const SearchOptions& options,
                    const std::function<void(const SearchProgress&)>& progress = {},
                    const std::atomic<bool>* stop = nullptr);

}  // namespace fusescope::protocol
