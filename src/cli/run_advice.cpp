#include "cli/run_advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>

#include "base/error.hpp"
#include "cli/files.hpp"
#include "cli/run_config_text.hpp"
#include "cli/run_folder.hpp"
#include "cli/sweep_folder.hpp"
#include "cli/text.hpp"
#include "engine/engine.hpp"
#include "engine/sim/profile.hpp"
#include "layer/gemm_path.hpp"
#include "sweep/results.hpp"

namespace fusescope::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kModelNoise = 0.001;  // of the wall: no model is more exact

// The problem that describe() wrote, made again; nothing where the text alone cannot say it (routing from a
// file, a routing that has changed since).
std::optional<Problem> parse_problem(const std::string& text) {
  Shape shape;
  const std::size_t open = text.find(" (R=");
  const std::size_t close = text.find("), ");
  if (open == std::string::npos || close == std::string::npos ||
      std::sscanf(text.c_str() + open, " (R=%d T=%d H=%d E=%d K=%d I=%d)", &shape.ranks,
                  &shape.tokens_per_rank, &shape.hidden, &shape.experts, &shape.topk,
                  &shape.intermediate) != 6) {
    return std::nullopt;
  }
  shape.name = text.substr(0, open);
  std::string routing = text.substr(close + 3);
  constexpr std::string_view kSeed = " seed ";
  if (const std::size_t seed = routing.find(kSeed); seed != std::string::npos) {
    routing = fmt::format("{}@{}", routing.substr(0, seed), routing.substr(seed + kSeed.size()));
  }
  try {
    validate(shape, "timeline");
    Problem problem = make_problem(shape, parse_routing(routing));
    return describe(problem) == text ? std::optional(std::move(problem)) : std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// The trials of a sweep that is about this problem, one per config.
struct MeasuredTrials {
  std::vector<sweep::Trial> trials;
  DeviceLimits device;

  const sweep::Trial* find(const Config& config) const {
    // What is chosen by the device may be spelled out in one of the two.
    const Config wanted = with_gemm_chosen(config, device);
    const auto found = std::find_if(trials.begin(), trials.end(), [&](const sweep::Trial& trial) {
      return trial.verdict == sweep::Verdict::ok &&
             with_gemm_chosen(trial.config, device) == wanted;
    });
    return found == trials.end() ? nullptr : &*found;
  }
};

// How the run whose timeline this is was measured; "" where it is not known.
std::string sampling_of(const std::string& timeline_file) {
  const fs::path file(timeline_file);
  const std::string folder = file.parent_path().string();
  return file.filename() == kTimelineFile && holds_run(folder) ? read_run(folder).sampling() : "";
}

MeasuredTrials trials_of(const AdviceRequest& request, const timeline::Meta& meta,
                         analysis::Advice& advice) {
  std::string folder = request.sweep;
  if (folder.empty()) {
    const fs::path own = fs::path(request.timeline_file).parent_path();
    for (const fs::path& each : {own, own / ".."}) {
      if (folder.empty() && !each.empty() && holds_sweep(each.string())) {
        folder = each.string();
      }
    }
  }
  if (folder.empty()) {
    advice.notes.push_back("no sweep is at hand (--sweep), so nothing is measured");
    return {};
  }
  const sweep::LogContents log = sweep::read_trial_log(joined(folder, kTrialsFile));
  const bool simulated = log.header.engine == "sim";
  if (log.header.problem != meta.problem) {
    advice.notes.push_back(
        fmt::format("the sweep in {} is about another problem, {}, and is left out", folder,
                    log.header.problem));
    return {};
  }
  if (simulated) {
    advice.notes.push_back(
        fmt::format("the sweep in {} is simulated, so nothing is measured", folder));
    return {};
  }
  const std::string sampling = engine::describe_rest(rest_ms(log.header));
  if (const std::string own = sampling_of(request.timeline_file); !own.empty() && own != sampling) {
    advice.notes.push_back(fmt::format("the sweep in {} was measured with {}, this run with {}",
                                       folder, sampling, own));
  }
  return {sweep::latest(log.trials), log.header.limits};
}

class Simulator {
 public:
  Simulator(const std::string& profile, Problem problem)
      : engine_(engine::make_engine({"sim", profile, {}})), problem_(std::move(problem)) {}

  // Nothing where the simulator does not model the config.
  std::optional<double> wall_us(const Config& config) {
    if (!why_illegal(problem_, config, engine_->device()).empty()) {
      return std::nullopt;
    }
    engine::RunRequest request;
    request.problem = &problem_;
    request.config = config;
    request.warmup = 0;
    request.min_samples = 1;
    request.target_rel_ci = std::numeric_limits<double>::infinity();
    return engine_->run(request).samples.front().wall_us;
  }

 private:
  std::unique_ptr<engine::Engine> engine_;
  Problem problem_;
};

std::string profile_for(const AdviceRequest& request, const timeline::Meta& meta) {
  if (!request.profile.empty()) {
    return request.profile;
  }
  if (meta.provenance == timeline::Provenance::measured) {
    return meta.device.find("H200") != std::string::npos ? "h200-nvlink" : "";
  }
  const std::vector<std::string> known = engine::sim::list_profiles();
  return std::find(known.begin(), known.end(), meta.device) == known.end() ? "" : meta.device;
}

// Asks the simulator for the run's own config first: without its wall no difference can be told.
analysis::AskEffect simulated_effects(const AdviceRequest& request, const timeline::Meta& meta,
                                      const Config& config, analysis::Advice& advice) {
  const std::string profile = profile_for(request, meta);
  if (profile.empty()) {
    advice.notes.push_back(fmt::format(
        "no device profile is known for {} (--profile), so nothing is simulated", meta.device));
    return {};
  }
  std::optional<Problem> problem = parse_problem(meta.problem);
  if (!problem) {
    advice.notes.push_back(
        "the problem cannot be made again from its name, so nothing is simulated");
    return {};
  }
  const auto simulator = std::make_shared<Simulator>(profile, std::move(*problem));
  const std::optional<double> own = simulator->wall_us(config);
  if (!own) {
    advice.notes.push_back(fmt::format(
        "the simulator does not model this config on {}, so nothing is simulated", profile));
    return {};
  }
  advice.profile = profile;
  return [simulator, own](const Config& neighbour) -> std::optional<analysis::Effect> {
    const std::optional<double> wall = simulator->wall_us(neighbour);
    return wall ? std::optional(analysis::Effect{*wall - *own, 0}) : std::nullopt;
  };
}

}  // namespace

analysis::Advice advise_run(const AdviceRequest& request, const timeline::Timeline& timeline,
                            const analysis::Attribution& attribution) {
  const timeline::Meta& meta = timeline.meta;
  analysis::Advice asked;
  Config config;
  try {
    config = parse_config(meta.config);
  } catch (const InputError& error) {
    asked.notes.push_back(std::string("the config cannot be read back: ") + error.what());
    return asked;
  }
  double noise = kModelNoise * static_cast<double>(timeline.wall_ns()) / 1e3;
  const std::string folder = fs::path(request.timeline_file).parent_path().string();
  if (fs::path(request.timeline_file).filename() == kTimelineFile && holds_run(folder)) {
    noise = std::max(noise, read_run(folder).half_ci_us);
  }
  const MeasuredTrials stored = trials_of(request, meta, asked);
  const sweep::Trial* own = stored.find(config);
  if (!stored.trials.empty() && own == nullptr) {
    asked.notes.push_back(
        "the sweep did not measure this run's config, so no neighbour compares with it");
  }
  const analysis::AskEffect measured =
      [&stored, own](const Config& neighbour) -> std::optional<analysis::Effect> {
    const sweep::Trial* trial = own == nullptr ? nullptr : stored.find(neighbour);
    if (trial == nullptr) {
      return std::nullopt;
    }
    const sweep::Wall there = sweep::wall_beside(*trial, *own);
    const sweep::Wall here = sweep::wall_beside(*own, *trial);
    return analysis::Effect{there.median_us - here.median_us,
                            std::hypot(there.half_ci_us, here.half_ci_us)};
  };
  const analysis::AskEffect simulated = simulated_effects(request, meta, config, asked);
  analysis::Advice advice = analysis::advise(analysis::candidates(timeline, attribution, config),
                                             noise, measured, simulated);
  advice.profile = asked.profile;
  advice.notes = asked.notes;
  return advice;
}

std::string advice_text(const analysis::Advice& advice) {
  std::string text = "\nSuggestions";
  if (!advice.profile.empty()) {
    text += fmt::format(" (predictions are simulated on {})", advice.profile);
  }
  text += ":\n";
  const bool asked = !advice.profile.empty() || !advice.refuted.empty();
  if (advice.ranked.empty()) {
    text += asked ? fmt::format(
                        "  none: no change of one knob promises more than the noise, {:.1f} us\n",
                        advice.noise_us)
                  : "  none: what a change would do could neither be simulated nor measured\n";
  }
  int place = 0;
  for (const analysis::Suggestion& each : advice.ranked) {
    text += fmt::format("{:>3}. {}\n", ++place, wrapped(analysis::sentence(each), 5));
  }
  if (!advice.refuted.empty()) {
    text += "\nTried, and not better:\n";
    for (const analysis::Suggestion& each : advice.refuted) {
      text += fmt::format("  - {}\n", wrapped(analysis::sentence(each), 4));
    }
  }
  for (const std::string& note : advice.notes) {
    text += fmt::format("\n{}\n", wrapped("Note: " + note, 4));
  }
  return text;
}

}  // namespace fusescope::cli
