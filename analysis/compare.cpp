#include "analysis/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/findings.hpp"
#include "base/random.hpp"

namespace fusescope::analysis {
namespace {

constexpr int kResamples = 2000;
constexpr std::uint64_t kSeed = 1;

double median(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.size() % 2 == 1 ? *middle
                                : (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double resampled_median(const std::vector<double>& samples, Random& random,
                        std::vector<double>& drawn) {
  drawn.clear();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    drawn.push_back(samples[random.below(samples.size())]);
  }
  return median(drawn);
}

// The value below which `share` of the sorted values lie.
double quantile(const std::vector<double>& sorted, double share) {
  const auto at = std::lround(share * static_cast<double>(sorted.size() - 1));
  return sorted[static_cast<std::size_t>(at)];
}

Comparison::Interval bootstrap(const std::vector<double>& a, const std::vector<double>& b) {
  Random random(kSeed);
  std::vector<double> drawn;
  std::vector<double> deltas;
  for (int i = 0; i < kResamples; ++i) {
    const double of_a = resampled_median(a, random, drawn);
    deltas.push_back(of_a - resampled_median(b, random, drawn));
  }
  std::sort(deltas.begin(), deltas.end());
  return {quantile(deltas, 0.025), quantile(deltas, 0.975)};
}

double single_iteration_noise(const std::vector<double>& a, const std::vector<double>& b) {
  const double delta = median(a) - median(b);
  Random random(kSeed, 1);
  std::vector<double> away;
  for (int i = 0; i < kResamples; ++i) {
    away.push_back(std::abs(a[random.below(a.size())] - b[random.below(b.size())] - delta));
  }
  std::sort(away.begin(), away.end());
  return quantile(away, 0.95);
}

// A simulation without noise: one sample stands for all.
bool exact(const ComparedRun& run) {
  return run.provenance == timeline::Provenance::simulated && !run.samples_us.empty() &&
         std::all_of(run.samples_us.begin(), run.samples_us.end(),
                     [&](double wall) { return wall == run.samples_us.front(); });
}

bool enough(const ComparedRun& run) {
  return exact(run) || run.samples_us.size() >= kLeastSamples;
}

Change direction(double delta_us) {
  constexpr double kNanosecond = 1e-3;  // what timelines are kept in
  if (std::abs(delta_us) < kNanosecond) {
    return Change::unchanged;
  }
  return delta_us < 0 ? Change::faster : Change::slower;
}

Change beyond(double delta_us, const std::optional<double>& noise_us) {
  if (!noise_us) {
    return Change::cannot_tell;
  }
  return std::abs(delta_us) <= *noise_us && *noise_us > 0 ? Change::within_noise
                                                          : direction(delta_us);
}

void order(std::vector<Difference>& differences) {
  std::stable_sort(differences.begin(), differences.end(),
                   [](const Difference& x, const Difference& y) {
                     return std::abs(x.delta_us()) > std::abs(y.delta_us());
                   });
}

std::vector<Difference> steps_of(const Comparison& comparison) {
  std::vector<Difference> steps;
  for (std::size_t i = 0; i < kSteps; ++i) {
    const std::int64_t of_a = comparison.a.attribution.path.by_step[i];
    const std::int64_t of_b = comparison.b.attribution.path.by_step[i];
    if (of_a != 0 || of_b != 0) {
      Difference step{std::string(name(static_cast<Step>(i))), static_cast<double>(of_a) / 1e3,
                      static_cast<double>(of_b) / 1e3};
      step.change = beyond(step.delta_us(), comparison.iteration_noise_us);
      steps.push_back(std::move(step));
    }
  }
  order(steps);
  return steps;
}

// SM time per use over the number of SMs, so that the uses add up to the wall. [us]
std::array<double, kUses> mean_uses(const Attribution& attribution) {
  std::array<double, kUses> means{};
  double area = 0;
  for (const RankAccounting& rank : attribution.accounting.ranks) {
    area += static_cast<double>(rank.area_ns);
    for (std::size_t use = 0; use < kUses; ++use) {
      means[use] += static_cast<double>(rank.by_use[use]);
    }
  }
  const double scale = area > 0 ? static_cast<double>(attribution.wall_ns) / area / 1e3 : 0;
  for (double& mean : means) {
    mean *= scale;
  }
  return means;
}

std::vector<Difference> uses_of(const Comparison& comparison) {
  const std::array<double, kUses> of_a = mean_uses(comparison.a.attribution);
  const std::array<double, kUses> of_b = mean_uses(comparison.b.attribution);
  std::vector<Difference> uses;
  for (std::size_t i = 0; i < kUses; ++i) {
    if (of_a[i] != 0 || of_b[i] != 0) {
      Difference use{std::string(name(static_cast<Use>(i))), of_a[i], of_b[i]};
      use.change = beyond(use.delta_us(), comparison.iteration_noise_us);
      uses.push_back(std::move(use));
    }
  }
  order(uses);
  return uses;
}

void compare_walls(Comparison& comparison) {
  const ComparedRun& a = comparison.a;
  const ComparedRun& b = comparison.b;
  Difference& wall = comparison.wall;
  wall.name = "wall";
  // One side's median beside the other's single iteration would compare unlike things.
  const bool sampled = !a.samples_us.empty() && !b.samples_us.empty();
  wall.a_us = sampled ? median(a.samples_us) : static_cast<double>(a.attribution.wall_ns) / 1e3;
  wall.b_us = sampled ? median(b.samples_us) : static_cast<double>(b.attribution.wall_ns) / 1e3;
  if (!sampled || !enough(a) || !enough(b)) {
    wall.change = Change::cannot_tell;
    return;
  }
  comparison.iteration_noise_us = single_iteration_noise(a.samples_us, b.samples_us);
  if (exact(a) && exact(b)) {
    wall.change = direction(wall.delta_us());
    return;
  }
  comparison.interval = bootstrap(a.samples_us, b.samples_us);
  const bool holds_zero = comparison.interval->low_us <= 0 && comparison.interval->high_us >= 0;
  wall.change = holds_zero ? Change::within_noise : direction(wall.delta_us());
}

std::string signed_us(double us) {
  return fmt::format("{:+.1f} us", us);
}

std::string headline_of(const Comparison& comparison) {
  const Difference& wall = comparison.wall;
  const double share = wall.b_us > 0 ? wall.delta_us() / wall.b_us : 0;
  std::string text =
      fmt::format("{} takes {:.1f} us, {} {:.1f} us: {} ({:+.1f}%), ", comparison.a.name, wall.a_us,
                  comparison.b.name, wall.b_us, signed_us(wall.delta_us()), share * 100);
  switch (wall.change) {
    case Change::cannot_tell:
      text += "and whether that is beyond noise cannot be told";
      break;
    case Change::within_noise:
      text += "within noise";
      break;
    default:
      text += comparison.interval ? "beyond noise" : "by simulations without noise";
  }
  if (comparison.interval) {
    text += fmt::format(" (95% interval {:+.1f} to {:+.1f} us)", comparison.interval->low_us,
                        comparison.interval->high_us);
  }
  text += ".";
  std::string moved;
  for (const Difference& step : comparison.steps) {
    if (step.change == Change::faster || step.change == Change::slower) {
      moved += fmt::format("{}{} {}", moved.empty() ? " The steps that moved most: " : ", ",
                           step.name, signed_us(step.delta_us()));
      if (std::count(moved.begin(), moved.end(), ',') == 2) {
        break;
      }
    }
  }
  return text + moved + (moved.empty() ? "" : ".");
}

void warn(const ComparedRun& run, std::vector<std::string>& caveats) {
  if (!run.attribution.refusal.empty()) {
    caveats.push_back(run.name + " is not attributed: " + run.attribution.refusal);
  } else if (run.attribution.wall_ns == 0) {
    caveats.push_back(run.name + " recorded no timeline, so its steps are not known");
  }
  if (!enough(run)) {
    caveats.push_back(
        run.samples_us.empty()
            ? run.name + " comes without samples of the wall, so noise is not known"
            : fmt::format("{} has {} samples of the wall, too few for an interval ({} are needed)",
                          run.name, run.samples_us.size(), kLeastSamples));
  }
  constexpr double kNoticeable = 0.01;
  if (std::abs(run.recording_cost) > kNoticeable) {
    caveats.push_back(fmt::format("iterations of {} that were recorded take {:+.1f}%", run.name,
                                  run.recording_cost * 100));
  }
}

std::vector<std::string> caveats_of(const Comparison& comparison) {
  const ComparedRun& a = comparison.a;
  const ComparedRun& b = comparison.b;
  std::vector<std::string> caveats;
  if (const std::string why = unlike(a, b); !why.empty()) {
    caveats.push_back("the problems are not the same: " + why);
  }
  if (a.provenance != b.provenance) {
    caveats.push_back(
        fmt::format("{} is {} and {} is {}, so differences are the model's errors too", a.name,
                    timeline::name(a.provenance), b.name, timeline::name(b.provenance)));
  } else if (a.device != b.device) {
    caveats.push_back(fmt::format("the devices differ: {} against {}", a.device, b.device));
  }
  if (!a.sampling.empty() && !b.sampling.empty() && a.sampling != b.sampling) {
    caveats.push_back(fmt::format(
        "{} was measured with {}, {} with {}: at its power limit a GPU clocks lower, so "
        "differences are those of the load too",
        a.name, a.sampling, b.name, b.sampling));
  }
  warn(a, caveats);
  warn(b, caveats);
  if (!comparison.steps.empty() && comparison.iteration_noise_us.value_or(0) > 0) {
    caveats.push_back(fmt::format(
        "steps and SM time come from one iteration of each run; their changes count beyond {:.1f} "
        "us, by which 95% of pairs of single iterations stray from the medians' difference",
        *comparison.iteration_noise_us));
  }
  return caveats;
}

}  // namespace

std::string_view name(Change change) {
  static constexpr std::array<std::string_view, 5> kNames = {"faster", "slower", "unchanged",
                                                             "within noise", "cannot tell"};
  return kNames[static_cast<std::size_t>(change)];
}

std::string unlike(const ComparedRun& a, const ComparedRun& b) {
  if (a.problem == b.problem) {
    return {};
  }
  // "seed-tp4 (R=4 ...), zipf:1.2 seed 1": the shape ends with the parenthesis.
  const auto shape = [](const std::string& problem) {
    return problem.substr(0, problem.find("), "));
  };
  const bool same_shape = shape(a.problem) == shape(b.problem);
  const auto part = [&](const std::string& problem) {
    const std::size_t end = problem.find("), ");
    return same_shape && end != std::string::npos ? problem.substr(end + 3) : problem;
  };
  return fmt::format("the {} differ: {} against {}", same_shape ? "routings" : "shapes",
                     part(a.problem), part(b.problem));
}

Comparison compare(ComparedRun a, ComparedRun b) {
  Comparison comparison;
  comparison.a = std::move(a);
  comparison.b = std::move(b);
  compare_walls(comparison);
  if (comparison.a.attribution.wall_ns > 0 && comparison.b.attribution.wall_ns > 0) {
    comparison.steps = steps_of(comparison);
    comparison.uses = uses_of(comparison);
  }
  comparison.headline = headline_of(comparison);
  comparison.caveats = caveats_of(comparison);
  return comparison;
}

}  // namespace fusescope::analysis
