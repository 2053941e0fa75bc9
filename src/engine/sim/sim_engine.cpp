#include "engine/sim/sim_engine.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/version.hpp"
#include "engine/sim/costs.hpp"
#include "engine/sim/simulate.hpp"

namespace fusescope::engine::sim {
namespace {

Sample sample_of(const Iteration& iteration) {
  Sample sample;
  for (const Time wall : iteration.rank_wall) {
    sample.rank_wall_us.push_back(static_cast<double>(wall) / 1e3);
  }
  sample.wall_us = *std::max_element(sample.rank_wall_us.begin(), sample.rank_wall_us.end());
  return sample;
}

// Half of the median's 95% interval, by order statistics, relative to the median.
double relative_half_interval(const std::vector<Sample>& samples) {
  std::vector<double> walls;
  walls.reserve(samples.size());
  for (const Sample& sample : samples) {
    walls.push_back(sample.wall_us);
  }
  std::sort(walls.begin(), walls.end());
  const double count = static_cast<double>(walls.size());
  const double reach = 0.98 * std::sqrt(count);
  const auto at = [&](double place) {
    return walls[static_cast<std::size_t>(std::clamp(place, 0.0, count - 1))];
  };
  const double middle = (count - 1) / 2;
  return (at(std::ceil(middle + reach)) - at(std::floor(middle - reach))) / 2 / at(middle);
}

void stamp(timeline::Timeline& timeline, const RunRequest& request, const Profile& profile) {
  timeline::Meta& meta = timeline.meta;
  meta.provenance = timeline::Provenance::simulated;
  meta.device = profile.name;
  meta.sms = static_cast<int>(profile.sms);
  meta.serial = request.config.form == LayerForm::serial;
  meta.programmatic = !meta.serial && request.config.launch == LaunchOrder::programmatic;
  meta.problem = describe(*request.problem);
  meta.config = describe(request.config);
  meta.command = request.command;
  meta.commit = commit();
  meta.chosen = profile.jitter > 0 ? "first sample of seed " + std::to_string(request.seed)
                                   : "the only one: the simulation has no noise";
}

// Over every number: a log made on one profile does not resume on another.
std::uint64_t hash(const Profile& profile) {
  StableHash state;
  for (const ProfileNumber& number : profile_numbers()) {
    state.add(std::bit_cast<std::uint64_t>(profile.*number.member));
  }
  return state.value();
}

}  // namespace

SimEngine::SimEngine(Profile profile)
    : profile_(std::move(profile)), device_(limits_of(profile_)) {}

std::string SimEngine::identity() const {
  return "sim " + profile_.name + " profile " + std::to_string(hash(profile_));
}

int SimEngine::parallel_runs() const {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

RunResult SimEngine::run(const RunRequest& request) {
  const Problem& problem = *request.problem;
  if (const std::string why = why_illegal(problem, request.config, device_); !why.empty()) {
    throw InputError({"", "config", why, "a config that this device can run"});
  }

  RunResult result;
  result.provenance = timeline::Provenance::simulated;
  result.source = "simulated on " + profile_.name;
  const std::vector<ScheduleTables> tables = tables_for(problem, request.config);
  const auto begin = std::chrono::steady_clock::now();
  const auto out_of_time = [&] {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    return spent.count() > request.max_seconds;
  };
  bool more = true;
  for (std::uint64_t index = 0; more; ++index) {
    const bool record = request.timeline && index == 0;
    const std::uint64_t seed = request.seed * 0x9E3779B97F4A7C15ULL + index;
    Iteration iteration = simulate(problem, request.config, profile_, tables, seed, record);
    result.samples.push_back(sample_of(iteration));
    if (record) {
      stamp(*iteration.timeline, request, profile_);
      result.timeline = std::move(iteration.timeline);
    }
    const bool enough = static_cast<int>(result.samples.size()) >= request.min_samples &&
                        relative_half_interval(result.samples) <= request.target_rel_ci;
    more = profile_.jitter > 0 && !enough && !out_of_time();
  }
  if (request.rung_rounds > 0) {
    result.rungs = sample_rungs(request);
  }
  return result;
}

// A simulation without noise says the same in every round.
std::vector<RungSamples> SimEngine::sample_rungs(const RunRequest& request) const {
  if (const std::string why = why_no_rungs(request.config); !why.empty()) {
    throw InputError({"", "rungs", why, "form fused, study full, inject none"});
  }
  const int rounds = profile_.jitter > 0 ? request.rung_rounds : 1;
  std::vector<RungSamples> rungs;
  for (const Study study : kRungs) {
    Config config = request.config;
    config.study = study;
    const std::vector<ScheduleTables> tables = tables_for(*request.problem, config);
    RungSamples rung{study, {}};
    for (int round = 0; round < rounds; ++round) {
      const std::uint64_t seed =
          request.seed * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(round);
      const Iteration iteration = simulate(*request.problem, config, profile_, tables, seed, false);
      rung.wall_us.push_back({sample_of(iteration).wall_us});
    }
    rungs.push_back(std::move(rung));
  }
  return rungs;
}

std::unique_ptr<Engine> make_sim_engine(const std::string& profile) {
  return std::make_unique<SimEngine>(load_profile(profile));
}

}  // namespace fusescope::engine::sim
