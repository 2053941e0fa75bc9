#include "sweep/runner.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "sweep/summary.hpp"
#include "sweep/trial_pool.hpp"

namespace fusescope::sweep {
namespace {

// How long the best has stood: the budget of improvement.
class Stagnation {
 public:
  explicit Stagnation(Improvement rule) : rule_(rule) {}

  void hear(const Trial& trial) {
    ++since_;
    if (trial.verdict == Verdict::ok && trial.median_us < best_ * (1 - rule_.at_least)) {
      best_ = trial.median_us;
      since_ = 0;
    }
  }
  bool reached() const { return is_reached_with(0); }
  // Whether `running` trials more reach it, if none of them is better.
  bool is_reached_with(long long running) const {
    return rule_.trials > 0 && since_ + running >= rule_.trials;
  }

 private:
  Improvement rule_;
  double best_ = std::numeric_limits<double>::infinity();
  long long since_ = 0;
};

// The trials of a search that is complete; 0 where that shows only as it goes.
long long planned_trials(const SweepConfig& config, const SearchSpace& space) {
  const bool each_once =
      config.search.kind == SearchKind::grid || config.search.kind == SearchKind::random;
  if (!each_once) {
    return 0;
  }
  const auto allowed = static_cast<long long>(space.allowed_indices().size());
  return config.search.trials > 0 ? std::min(config.search.trials, allowed) : allowed;
}

// The search as the pool runs it.
class SearchSource {
 public:
  SearchSource(const SweepConfig& config, const SearchSpace& space, const TrialLog& log,
               const Predict& predict)
      : search_(config.search),
        strategy_(make_strategy(config, space, predict)),
        before_(log.trials()),
        stagnation_(config.search.improvement) {
    for (const Trial& trial : before_) {
      if (trial.kind == TrialKind::search) {
        logged_[{hash(trial.config), trial.visit}] = &trial;
      }
    }
  }

  std::optional<Planned> next() {
    // Not more than may be wanted: else where the search ends would depend on how long trials take.
    while (!over() && !stagnation_.is_reached_with(proposed_ - heard_)) {
      const std::optional<Proposal> proposal = strategy_->next();
      if (!proposal) {
        return std::nullopt;
      }
      Planned planned;
      planned.trial.id = static_cast<int>(proposed_++);
      planned.trial.config = proposal->config;
      planned.trial.visit = proposal->visit;
      planned.samples = proposal->samples;
      const auto in_log = logged_.find({hash(proposal->config), proposal->visit});
      if (in_log == logged_.end()) {
        return planned;
      }
      ++found_;
      tell(planned.trial.id, *in_log->second);
    }
    return std::nullopt;
  }

  void tell(const Trial& trial) { tell(trial.id, trial); }

  std::optional<Ending> over() const {
    if (stagnation_.reached()) {
      return Ending::no_progress;
    }
    if (search_.trials > 0 && proposed_ >= search_.trials) {
      return Ending::trials_spent;
    }
    return std::nullopt;
  }

  long long found() const { return found_; }

 private:
  // How long the best has stood is counted in the order of the proposals, whichever trial ends first.
  void tell(long long place, const Trial& trial) {
    strategy_->tell(trial);
    ended_.emplace(place, trial);
    for (auto next = ended_.find(heard_); next != ended_.end(); next = ended_.find(heard_)) {
      stagnation_.hear(next->second);
      ended_.erase(next);
      ++heard_;
    }
  }

  const Search& search_;
  std::unique_ptr<Strategy> strategy_;
  std::vector<Trial> before_;
  std::map<std::pair<std::uint64_t, int>, const Trial*> logged_;  // by (config's hash, visit)
  Stagnation stagnation_;
  std::map<long long, Trial> ended_;  // before others that were proposed earlier
  long long proposed_ = 0;
  long long heard_ = 0;  // by stagnation_
  long long found_ = 0;
};

}  // namespace

Outcome run_search(const SweepConfig& config, const DeviceLimits& device, Executor& executor,
                   TrialLog& log, const RunnerOptions& options, const Predict& predict) {
  const SearchSpace space(config, device);
  SearchSource search(config, space, log, predict);

  Progress progress;
  progress.planned = planned_trials(config, space);
  for (const Trial& trial : log.trials()) {
    if (trial.kind == TrialKind::search) {
      ++progress.done;
      progress.failures += trial.verdict == Verdict::ok ? 0 : 1;
    }
  }
  const std::optional<Trial> best = best_trial(log.trials());
  progress.best = best ? &*best : nullptr;

  Source source;
  source.next = [&] { return search.next(); };
  source.tell = [&](const Trial& trial) { search.tell(trial); };
  source.over = [&] { return search.over(); };
  Outcome outcome = TrialPool(std::move(source), config.measure, executor, log, options)
                        .run(progress, config.search.seconds);
  outcome.found = search.found();
  outcome.planned = progress.planned;
  // All configs measured within the budget is a complete search.
  if (outcome.ending == Ending::trials_spent && outcome.found + outcome.ran == outcome.planned) {
    outcome.ending = Ending::complete;
  }
  return outcome;
}

Outcome run_given(const std::vector<Given>& given, int samples, const Measure& measure,
                  Executor& executor, TrialLog& log, const RunnerOptions& options) {
  std::set<std::tuple<TrialKind, std::string, std::uint64_t, int>> logged;
  for (const Trial& trial : log.trials()) {
    logged.emplace(trial.kind, trial.label, hash(trial.config), trial.visit);
  }
  std::vector<Planned> missing;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Given& each = given[i];
    if (!logged.contains({each.kind, each.label, hash(each.config), each.visit})) {
      Planned planned;
      planned.trial.id = static_cast<int>(i);
      planned.trial.kind = each.kind;
      planned.trial.label = each.label;
      planned.trial.config = each.config;
      planned.trial.visit = each.visit;
      planned.samples = samples;
      missing.push_back(std::move(planned));
    }
  }

  std::size_t position = 0;
  Source source;
  source.next = [&]() -> std::optional<Planned> {
    return position < missing.size() ? std::optional(missing[position++]) : std::nullopt;
  };
  source.tell = [](const Trial&) {};
  source.over = []() -> std::optional<Ending> { return std::nullopt; };
  Progress progress;
  progress.planned = static_cast<long long>(given.size());
  progress.done = static_cast<long long>(given.size() - missing.size());
  Outcome outcome;
  if (!missing.empty()) {
    outcome = TrialPool(std::move(source), measure, executor, log, options).run(progress, 0);
  }
  outcome.found = progress.done;
  outcome.planned = progress.planned;
  return outcome;
}

}  // namespace fusescope::sweep
