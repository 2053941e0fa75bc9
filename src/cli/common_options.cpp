#include "cli/common_options.hpp"

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "sweep/knob_json.hpp"

namespace fusescope::cli {
namespace {

// Runs `make`; an InputError of it that names no file is told to come from `option`.
template <typename Make>
auto from_option(const std::string& option, Make make) {
  try {
    return make();
  } catch (const InputError& error) {
    InputError::Parts parts = error.parts();
    if (!parts.file.empty()) {
      throw;
    }
    throw InputError({option, "", parts.problem, parts.accepted});
  }
}

}  // namespace

void ProblemOptions::add_to(CLI::App& command) {
  command.add_option("--shape", shape, "A shape's name (\"list shapes\") or its JSON file")
      ->type_name("SHAPE")
      ->capture_default_str();
  command
      .add_option("--routing", routing,
                  "balanced, uniform, zipf:ALPHA, hot:EXPERTS,SHARE, or file:PATH#layer=N "
                  "(\"list routings\")")
      ->type_name("ROUTING")
      ->capture_default_str();
}

Problem ProblemOptions::problem() const {
  const Shape loaded = from_option("--shape", [&] { return load_shape(shape); });
  return from_option("--routing", [&] { return make_problem(loaded, parse_routing(routing)); });
}

void EngineFlags::add_to(CLI::App& command) {
  command
      .add_option(
          "--engine", engine,
          "cuda: the kernels on this machine's GPUs; sim: the simulator; auto: cuda where it "
          "can run, else sim")
      ->type_name("ENGINE")
      ->capture_default_str();
  command
      .add_option("--profile", profile,
                  "Device profile of the simulator: a name (\"list profiles\") or a JSON file")
      ->type_name("PROFILE");
  command.add_option("--devices", devices, "GPUs of the cuda engine, such as 0,1 (default: all)")
      ->type_name("N,...")
      ->delimiter(',');
}

std::unique_ptr<engine::Engine> EngineFlags::make() const {
  const std::string option = profile.empty() ? "--engine" : "--profile";
  return from_option(option, [&] { return engine::make_engine({engine, profile, devices}); });
}

void ConfigOptions::add_to(CLI::App& command) {
  command
      .add_option("--set", assignments, "Set a knob (\"list knobs\"); may be given several times")
      ->type_name("KNOB=VALUE");
  command
      .add_option("--config", file,
                  "Start from the knobs in a JSON file: {\"dispatch_comm_sms\": 8, ...}, or the "
                  "run.json of an earlier run")
      ->type_name("FILE");
}

Config ConfigOptions::config() const {
  Config config;
  if (!file.empty()) {
    const Json document = read_json_file(file);
    const JsonReader reader(file, document);
    sweep::set_knobs(config, reader.has("config") ? reader.at("config") : reader);
  }
  for (const std::string& assignment : assignments) {
    set_knob_text(config, assignment, "--set");
  }
  return config;
}

void require_legal(const ConfigOptions& options, const Problem& problem, const Config& config,
                   const DeviceLimits& device) {
  const std::string reason = why_illegal(problem, config, device);
  if (reason.empty()) {
    return;
  }
  // The assignment that alone cannot run is the one to name.
  for (const std::string& assignment : options.assignments) {
    Config alone;
    set_knob_text(alone, assignment, "--set");
    const std::string own = why_illegal(problem, alone, device);
    if (!own.empty() && why_illegal(problem, Config{}, device).empty()) {
      throw InputError({"--set", assignment, own, "a config that " + device.name + " can run"});
    }
  }
  const bool from_file = options.assignments.empty() && !options.file.empty();
  throw InputError(
      {from_file                     ? options.file
       : options.assignments.empty() ? ""
                                     : "--set",
       "", "this config cannot run: " + reason,
       "a config that " + device.name + " can run; set the knobs that the rule names"});
}

}  // namespace fusescope::cli
