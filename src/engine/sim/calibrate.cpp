#include "engine/sim/calibrate.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/suggest.hpp"
#include "engine/sim/nelder_mead.hpp"
#include "engine/sim/simulate.hpp"

namespace fusescope::engine::sim {
namespace {

constexpr std::size_t kLeastObservations = 8;
constexpr double kProbe = 0.1;        // relative change of a number that probes what it moves
constexpr double kLeastMove = 0.005;  // below: a number 10% off moves walls by less than 0.05%
constexpr double kLeastOwn =
    0.25;  // of what a number moves, the part that no fitted one moves alike

const ProfileNumber& number_named(const std::string& key) {
  const std::vector<ProfileNumber>& numbers = profile_numbers();
  const auto found = std::find_if(numbers.begin(), numbers.end(),
                                  [&](const ProfileNumber& each) { return each.key == key; });
  if (found == numbers.end()) {
    std::vector<std::string> known;
    for (const ProfileNumber& each : numbers) {
      known.emplace_back(each.key);
    }
    const std::string nearest = nearest_name(key, known);
    throw InputError({"--numbers", key,
                      "is not a number of a profile" +
                          (nearest.empty() ? "" : ", did you mean \"" + nearest + "\"?"),
                      spoken_list(known)});
  }
  return *found;
}

// The walls of all observations on a profile. On all cores.
std::vector<double> predict(const Problem& problem, const Profile& profile,
                            const std::vector<Observation>& observations) {
  std::vector<double> walls(observations.size());
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
      threads.emplace_back([&] {
        for (std::size_t at = next++; at < observations.size(); at = next++) {
          const Config& config = observations[at].config;
          const Iteration iteration =
              simulate(problem, config, profile, tables_for(problem, config), 1, false);
          walls[at] = static_cast<double>(*std::max_element(iteration.rank_wall.begin(),
                                                            iteration.rank_wall.end())) /
                      1e3;
        }
      });
    }
  }
  return walls;
}

std::vector<double> logs(std::vector<double> values) {
  for (double& value : values) {
    value = std::log(value);
  }
  return values;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double rms(const std::vector<double>& values) {
  return std::sqrt(dot(values, values) / static_cast<double>(values.size()));
}

// What a number moves: d log(wall) / d log(number) of each observation.
struct Sensitivity {
  const ProfileNumber* number = nullptr;
  double whole = 0;         // r.m.s.
  std::vector<double> own;  // what is left of it beside the numbers chosen so far
};

std::vector<Sensitivity> sensitivities(const Problem& problem, const Profile& base,
                                       const std::vector<Observation>& observations,
                                       const std::vector<std::string>& keys) {
  const std::vector<double> present = logs(predict(problem, base, observations));
  std::vector<Sensitivity> all;
  for (const std::string& key : keys) {
    Sensitivity each;
    each.number = &number_named(key);
    Profile moved = base;
    double& value = moved.*each.number->member;
    value = value * (1 + kProbe) <= each.number->most ? value * (1 + kProbe) : value / (1 + kProbe);
    const double change = std::log(value / (base.*each.number->member));
    each.own.assign(observations.size(), 0);
    if (std::isfinite(change) && change != 0) {
      const std::vector<double> walls = logs(predict(problem, moved, observations));
      for (std::size_t i = 0; i < walls.size(); ++i) {
        each.own[i] = (walls[i] - present[i]) / change;
      }
    }
    each.whole = rms(each.own);
    all.push_back(std::move(each));
  }
  return all;
}

// The numbers that move most beside each other, one after the other; `all` keeps the rest.
std::vector<Sensitivity> choose(std::vector<Sensitivity>& all, std::size_t most) {
  std::vector<Sensitivity> chosen;
  while (chosen.size() < most && !all.empty()) {
    const auto best = std::max_element(
        all.begin(), all.end(),
        [](const Sensitivity& a, const Sensitivity& b) { return rms(a.own) < rms(b.own); });
    if (rms(best->own) < kLeastMove) {
      break;
    }
    const bool enough_own = rms(best->own) >= kLeastOwn * best->whole;
    Sensitivity taken = std::move(*best);
    all.erase(best);
    if (!enough_own) {
      taken.own.assign(taken.own.size(), 0);  // never comes up again
      all.push_back(std::move(taken));
      continue;
    }
    const double square = dot(taken.own, taken.own);
    for (Sensitivity& each : all) {
      const double share = dot(each.own, taken.own) / square;
      for (std::size_t i = 0; i < each.own.size(); ++i) {
        each.own[i] -= share * taken.own[i];
      }
    }
    chosen.push_back(std::move(taken));
  }
  return chosen;
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> of(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) {
      ++end;
    }
    for (std::size_t i = begin; i < end; ++i) {
      of[order[i]] = static_cast<double>(begin + end - 1) / 2;
    }
    begin = end;
  }
  return of;
}

void shuffle(std::vector<Observation>& observations, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t i = observations.size(); i > 1; --i) {
    std::swap(observations[i - 1], observations[random.below(i)]);
  }
}

// The profile with its numbers at e^x times the base's; false where one is out of range.
bool apply(const std::vector<Sensitivity>& chosen, const Profile& base,
           const std::vector<double>& x, Profile& profile) {
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const ProfileNumber& number = *chosen[i].number;
    const double value = base.*number.member * std::exp(x[i]);
    if (value < number.least || value > number.most) {
      return false;
    }
    profile.*number.member = value;
  }
  return true;
}

// Without those that were measured by themselves or stand in a datasheet: a fit would bend them to hide what
// the model leaves out.
std::vector<std::string> unmeasured(const std::vector<std::string>& keys, const Profile& base) {
  const std::vector<ProfileNumber>& numbers = profile_numbers();
  std::vector<std::string> left;
  for (const std::string& key : keys) {
    const auto place = static_cast<std::size_t>(&number_named(key) - numbers.data());
    const NumberProvenance origin =
        place < base.origins.size() ? base.origins[place].provenance : NumberProvenance::assumed;
    if (origin == NumberProvenance::assumed || origin == NumberProvenance::fitted) {
      left.push_back(key);
    }
  }
  return left;
}

void record(const std::vector<Sensitivity>& chosen, const Profile& base, Calibration& result) {
  const std::vector<ProfileNumber>& numbers = profile_numbers();
  for (const Sensitivity& each : chosen) {
    const ProfileNumber& number = *each.number;
    result.fitted.push_back(
        {number.key, base.*number.member, result.profile.*number.member, each.whole});
    const auto place = static_cast<std::size_t>(each.number - numbers.data());
    if (place < result.profile.origins.size()) {
      result.profile.origins[place].provenance = NumberProvenance::fitted;
    }
  }
}

}  // namespace

const std::vector<std::string>& calibrated_numbers() {
  static const std::vector<std::string> kNumbers = {
      "gemm_m128n256",  "tile_epilogue", "dram_gemm_fraction", "dram_gather_fraction",
      "sm_pull_remote", "sm_store",      "sm_job_read",        "sm_push",
      "pull_latency",   "store_latency", "claim_latency",      "job_latency",
      "block_launch",   "link_pull",     "link_push",          "schedule_device"};
  return kNumbers;
}

double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> of_a = ranks(a);
  std::vector<double> of_b = ranks(b);
  const double middle = (static_cast<double>(a.size()) - 1) / 2;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    of_a[i] -= middle;
    of_b[i] -= middle;
  }
  const double scale = std::sqrt(dot(of_a, of_a) * dot(of_b, of_b));
  return scale > 0 ? dot(of_a, of_b) / scale : 0;
}

FitQuality judge(const Problem& problem, const Profile& profile,
                 const std::vector<Observation>& observations) {
  FitQuality quality;
  quality.configs = observations.size();
  if (observations.empty()) {
    return quality;
  }
  const std::vector<double> predicted = predict(problem, profile, observations);
  std::vector<double> observed;
  std::vector<double> errors;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    observed.push_back(observations[i].wall_us);
    errors.push_back(std::abs(predicted[i] / observed[i] - 1));
  }
  quality.rank_correlation = spearman(predicted, observed);
  std::sort(errors.begin(), errors.end());
  quality.median_error = (errors[errors.size() / 2] + errors[(errors.size() - 1) / 2]) / 2;
  quality.worst_error = errors.back();
  return quality;
}

Calibration calibrate(const Problem& problem, const Profile& base,
                      std::vector<Observation> observations, const CalibrateOptions& options) {
  if (observations.size() < kLeastObservations) {
    throw InputError({"", "", std::to_string(observations.size()) + " configs can be calibrated on",
                      std::to_string(kLeastObservations) + " or more"});
  }
  shuffle(observations, options.seed);
  const auto half = static_cast<std::ptrdiff_t>(observations.size() / 2);
  const std::vector<Observation> judged(observations.begin() + half, observations.end());
  observations.resize(static_cast<std::size_t>(half));

  Calibration result;
  result.profile = base;
  result.training = observations.size();
  observations.resize(std::min(observations.size(), std::max<std::size_t>(options.fit_configs, 2)));
  result.fitted_on = observations.size();

  const std::vector<std::string> keys =
      options.numbers.empty() ? unmeasured(calibrated_numbers(), base) : options.numbers;
  std::vector<Sensitivity> rest = sensitivities(problem, base, observations, keys);
  const std::vector<Sensitivity> chosen = choose(rest, options.most_numbers);
  for (const Sensitivity& each : rest) {
    result.undetermined.emplace_back(each.number->key);
  }
  const auto mean_error = [&](const std::vector<double>& x) {
    Profile trial = base;
    if (!apply(chosen, base, x, trial)) {
      return std::numeric_limits<double>::infinity();
    }
    const std::vector<double> walls = predict(problem, trial, observations);
    double sum = 0;
    for (std::size_t i = 0; i < walls.size(); ++i) {
      sum += std::abs(std::log(walls[i] / observations[i].wall_us));
    }
    return sum / static_cast<double>(walls.size());
  };
  constexpr double kStep = 0.15;
  constexpr double kTolerance = 1e-5;
  // A second simplex from where the first one ended: the first may have collapsed on its way.
  const std::vector<double> origin(chosen.size(), 0);
  const int first = options.evaluations * 2 / 3;
  Minimum minimum = minimise(mean_error, origin, kStep, kTolerance, first);
  const Minimum again =
      minimise(mean_error, minimum.at, -kStep / 2, kTolerance, options.evaluations - first);
  result.evaluations = minimum.evaluations + again.evaluations;
  if (again.value < minimum.value) {
    minimum.at = again.at;
  }
  apply(chosen, base, minimum.at, result.profile);
  record(chosen, base, result);
  result.before = judge(problem, base, judged);
  result.after = judge(problem, result.profile, judged);
  return result;
}

}  // namespace fusescope::engine::sim
