// fusescope calibrate: the simulator's device profile, fitted to what a sweep measured, and how well it then
// predicts the configs that it was not fitted to.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "analysis/summary.hpp"
#include "base/error.hpp"
#include "cli/command.hpp"
#include "cli/files.hpp"
#include "cli/run_config_text.hpp"
#include "cli/run_folder.hpp"
#include "cli/sweep_folder.hpp"
#include "cli/text.hpp"
#include "engine/sim/calibrate.hpp"
#include "engine/sim/sim_engine.hpp"
#include "sweep/results.hpp"

namespace fusescope::cli {
namespace {

namespace sim = engine::sim;
using OrderedJson = nlohmann::ordered_json;

struct CalibrateCommand {
  std::string folder;
  std::string profile = "h200-nvlink";
  std::string out;
  std::vector<std::string> recorded;
  sim::CalibrateOptions fit;
  bool json = false;
};

constexpr const char* kFooter =
    "\nHalf of the sweep's configs, drawn by --seed, is fitted; the errors are those on the other "
    "half. A\n"
    "number that was measured by itself stays, and so does one that the sweep does not determine, "
    "alone or\n"
    "beside the others; --numbers takes any.\n"
    "\nExamples:\n"
    "  fusescope calibrate out/seed-tp2-exhaustive --profile h200-nvlink --out my-h200.json\n"
    "  fusescope calibrate out/sweep --recorded out/run --out fitted.json     error per step, too\n"
    "  fusescope calibrate out/sweep --numbers sm_store,schedule_device --out fitted.json\n"
    "  fusescope sweep quickstart --profile fitted.json";

struct Usable {
  std::vector<sim::Observation> observations;
  std::size_t left_out = 0;
  std::string why;  // of the first that was left out
};

Usable usable(const std::vector<sweep::Trial>& trials, const Problem& problem,
              const DeviceLimits& device) {
  Usable usable;
  for (const sweep::Trial& trial : trials) {
    std::string why = why_illegal(problem, trial.config, device);
    if (trial.verdict != sweep::Verdict::ok) {
      why = "did not run: " + trial.reason;
    } else if (trial.config.study != Study::full || trial.config.inject != Inject{}) {
      why = "is a study, not the layer";
    }
    if (why.empty()) {
      usable.observations.push_back({trial.config, trial.median_us});
    } else if (usable.left_out++ == 0) {
      usable.why = why;
    }
  }
  return usable;
}

// Time per step of the critical path, recorded and simulated [us].
struct StepError {
  double recorded_us = 0;
  double before_us = 0;
  double after_us = 0;
};
using StepErrors = std::map<std::string, StepError>;

analysis::CriticalPath simulated_path(const Problem& problem, const Config& config,
                                      const sim::Profile& profile) {
  sim::SimEngine engine(profile);
  engine::RunRequest request;
  request.problem = &problem;
  request.config = config;
  request.min_samples = 1;
  request.timeline = true;
  return analysis::attribute(*engine.run(request).timeline).path;
}

// The critical path of an iteration that was recorded, by step.
struct Recorded {
  Config config;
  std::map<std::string, double> steps_us;
};

// The trials that carry steps, and the timelines that --recorded names.
std::vector<Recorded> recorded_iterations(const std::vector<sweep::Trial>& trials,
                                          const std::vector<std::string>& paths,
                                          const Problem& problem, const DeviceLimits& device) {
  std::vector<Recorded> recorded;
  constexpr std::size_t kMost = 50;  // each is simulated twice, with its timeline
  for (const sweep::Trial& trial : trials) {
    if (!trial.steps_us.empty() && recorded.size() < kMost &&
        why_illegal(problem, trial.config, device).empty()) {
      recorded.push_back({trial.config, trial.steps_us});
    }
  }
  for (const std::string& path : paths) {
    const timeline::Timeline timeline = load_checked_timeline(timeline_file(path));
    if (timeline.meta.problem != describe(problem)) {
      throw InputError({path, "", "is of another problem: " + timeline.meta.problem,
                        "a timeline of " + describe(problem)});
    }
    const Config config = parse_config(timeline.meta.config);
    if (const std::string why = why_illegal(problem, config, device); !why.empty()) {
      throw InputError({path, "", why, "a timeline of a config that the profile's device runs"});
    }
    recorded.push_back({config, analysis::steps_us(analysis::attribute(timeline).path)});
  }
  return recorded;
}

// Means over the recorded iterations.
StepErrors step_errors(const std::vector<Recorded>& recorded, const Problem& problem,
                       const sim::Profile& base, const sim::Calibration& fit) {
  StepErrors errors;
  for (const Recorded& each : recorded) {
    for (const auto& [step, us] : each.steps_us) {
      errors[step].recorded_us += us;
    }
    for (const auto& [step, us] : analysis::steps_us(simulated_path(problem, each.config, base))) {
      errors[step].before_us += us;
    }
    for (const auto& [step, us] :
         analysis::steps_us(simulated_path(problem, each.config, fit.profile))) {
      errors[step].after_us += us;
    }
  }
  for (auto& [step, error] : errors) {
    for (double* each : {&error.recorded_us, &error.before_us, &error.after_us}) {
      *each /= static_cast<double>(recorded.size());
    }
  }
  return errors;
}

// The base profile's document with the fitted numbers and where they come from.
OrderedJson fitted_document(const sim::Profile& base, const sim::Calibration& fit,
                            const std::string& name, const std::string& source) {
  OrderedJson document = OrderedJson::parse(std::ifstream(base.path));
  document["name"] = name;
  document["description"] =
      base.description + " Calibrated from " + base.name + " on " + source + ".";
  for (const sim::FittedNumber& number : fit.fitted) {
    OrderedJson& entry = document["numbers"][number.key];
    const std::string was =
        fmt::format("{} ({}: {})", entry["value"].get<double>(),
                    entry["provenance"].get<std::string>(), entry["source"].get<std::string>());
    entry["value"] = number.after;
    entry["provenance"] = "fitted";
    entry["source"] = source + "; was " + was;
  }
  return document;
}

OrderedJson quality_json(const sim::FitQuality& quality) {
  return {{"configs", quality.configs},
          {"median_absolute_error", quality.median_error},
          {"worst_absolute_error", quality.worst_error},
          {"rank_correlation", quality.rank_correlation}};
}

OrderedJson summary_json(const sim::Calibration& fit, const Usable& data, const StepErrors& steps,
                         std::size_t timelines) {
  OrderedJson json = {{"configs", data.observations.size()},
                      {"left_out", data.left_out},
                      {"left_out_because", data.why},
                      {"training", fit.training},
                      {"fitted_on", fit.fitted_on},
                      {"evaluations", fit.evaluations},
                      {"before", quality_json(fit.before)},
                      {"after", quality_json(fit.after)},
                      {"numbers", OrderedJson::array()},
                      {"undetermined", fit.undetermined},
                      {"timelines", timelines},
                      {"steps", OrderedJson::array()}};
  for (const sim::FittedNumber& number : fit.fitted) {
    json["numbers"].push_back({{"name", number.key},
                               {"before", number.before},
                               {"after", number.after},
                               {"moves_wall", number.moves_wall}});
  }
  for (const auto& [step, error] : steps) {
    json["steps"].push_back({{"step", step},
                             {"recorded_us", error.recorded_us},
                             {"before_us", error.before_us},
                             {"after_us", error.after_us}});
  }
  return json;
}

std::string summary_text(const sim::Calibration& fit, const Usable& data, const StepErrors& steps,
                         std::size_t timelines, const sim::Profile& base) {
  std::string text =
      fmt::format("{} configs; fitted on {} of {}, judged on the other {}\n",
                  data.observations.size(), fit.fitted_on, fit.training, fit.after.configs);
  if (data.left_out > 0) {
    text +=
        wrapped(fmt::format("{} more are left out, the first because: {}", data.left_out, data.why),
                0) +
        "\n";
  }
  text += fmt::format("\n{:<24} {:>10} {:>10}\n", "on the judging half", base.name.substr(0, 10),
                      "fitted");
  text += fmt::format("{:<24} {:>9.1f}% {:>9.1f}%\n", "median absolute error",
                      fit.before.median_error * 100, fit.after.median_error * 100);
  text += fmt::format("{:<24} {:>9.1f}% {:>9.1f}%\n", "worst absolute error",
                      fit.before.worst_error * 100, fit.after.worst_error * 100);
  text += fmt::format("{:<24} {:>10.3f} {:>10.3f}\n", "rank correlation",
                      fit.before.rank_correlation, fit.after.rank_correlation);
  text += fmt::format("\n{:<24} {:>10} {:>10}  {}\n", "number", "before", "fitted",
                      "10% of it move the wall by");
  for (const sim::FittedNumber& number : fit.fitted) {
    text += fmt::format("{:<24} {:>10.4g} {:>10.4g}  {:.2f}%\n", number.key, number.before,
                        number.after, number.moves_wall * 10);
  }
  std::string stay;
  for (const std::string& key : fit.undetermined) {
    stay += (stay.empty() ? "" : ", ") + key;
  }
  text +=
      wrapped("Not determined by this sweep, so as before: " + (stay.empty() ? "none" : stay), 4) +
      "\n";
  if (timelines == 0) {
    return text + "No iteration was recorded (--recorded): no error per step.\n";
  }
  text += fmt::format("\n{:<24} {:>10} {:>10} {:>10}   mean of {} recorded iteration{} [us]\n",
                      "step", "recorded", "before", "fitted", timelines, timelines == 1 ? "" : "s");
  for (const auto& [step, error] : steps) {
    text += fmt::format("{:<24} {:>10.1f} {:>10.1f} {:>10.1f}\n", step, error.recorded_us,
                        error.before_us, error.after_us);
  }
  return text;
}

int execute(const CalibrateCommand& command) {
  namespace fs = std::filesystem;
  if (fs::exists(command.out)) {
    throw InputError(
        {"--out", command.out, "exists and is left as it is", "the name of a new file"});
  }
  if (!holds_sweep(command.folder)) {
    throw InputError({command.folder, "", "holds no trials.jsonl", "the folder of a sweep"});
  }
  const SweepRecord record = read_sweep_folder(command.folder);
  const Problem problem = make_problem(record.config.shape, record.config.routing);
  const sim::Profile base = sim::load_profile(command.profile);
  const std::vector<sweep::Trial> trials = sweep::latest(record.log.trials);
  const Usable data = usable(trials, problem, sim::SimEngine(base).device());
  sim::Calibration fit;
  try {
    fit = sim::calibrate(problem, base, data.observations, command.fit);
  } catch (const InputError& error) {
    if (!error.parts().file.empty()) {
      throw;
    }
    throw InputError({command.folder, "",
                      error.parts().problem +
                          (data.why.empty() ? "" : " (the first that cannot: " + data.why + ")"),
                      error.parts().accepted});
  }
  const std::vector<Recorded> recorded =
      recorded_iterations(trials, command.recorded, problem, sim::SimEngine(base).device());
  const std::size_t timelines = recorded.size();
  const StepErrors steps = step_errors(recorded, problem, base, fit);

  const sweep::LogHeader& header = record.log.header;
  const std::string source = fmt::format(
      "{} of {} {} configs of {} ({}), sweep \"{}\" of {}, split seed {}", fit.fitted_on,
      data.observations.size(), header.engine == "sim" ? "simulated" : "measured", header.problem,
      header.device, record.config.name, header.started, command.fit.seed);
  const OrderedJson document =
      fitted_document(base, fit, fs::path(command.out).stem().string(), source);
  write_text(command.out, document.dump(2) + "\n");
  if (command.json) {
    std::printf("%s\n", summary_json(fit, data, steps, timelines).dump(2).c_str());
  } else {
    std::printf("%s\nWritten: %s\n", summary_text(fit, data, steps, timelines, base).c_str(),
                command.out.c_str());
  }
  return kFine;
}

}  // namespace

void add_calibrate(CLI::App& app, Context& context) {
  const auto options = std::make_shared<CalibrateCommand>();
  CLI::App* command =
      app.add_subcommand("calibrate", "Fit the simulator's device profile to a measured sweep");
  command->add_option("folder", options->folder, "The folder of a sweep")
      ->type_name("DIR")
      ->required();
  command
      ->add_option("--profile", options->profile,
                   "The profile to start from: a name or a JSON file")
      ->type_name("PROFILE")
      ->capture_default_str();
  command->add_option("--out", options->out, "The fitted profile's file, which must be new")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--numbers", options->fit.numbers, "Fit among these numbers of the profile only")
      ->delimiter(',')
      ->type_name("NAME,...");
  command
      ->add_option("--recorded", options->recorded,
                   "Recorded iterations of the same problem: the error of each step on them")
      ->type_name("DIR|FILE...");
  command->add_option("--seed", options->fit.seed, "Of the split into halves")
      ->capture_default_str();
  command
      ->add_option("--fit-configs", options->fit.fit_configs,
                   "Configs that each step of the fit simulates")
      ->check(CLI::Range(2, 100000))
      ->capture_default_str();
  command->add_option("--evaluations", options->fit.evaluations, "Steps of the fit, at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON instead of text; times in us");
  command->footer(kFooter);
  command->callback(
      [options, &context] { context.selected = [options] { return execute(*options); }; });
}

}  // namespace fusescope::cli
