#include "sweep/replay.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "sweep/knob_json.hpp"
#include "sweep/results.hpp"
#include "sweep/shuffle.hpp"
#include "sweep/statistics.hpp"

namespace fusescope::sweep {
namespace {

double seconds_of(const std::vector<double>& walls_us) {
  return std::accumulate(walls_us.begin(), walls_us.end(), 0.0) / 1e6;
}

// The samples of one config, drawn in an order of the seed's; from the start again once all are drawn.
class Deck {
 public:
  Deck(std::vector<double> walls, std::uint64_t seed, std::uint64_t config)
      : walls_(std::move(walls)) {
    Random random(seed, config);
    shuffle(walls_, random);
  }
  std::vector<double> draw(std::size_t count) {
    std::vector<double> drawn;
    for (std::size_t i = 0; i < count; ++i) {
      drawn.push_back(walls_[next_++ % walls_.size()]);
    }
    return drawn;
  }
  std::size_t size() const { return walls_.size(); }

 private:
  std::vector<double> walls_;
  std::size_t next_ = 0;
};

// What a strategy has found so far, by its own samples.
class Findings {
 public:
  void add(std::uint64_t config, const std::vector<double>& walls) {
    std::vector<double>& all = walls_[config];
    all.insert(all.end(), walls.begin(), walls.end());
    medians_[config] = median(all);
  }
  std::uint64_t best() const {
    return std::min_element(medians_.begin(), medians_.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }
  bool empty() const { return medians_.empty(); }
  int configs() const { return static_cast<int>(medians_.size()); }

 private:
  std::map<std::uint64_t, std::vector<double>> walls_;
  std::map<std::uint64_t, double> medians_;
};

}  // namespace

StoredSamples::StoredSamples(const LogContents& log, const SweepConfig& config)
    : config_(&config), device_(log.header.limits), rest_seconds_(rest_ms(log.header) / 1e3) {
  std::vector<Trial> searched;
  std::copy_if(log.trials.begin(), log.trials.end(), std::back_inserter(searched),
               [](const Trial& trial) { return trial.kind == TrialKind::search; });
  best_us_ = std::numeric_limits<double>::infinity();
  for (Trial& result : latest(searched)) {
    Stored stored;
    const double sampled = result.verdict == Verdict::ok ? seconds_of(result.wall_us) : 0;
    const bool simulated = result.source.starts_with("simulated");
    const double rested =
        sampled > 0 ? rest_seconds_ * static_cast<double>(result.wall_us.size()) : 0;
    stored.setup_seconds = simulated ? config.measure.warmup * result.median_us / 1e6
                                     : std::max(0.0, result.seconds - sampled - rested);
    seconds_ += stored.setup_seconds + sampled + rested;
    sample_seconds_ += sampled;
    if (result.verdict == Verdict::ok) {
      best_us_ = std::min(best_us_, result.median_us);
    }
    stored.result = std::move(result);
    stored_.emplace(hash(stored.result.config), std::move(stored));
  }
  if (best_us_ == std::numeric_limits<double>::infinity()) {
    throw InputError({config.file, "", "the log holds no config that ran", "a sweep that ended"});
  }
  refuse_another_space();
}

// A log that knows none of the space's configs would answer every question with a failure.
void StoredSamples::refuse_another_space() const {
  const SearchSpace space(*config_, device_);
  const std::vector<long long> indices = space.allowed_indices();
  if (std::any_of(indices.begin(), indices.end(),
                  [&](long long index) { return stored_.count(hash(space.at(index))) > 0; })) {
    return;
  }
  std::string fault =
      "none of its " + std::to_string(indices.size()) + " configs is in the log beside it";
  const OrderedJson log = to_json(stored_.begin()->second.result.config);
  const OrderedJson base = to_json(config_->base);
  for (const auto& knob : base.items()) {
    const bool turns = std::any_of(config_->axes.begin(), config_->axes.end(),
                                   [&](const Axis& axis) { return axis.knob == knob.key(); });
    if (!turns && log.at(knob.key()) != knob.value()) {
      fault += "; " + knob.key() + " is " + knob.value().dump() + ", in the log " +
               log.at(knob.key()).dump();
    }
  }
  throw InputError({config_->file, "/base", fault, "the sweep that the log is of"});
}

int StoredSamples::within(double goal) const {
  return static_cast<int>(std::count_if(stored_.begin(), stored_.end(), [&](const auto& each) {
    return each.second.result.verdict == Verdict::ok &&
           each.second.result.median_us <= best_us_ * (1 + goal);
  }));
}

ReplayRun StoredSamples::replay(Search search, std::uint64_t seed, double goal,
                                const Predict& predict) const {
  SweepConfig config = *config_;
  search.seed = seed;
  config.search = search;
  const SearchSpace space(config, device_);
  const std::unique_ptr<Strategy> strategy = make_strategy(config, space, predict);
  std::map<std::uint64_t, Deck> decks;
  Findings findings;
  ReplayRun run;
  while (const std::optional<Proposal> proposal = strategy->next()) {
    Trial trial;
    trial.config = proposal->config;
    trial.visit = proposal->visit;
    const std::uint64_t key = hash(proposal->config);
    const auto found = stored_.find(key);
    if (found == stored_.end() || found->second.result.verdict != Verdict::ok) {
      trial.verdict = found == stored_.end() ? Verdict::illegal : found->second.result.verdict;
      run.time += found == stored_.end() ? 0 : found->second.setup_seconds;
      strategy->tell(trial);
      continue;
    }
    const Stored& stored = found->second;
    Deck& deck = decks.try_emplace(key, stored.result.wall_us, seed, key).first->second;
    // No more than there are, but for a noiseless simulation: there one is as good as many.
    const std::size_t asked = proposal->samples > 0 ? static_cast<std::size_t>(proposal->samples)
                                                    : stored.result.wall_us.size();
    trial.wall_us = deck.draw(std::min(asked, deck.size()));
    set_medians(trial);
    const double sampled = seconds_of(trial.wall_us);
    run.samples += sampled;
    run.time +=
        stored.setup_seconds + sampled + rest_seconds_ * static_cast<double>(trial.wall_us.size());
    ++run.measurements;
    findings.add(key, trial.wall_us);
    strategy->tell(trial);
    run.gap = stored_.at(findings.best()).result.median_us / best_us_ - 1;
    if (!run.reached && run.gap <= goal) {
      run.reached = true;
      run.time_to_reach = run.time / seconds_;
      run.samples_to_reach = run.samples / sample_seconds_;
    }
  }
  run.time /= seconds_;
  run.samples /= sample_seconds_;
  run.configs = findings.configs();
  return run;
}

ReplayResult replay_strategy(const StoredSamples& stored, SearchKind kind,
                             const ReplayOptions& options, const Predict& predict) {
  Search search = stored.config().search;
  search.kind = kind;
  ReplayResult result{std::string(name(kind)), {}};
  for (int seed = 1; seed <= options.seeds; ++seed) {
    result.runs.push_back(
        stored.replay(search, static_cast<std::uint64_t>(seed), options.goal, predict));
  }
  return result;
}

}  // namespace fusescope::sweep
