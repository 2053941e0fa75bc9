// Times several configs of one problem against each other on the GPUs of this machine: checks every
// config's outputs first, then takes samples round by round, all configs in each round and in another order
// each, so that drift of the machine, and the power that the config before has left, meet all of them
// alike. Prints a table and writes every sample as JSON.
//
//   layer_timing --shape seed-tp2 --routing uniform --rounds 10 --per-round 20 --out timing.json
//       --case 'fused:' --case 'fused 24:dispatch_comm_sms=24' --case 'serial:form=serial'
//
// With --rest-ms the GPUs rest before every iteration, so that the power limit bites less: an iteration then
// takes what its work and its waits take, where back to back it takes what its energy allows.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>

#include "base/version.hpp"
#include "engine/cuda/devices.hpp"
#include "engine/cuda/layer_runner.hpp"
#include "engine/cuda/nccl_choice.hpp"
#include "engine/cuda/verifier.hpp"
#include "layer/problem.hpp"

namespace fusescope::engine::cuda {
namespace {

struct TimedCase {
  std::string name;
  Config config;
  NcclChoice::Chosen collectives;
  OutputError error;
  std::string failure;
  std::vector<double> wall_us;
  std::vector<double> clock_mhz;
  std::vector<PhaseTime> phases;  // of the first device, one iteration
};

struct Options {
  std::string shape = "seed-tp2";
  std::string routing = "uniform";
  std::vector<std::string> cases;
  std::vector<int> devices;
  std::string out;
  int rounds = 10;
  int per_round = 20;
  int rest_ms = 0;
};

TimedCase parse_case(const std::string& text) {
  const std::size_t colon = text.find(':');
  TimedCase timed;
  timed.name = text.substr(0, colon);
  std::istringstream knobs(colon == std::string::npos ? "" : text.substr(colon + 1));
  for (std::string assignment; std::getline(knobs, assignment, ' ');) {
    if (!assignment.empty()) {
      set_knob_text(timed.config, assignment, "--case");
    }
  }
  return timed;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) {
    return 0;
  }
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

void check(LayerRunner& runner, NcclChoice& choice, TimedCase& timed, const Problem& problem,
           const std::vector<Device>& devices) {
  timed.failure = why_illegal_on_device(problem, timed.config, limits_of(devices.front()));
  if (!timed.failure.empty()) {
    return;
  }
  try {
    timed.collectives = choice.choose(timed.config, devices_of_ranks(devices, problem.shape.ranks));
    Config whole = timed.config;
    whole.study = Study::full;
    runner.use_nccl(timed.collectives.nccl);
    runner.configure(whole);
    runner.memory().poison();
    runner.run_once();
    timed.error = runner.output_error();
    timed.phases = runner.time_phases().front();
    if (!(timed.error.relative <= 6e-3)) {
      timed.failure = fmt::format("wrong outputs: relative error {:.2e}", timed.error.relative);
    }
  } catch (const std::exception& error) {
    timed.failure = error.what();
  }
}

void sample(LayerRunner& runner, TimedCase& timed, int count, int rest_ms) {
  runner.use_nccl(timed.collectives.nccl);
  runner.configure(timed.config);
  constexpr int kWarmup = 3;
  for (int i = 0; i < kWarmup + count; ++i) {
    const Sample sample = runner.run_once(std::chrono::milliseconds(rest_ms));
    if (i >= kWarmup) {
      timed.wall_us.push_back(sample.wall_us);
      timed.clock_mhz.push_back(sample.sm_clock_mhz);
    }
  }
}

void print(const std::vector<TimedCase>& cases) {
  fmt::print("{:<28} {:>9} {:>9} {:>9} {:>9} {:>8} {:>6}\n", "case", "median us", "p10", "p90",
             "rel.err", "SM MHz", "n");
  for (const TimedCase& c : cases) {
    if (!c.failure.empty()) {
      fmt::print("{:<28} {}\n", c.name, c.failure);
      continue;
    }
    fmt::print("{:<28} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.2e} {:>8.0f} {:>6}\n", c.name,
               quantile(c.wall_us, 0.5), quantile(c.wall_us, 0.1), quantile(c.wall_us, 0.9),
               c.error.relative, quantile(c.clock_mhz, 0.5), c.wall_us.size());
  }
  for (const TimedCase& c : cases) {
    if (!c.collectives.said.empty()) {
      fmt::print("{}: rows by {}\n", c.name, c.collectives.said);
    }
    fmt::print("{}:", c.name);
    for (const PhaseTime& phase : c.phases) {
      fmt::print(" {} {:.1f}", timeline::name(phase.kind), phase.us);
    }
    fmt::print("\n");
  }
}

void write(const std::string& path, const Problem& problem, const std::vector<Device>& devices,
           const std::vector<TimedCase>& cases, int rest_ms) {
  nlohmann::json file;
  file["program"] = version_line();
  file["problem"] = describe(problem);
  file["device"] = fmt::format("{} x {}", devices.size(), devices.front().name);
  file["driver"] = driver_version();
  file["rest_ms"] = rest_ms;
  for (const TimedCase& c : cases) {
    nlohmann::json phases;
    for (const PhaseTime& phase : c.phases) {
      phases.push_back({{"phase", std::string(timeline::name(phase.kind))}, {"us", phase.us}});
    }
    file["cases"].push_back({{"name", c.name},
                             {"config", describe(c.config)},
                             {"collectives", c.collectives.said},
                             {"failure", c.failure},
                             {"relative_error", c.error.relative},
                             {"worst_row_error", c.error.worst_row},
                             {"median_us", quantile(c.wall_us, 0.5)},
                             {"p10_us", quantile(c.wall_us, 0.1)},
                             {"p90_us", quantile(c.wall_us, 0.9)},
                             {"sm_clock_mhz", quantile(c.clock_mhz, 0.5)},
                             {"sm_clock_p10_mhz", quantile(c.clock_mhz, 0.1)},
                             {"sm_clock_p90_mhz", quantile(c.clock_mhz, 0.9)},
                             {"phases", phases},
                             {"wall_us", c.wall_us}});
  }
  std::ofstream out(path);
  out << file.dump(1) << '\n';
  out.close();
  if (!out) {
    throw std::runtime_error("could not write " + path);
  }
}

int run(const Options& options) {
  const std::vector<Device> devices = select_devices(options.devices);
  const Problem problem = make_problem(load_shape(options.shape), parse_routing(options.routing));
  NcclChoice choice;  // outlives the runner, whose graphs hold its collectives
  LayerRunner runner(problem, devices, {});
  std::vector<TimedCase> cases;
  for (const std::string& text : options.cases) {
    cases.push_back(parse_case(text));
    check(runner, choice, cases.back(), problem, devices);
  }
  std::vector<std::size_t> turns(cases.size());
  std::iota(turns.begin(), turns.end(), std::size_t{0});
  std::mt19937_64 random(std::hash<std::string>{}(options.routing));
  for (int round = 0; round < options.rounds; ++round) {
    std::shuffle(turns.begin(), turns.end(), random);
    for (const std::size_t turn : turns) {
      if (cases[turn].failure.empty()) {
        sample(runner, cases[turn], options.per_round, options.rest_ms);
      }
    }
  }
  fmt::print("{}\n", describe(problem));
  print(cases);
  if (!options.out.empty()) {
    write(options.out, problem, devices, cases, options.rest_ms);
  }
  return std::all_of(cases.begin(), cases.end(),
                     [](const TimedCase& c) { return c.failure.empty(); })
             ? 0
             : 1;
}

}  // namespace
}  // namespace fusescope::engine::cuda

int main(int argc, char** argv) {
  fusescope::engine::cuda::Options options;
  CLI::App app("Times configs of one problem against each other.");
  app.add_option("--shape", options.shape);
  app.add_option("--routing", options.routing);
  app.add_option("--case", options.cases, "NAME:knob=value knob=value ...")->required();
  app.add_option("--devices", options.devices)->delimiter(',');
  app.add_option("--out", options.out);
  app.add_option("--rounds", options.rounds);
  app.add_option("--per-round", options.per_round);
  app.add_option("--rest-ms", options.rest_ms, "pause before each iteration")
      ->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    return fusescope::engine::cuda::run(options);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
