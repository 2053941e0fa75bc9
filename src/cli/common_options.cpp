#include "cli/common_options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>

#include "base/error.hpp"
#include "sweep/knob_json.hpp"

namespace fusescope::cli {
namespace {

// The option that an engine's refusal is about.
std::string option_of(const InputError& error, const EngineFlags& flags) {
  if (error.parts().place == "devices") {
    return "--devices";
  }
  return flags.profile.empty() ? "--engine" : "--profile";
}

std::vector<int> parse_devices(const std::string& text) {
  std::vector<int> devices;
  const auto refuse = [&] {
    throw InputError({"--devices", "", "\"" + text + "\" is not a list of GPUs",
                      "their numbers, separated by commas, such as 0,1 (\"list devices\")"});
  };
  const char* at = text.data();
  const char* const end = at + text.size();
  for (bool more = !text.empty(); more;) {
    int index = -1;
    const auto [behind, error] = std::from_chars(at, end, index);
    if (error != std::errc{} || index < 0 || (behind != end && *behind != ',')) {
      refuse();
    }
    devices.push_back(index);
    more = behind != end;
    at = more ? behind + 1 : end;
  }
  return devices;
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
  command
      .add_option(
          "--ranks", ranks,
          "Ranks in place of the shape's; tokens per rank and the per-rank intermediate size "
          "stay. More ranks than GPUs share them, phase by phase: right outputs, but no "
          "layer's wall time")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
}

Problem ProblemOptions::problem() const {
  Shape loaded = from_option("--shape", [&] { return load_shape(shape); });
  if (ranks != 0 && ranks != loaded.ranks) {
    loaded.name += ", ranks " + std::to_string(ranks);
    loaded.ranks = ranks;
    validate(loaded, "--ranks");
  }
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
  command
      .add_option(
          "--devices", devices,
          "GPUs of the cuda engine by number, such as 0,1 (\"list devices\"); default: all. "
          "Ranks lie on them in blocks")
      ->type_name("N,...");
  command
      .add_option("--deadline-ms", deadline_ms,
                  "GPUs: a wait on the device that lasts longer is given up, and the run ends with "
                  "who waited for what")
      ->type_name("MS")
      ->check(CLI::Range(1, 3'600'000))
      ->capture_default_str();
}

engine::EngineOptions EngineFlags::options() const {
  if (engine == "sim" && !devices.empty()) {
    throw InputError({"--devices", "", "\"" + devices + "\" names GPUs, and --engine is sim",
                      "--engine cuda or auto"});
  }
  if (!profile.empty() && (engine == "cuda" || !devices.empty())) {
    throw InputError({"--profile", "",
                      "\"" + profile + "\" is for the simulator, and the GPUs are asked for",
                      "--engine sim, without --devices"});
  }
  return {engine, profile, parse_devices(devices)};
}

std::unique_ptr<engine::Engine> EngineFlags::make() const {
  const engine::EngineOptions wanted = options();
  try {
    return engine::make_engine(wanted);
  } catch (const InputError& error) {
    if (!error.parts().file.empty()) {
      throw;
    }
    throw InputError({option_of(error, *this), "", error.parts().problem, error.parts().accepted});
  }
}

void add_gemm_option(CLI::App& command, std::string& gemm) {
  command
      .add_option(
          "--gemm", gemm,
          "Instructions of the GEMMs: auto, wgmma, mma or mma_small; short for the knob gemm")
      ->type_name("NAME");
}

void add_rest_option(CLI::App& command, std::optional<int>& rest_ms) {
  command
      .add_option("--rest-ms", rest_ms,
                  "On GPUs: a rest before each iteration, so that it meets a GPU below its power "
                  "limit, as after layers that draw less; 0: back to back")
      ->type_name("MS")
      ->check(CLI::Range(0, engine::kMostRestMs));
}

void set_rest(Json& sweep, const std::optional<int>& rest_ms) {
  if (!rest_ms) {
    return;
  }
  Json& measure = sweep["measure"];
  if (measure.is_null() || measure.is_object()) {  // else the sweep's reader says what is wrong
    measure["rest_ms"] = *rest_ms;
  }
}

void ConfigOptions::add_to(CLI::App& command) {
  add_gemm_option(command, gemm);
  command
      .add_option("--set", assignments, "Set a knob (\"list knobs\"); may be given several times")
      ->type_name("KNOB=VALUE");
  command
      .add_option("--config", file,
                  "Start from the knobs in a JSON file: {\"dispatch_comm_sms\": 8, ...}, or the "
                  "run.json of an earlier run")
      ->type_name("FILE");
}

Config ConfigOptions::config(const std::function<Config()>& tuned) const {
  Config config;
  if (file == kTunedConfig && tuned) {
    config = tuned();
  } else if (!file.empty()) {
    const Json document = read_json_file(file);
    const JsonReader reader(file, document);
    sweep::set_knobs(config, reader.has("config") ? reader.at("config") : reader);
  }
  if (!gemm.empty()) {
    set_knob(config, "gemm", gemm, "--gemm", "");
  }
  for (const std::string& assignment : assignments) {
    set_knob_text(config, assignment, "--set");
  }
  return config;
}

void EvidenceOptions::add_to(CLI::App& command) {
  CLI::Option* const base =
      command
          .add_option("--against", against,
                      "Compare with this run step by step: a change of -3 us is 3 us faster")
          ->type_name("DIR|FILE");
  command.add_flag("--unlike", unlike, "Compare even if the two ran different problems")
      ->needs(base);
  command
      .add_option("--sweep", sweep,
                  "A sweep whose trials measured what is suggested (default: the run's own)")
      ->type_name("DIR");
}

void require_legal(const ConfigOptions& options, const Problem& problem, const Config& config,
                   const DeviceLimits& device) {
  const std::string reason = why_illegal(problem, config, device);
  if (reason.empty()) {
    return;
  }
  // An assignment that alone breaks the same rule is the one to name.
  const auto blame = [&](const Config& alone, const char* option, const std::string& value) {
    if (why_illegal(problem, alone, device) == reason &&
        why_illegal(problem, Config{}, device).empty()) {
      throw InputError({option, value, reason, "a config that " + device.name + " can run"});
    }
  };
  for (const std::string& assignment : options.assignments) {
    Config alone;
    set_knob_text(alone, assignment, "--set");
    blame(alone, "--set", assignment);
  }
  if (!options.gemm.empty()) {
    Config alone;
    set_knob(alone, "gemm", options.gemm, "--gemm", "");
    blame(alone, "--gemm", options.gemm);
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
