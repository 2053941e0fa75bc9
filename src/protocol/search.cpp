#include "protocol/search.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace fusescope::protocol {
namespace {

class Search {
 public:
  Search(const SearchOptions& options, const std::function<void(const SearchProgress&)>& progress,
         const std::atomic<bool>* stop)
      : options_(options), progress_(progress), stop_(stop), last_(options.schedules) {}

  SearchResult run() {
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    const auto count = options_.threads > 0 ? static_cast<unsigned>(options_.threads) : cores;
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < count; ++i) {
      threads.emplace_back([this] { serve(); });
    }
    serve();
    for (std::thread& thread : threads) {
      thread.join();
    }
    if (error_) {
      std::rethrow_exception(error_);
    }
    result_.seconds = seconds();
    result_.interrupted = interrupted();
    return result_;
  }

 private:
  bool interrupted() const { return stop_ != nullptr && stop_->load(); }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

  void serve() {
    Machine machine;
    try {
      // What lies behind the first finding is not looked at; what lies before it, is.
      for (std::int64_t i = next_++; i < last_ && !interrupted(); i = next_++) {
        run_one(machine, i);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = error_ ? error_ : std::current_exception();
      last_ = 0;
    }
  }

  void run_one(Machine& machine, std::int64_t i) {
    const auto index = static_cast<std::uint64_t>(i);
    const Scenario scenario =
        draw_scenario(options_.subject, options_.limits, options_.seed, index);
    StrategyChooser chooser(target_of(scenario), options_.seed, index);
    const Outcome outcome = run_schedule(machine, scenario, options_.bug, chooser);

    const std::lock_guard lock(mutex_);
    if (outcome.finding && i < last_) {
      last_ = i;
      result_.found =
          Found{i, {scenario, options_.bug, chooser.choices()}, chooser.kind(), *outcome.finding};
    }
    ended_.emplace(i, Ran{outcome.steps, scenario.ranks, scenario.fault != Fault::none,
                          outcome.aborted, chooser.kind()});
    count_ended();
    constexpr double kEvery = 0.1;  // [s]
    if (progress_ && seconds() - told_ >= kEvery) {
      told_ = seconds();
      progress_({result_.schedules, options_.schedules, told_});
    }
  }

  // In the order of their indices, up to the first finding: how many behind it were under way in other threads
  // is chance.
  void count_ended() {
    for (auto next = ended_.find(result_.schedules);
         next != ended_.end() && (!result_.found || next->first <= result_.found->index);
         next = ended_.find(result_.schedules)) {
      const Ran& ran = next->second;
      ++result_.schedules;
      result_.steps += ran.steps;
      result_.faults += ran.faulty ? 1 : 0;
      result_.aborted += ran.aborted ? 1 : 0;
      ++result_.by_ranks[ran.ranks];
      ++result_.by_strategy[static_cast<std::size_t>(ran.strategy)];
      ended_.erase(next);
    }
  }

  struct Ran {
    std::uint64_t steps;
    int ranks;
    bool faulty;
    bool aborted;
    StrategyKind strategy;
  };

  const SearchOptions& options_;
  const std::function<void(const SearchProgress&)>& progress_;
  const std::atomic<bool>* stop_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<std::int64_t> last_;  // schedules from here on need not run
  std::mutex mutex_;
  double told_ = 0;
  std::map<std::int64_t, Ran> ended_;  // before others of smaller indices
  SearchResult result_;
  std::exception_ptr error_;
};

}  // namespace

SearchResult search(const SearchOptions& options,
                    const std::function<void(const SearchProgress&)>& progress,
                    const std::atomic<bool>* stop) {
  return Search(options, progress, stop).run();
}

}  // namespace fusescope::protocol
