// Times configs of the third kernel (dense GEMM + ReduceScatter) against each other on the GPUs of this
// machine: checks every config's outputs first, then takes samples round by round, all configs in each
// round, so that drift of the machine meets all of them alike. Prints a table and writes every sample.
// With --timeline, also records the first fused case, and says what its critical path consists of; the
// file is what `fusescope attribute` and `fusescope timeline` read.
//
//   projection_timing --ranks 2 --tokens 1024 --hidden 4096 --depth 4096 --out timing.json
//       --case 'fused:' --case 'no push SMs:push_sms=0' --case 'serial:form=serial' --timeline fused.fst
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "analysis/critical_path.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "engine/cuda/nccl_choice.hpp"
#include "engine/cuda/projection/runner.hpp"
#include "timeline/store.hpp"

namespace fusescope::engine::cuda::projection {
namespace {

// Of all outputs, in bf16.
constexpr double kMaxRelativeError = 3e-3;

struct TimedCase {
  std::string name;
  Config config;
  NcclChoice::Chosen collectives;
  OutputError error;
  std::string failure;
  std::vector<double> wall_us;
  std::vector<double> clock_mhz;
};

struct Options {
  Shape shape;
  std::vector<std::string> cases = {"fused:", "serial:form=serial"};
  std::vector<int> devices;
  std::string out;
  std::string timeline;
  int rounds = 10;
  int per_round = 20;
};

TimedCase parse_case(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    throw InputError({"--case", "", "\"" + text + "\" has no colon", "NAME:KNOB=VALUE KNOB=VALUE"});
  }
  TimedCase timed;
  timed.name = text.substr(0, colon);
  std::istringstream knobs(text.substr(colon + 1));
  for (std::string assignment; knobs >> assignment;) {
    set_knob_text(timed.config, assignment, "--case");
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

// NCCL or peer copies: as the layer chooses.
NcclChoice::Chosen choose(NcclChoice& choice, const Config& config,
                          const std::vector<int>& devices) {
  fusescope::Config layer;
  layer.form = config.form;
  layer.collectives = config.collectives;
  return choice.choose(layer, devices);
}

void check(Runner& runner, NcclChoice& choice, TimedCase& timed, const Shape& shape,
           const std::vector<Device>& devices) {
  timed.failure = why_illegal(shape, timed.config, limits_of(devices.front()));
  if (!timed.failure.empty()) {
    return;
  }
  try {
    timed.collectives = choose(choice, timed.config, devices_of_ranks(devices, shape.ranks));
    runner.use_nccl(timed.collectives.nccl);
    runner.configure(timed.config);
    runner.memory().poison();
    runner.run_once();
    timed.error = runner.output_error();
    if (!(timed.error.relative <= kMaxRelativeError)) {
      timed.failure = fmt::format("wrong outputs: relative error {:.2e}", timed.error.relative);
    }
  } catch (const std::exception& error) {
    timed.failure = error.what();
  }
}

void sample(Runner& runner, TimedCase& timed, int count) {
  runner.use_nccl(timed.collectives.nccl);
  runner.configure(timed.config);
  constexpr int kWarmup = 3;
  for (int i = 0; i < kWarmup + count; ++i) {
    const Sample sample = runner.run_once();
    if (i >= kWarmup) {
      timed.wall_us.push_back(sample.wall_us);
      timed.clock_mhz.push_back(sample.sm_clock_mhz);
    }
  }
}

void print(const std::vector<TimedCase>& cases) {
  fmt::print("{:<28} {:>9} {:>9} {:>9} {:>9} {:>8} {:>6}  {}\n", "case", "median us", "p10", "p90",
             "rel.err", "SM MHz", "n", "rows by");
  for (const TimedCase& c : cases) {
    if (!c.failure.empty()) {
      fmt::print("{:<28} {}\n", c.name, c.failure);
      continue;
    }
    fmt::print("{:<28} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.2e} {:>8.0f} {:>6}  {}\n", c.name,
               quantile(c.wall_us, 0.5), quantile(c.wall_us, 0.1), quantile(c.wall_us, 0.9),
               c.error.relative, quantile(c.clock_mhz, 0.5), c.wall_us.size(), c.collectives.said);
  }
}

void write(const std::string& path, const Shape& shape, const std::vector<Device>& devices,
           const std::vector<TimedCase>& cases) {
  nlohmann::json file;
  file["program"] = version_line();
  file["problem"] = describe(shape);
  file["device"] = fmt::format("{} x {}", devices.size(), devices.front().name);
  file["driver"] = driver_version();
  for (const TimedCase& c : cases) {
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
                             {"wall_us", c.wall_us}});
  }
  std::ofstream out(path);
  out << file.dump(1) << '\n';
  out.close();
  if (!out) {
    throw std::runtime_error("could not write " + path);
  }
}

// False: the timeline breaks the events' contract, which it says.
bool record(Runner& runner, const TimedCase& timed, const std::string& path) {
  const RecordedRun recorded = record_timeline(runner, timed.config);
  const timeline::Timeline& timeline = recorded.timeline;
  timeline::save_timeline(timeline, path);
  fmt::print("{}: \"{}\", {} records, {} dropped, {} incomplete; wall {:.1f} us, {:.1f} without\n",
             path, timed.name, recorded.report.records, recorded.report.dropped,
             recorded.report.incomplete, timeline.meta.recorded_us, timeline.meta.unrecorded_us);
  if (const std::string fault = timeline::check(timeline); !fault.empty()) {
    fmt::print("the timeline is not sound: {}\n", fault);
    return false;
  }
  const analysis::CriticalPath path_of = analysis::critical_path(timeline);
  fmt::print("critical path, {:.1f} us:", 1e-3 * static_cast<double>(timeline.wall_ns()));
  for (int step = 0; step < analysis::kSteps; ++step) {
    if (const std::int64_t ns = path_of.by_step[static_cast<std::size_t>(step)]; ns > 0) {
      fmt::print(" {} {:.1f}", analysis::name(static_cast<analysis::Step>(step)),
                 1e-3 * static_cast<double>(ns));
    }
  }
  fmt::print("; exposed communication {:.1f}\n",
             1e-3 * static_cast<double>(path_of.exposed_communication_ns()));
  return true;
}

int run(const Options& options) {
  std::vector<TimedCase> cases;
  for (const std::string& text : options.cases) {
    cases.push_back(parse_case(text));
  }
  const std::vector<Device> devices = select_devices(options.devices);
  Config shape_only;
  shape_only.form = LayerForm::serial;  // whose only rules are the shape's
  if (const std::string why = why_illegal(options.shape, shape_only, limits_of(devices.front()));
      !why.empty()) {
    throw InputError({"", "", why, "other --ranks, --tokens, --hidden or --depth"});
  }
  NcclChoice choice;  // outlives the runner, whose graphs hold its collectives
  Runner runner(options.shape, devices, {});
  for (TimedCase& timed : cases) {
    check(runner, choice, timed, options.shape, devices);
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (TimedCase& timed : cases) {
      if (timed.failure.empty()) {
        sample(runner, timed, options.per_round);
      }
    }
  }
  fmt::print("{}\n", describe(options.shape));
  print(cases);
  if (!options.out.empty()) {
    write(options.out, options.shape, devices, cases);
  }
  bool fine =
      std::all_of(cases.begin(), cases.end(), [](const TimedCase& c) { return c.failure.empty(); });
  if (!options.timeline.empty()) {
    const auto fused = std::find_if(cases.begin(), cases.end(), [](const TimedCase& c) {
      return c.failure.empty() && c.config.form == LayerForm::fused;
    });
    if (fused == cases.end()) {
      throw InputError({"--timeline", "", "no fused case ran", "a --case without form=serial"});
    }
    fine = record(runner, *fused, options.timeline) && fine;
  }
  return fine ? 0 : 1;
}

}  // namespace
}  // namespace fusescope::engine::cuda::projection

int main(int argc, char** argv) {
  namespace projection = fusescope::engine::cuda::projection;
  projection::Options options;
  CLI::App app(
      "Checks configs of the dense GEMM + ReduceScatter kernel, then times them in turns.");
  app.add_option("--ranks", options.shape.ranks, "R")->capture_default_str();
  app.add_option("--tokens", options.shape.tokens_per_rank, "T, per rank")->capture_default_str();
  app.add_option("--hidden", options.shape.hidden, "H, columns of the output")
      ->capture_default_str();
  app.add_option("--depth", options.shape.depth, "K, over all ranks")->capture_default_str();
  app.add_option("--case", options.cases, "NAME:KNOB=VALUE KNOB=VALUE ...; more than one is usual")
      ->capture_default_str();
  app.add_option("--devices", options.devices, "GPUs; default: all")->delimiter(',');
  app.add_option("--out", options.out, "every sample, as JSON");
  app.add_option("--timeline", options.timeline,
                 "records the first fused case into this .fst file");
  app.add_option("--rounds", options.rounds)->capture_default_str();
  app.add_option("--per-round", options.per_round, "samples of a case per round")
      ->capture_default_str();
  std::string knobs = "Knobs:\n";
  for (const std::string& line : projection::knob_help()) {
    knobs += "  " + line + "\n";
  }
  app.footer(knobs);
  CLI11_PARSE(app, argc, argv);
  try {
    return projection::run(options);
  } catch (const fusescope::InputError& error) {
    std::cerr << "projection_timing: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "projection_timing: " << error.what() << '\n';
    return 1;
  }
}
