#include "protocol/search.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
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
    ++result_.schedules;
    result_.steps += outcome.steps;
    result_.faults += scenario.fault != Fault::none ? 1 : 0;
    result_.aborted += outcome.aborted ? 1 : 0;
    ++result_.by_ranks[scenario.ranks];
    ++result_.by_strategy[static_cast<std::size_t>(chooser.kind())];
    if (outcome.finding && i < last_) {
      last_ = i;
      result_.found =
          Found{i, {scenario, options_.bug, chooser.choices()}, chooser.kind(), *outcome.finding};
    }
    constexpr double kEvery = 0.1;  // [s]
    if (progress_ && seconds() - told_ >= kEvery) {
      told_ = seconds();
      progress_({result_.schedules, options_.schedules, told_});
    }
  }

  const SearchOptions& options_;
  const std::function<void(const SearchProgress&)>& progress_;
  const std::atomic<bool>* stop_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<std::int64_t> last_;  // schedules from here on need not run
  std::mutex mutex_;
  double told_ = 0;
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
