// The truth test on GPUs: delays injected at every point, several sizes of each, on several configs; of
// each the wall time that it adds, and how much of that the critical path attributes to the point.
// Iterations without the delay and with it are recorded in turns.
//
//   truth_campaign --shape seed-tp2 --rounds 3 --out DIR
//
// Prints a row per delay, and writes DIR/truth.json after each point, so that what there is survives a
// later one's failure. Ends with 1 if a delay was attributed to less than 90%, or a point failed.
//
// --keep writes every timeline to a folder; --from reads them there instead of recording: what a changed
// attribution makes of the same iterations is seen without GPUs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/version.hpp"
#include "engine/cuda/devices.hpp"
#include "engine/cuda/layer_runner.hpp"
#include "engine/cuda/recorder.hpp"
#include "layer/problem.hpp"
#include "timeline/store.hpp"
#include "truth.hpp"

namespace fusescope::analysis {
namespace {

using Json = nlohmann::json;
using engine::cuda::Device;
using engine::cuda::LayerRunner;

constexpr double kEnough = 0.9;  // of the added wall

struct Options {
  std::string shape = "seed-tp2";
  std::string routing = "uniform";
  std::vector<std::string> bases = {"fetch first", "split"};
  std::vector<std::string> points;  // none = all
  std::vector<int> devices;
  std::string out;
  std::string keep;
  std::string from;
  int rounds = 3;
  int iterations = 3;  // of which the median one is read
  double scale = 1;    // of the delays
};

// Kernel 1 fetches before its first tile on all SMs, or has SMs that fetch beside the tiles.
Config base_config(const std::string& name) {
  Config config;
  if (name == "fetch first") {
    config.dispatch_comm_sms = 0;
    config.combine_comm_sms = 4;
    config.tokens_per_block = 8;
  }
  return config;
}

// Timelines by name: recorded, or kept from when they were.
class Source {
 public:
  Source(const Problem& problem, const Options& options) : problem_(problem), options_(options) {
    if (options.from.empty()) {
      devices_ = engine::cuda::select_devices(options.devices);
      runner_ = std::make_unique<LayerRunner>(problem, devices_, LayerRunner::Options{});
    }
    if (!options.keep.empty()) {
      std::filesystem::create_directories(options.keep);
    }
  }

  const std::vector<Device>& devices() const { return devices_; }

  timeline::Timeline get(const std::string& name, const Config& config) {
    const std::string file = name + ".fst";
    timeline::Timeline timeline =
        options_.from.empty()
            ? record(config)
            : timeline::load_timeline((std::filesystem::path(options_.from) / file).string());
    check(timeline);
    if (!options_.keep.empty()) {
      timeline::save_timeline(timeline, (std::filesystem::path(options_.keep) / file).string());
    }
    return timeline;
  }

 private:
  timeline::Timeline record(const Config& config) {
    runner_->configure(config);
    runner_->run_once();
    engine::cuda::RecorderOptions recorder;
    recorder.iterations = options_.iterations;
    return engine::cuda::record_timeline(*runner_, problem_, config, recorder).timeline;
  }

  static void check(const timeline::Timeline& timeline);

  const Problem& problem_;
  const Options& options_;
  std::vector<Device> devices_;
  std::unique_ptr<LayerRunner> runner_;
};

void Source::check(const timeline::Timeline& timeline) {
  if (const std::string violation = timeline::check(timeline); !violation.empty()) {
    throw std::runtime_error("a timeline breaks the event contract: " + violation);
  }
  if (timeline.meta.dropped > 0) {
    throw std::runtime_error("records are missing");
  }
}

Json describe_row(const TruthPoint& point, const std::string& base, int delay_us,
                  const TruthRow& row) {
  return {{"base", base},
          {"point", point.name},
          {"delay_us", delay_us},
          {"wall_us", row.base_us},
          {"wall_spread_us", row.spread_us},
          {"added_us", row.added_us},
          {"at_point_us", row.at_point_us},
          {"in_steps_us", row.in_steps_us},
          {"gemms_us", row.tiles_us},
          {"exposed_us", row.exposed_us},
          {"share", row.share()},
          {"steps_share", row.steps_share()},
          {"enough", row.share() >= kEnough}};
}

// Every delay of one point on one config, in turns with the config alone.
Json measure_point(Source& source, const Config& base, const TruthPoint& point,
                   const std::string& base_name, const Options& options) {
  std::vector<int> delays;
  for (const int delay_us : point.delays_us) {
    delays.push_back(std::max(1, static_cast<int>(options.scale * delay_us)));
  }
  std::vector<std::vector<Told>> without(delays.size());
  std::vector<std::vector<Told>> with(delays.size());
  for (int round = 0; round < options.rounds; ++round) {
    const std::string name = fmt::format("{}, {}, round {}", base_name, point.name, round);
    const timeline::Timeline alone = source.get(name, base);
    for (std::size_t i = 0; i < delays.size(); ++i) {
      Config delayed = base;
      delayed.inject = injection(point, delays[i]);
      without[i].push_back(told(point, delayed.inject, alone));
      with[i].push_back(told(point, delayed.inject,
                             source.get(fmt::format("{}, {} us", name, delays[i]), delayed)));
    }
  }
  Json rows = Json::array();
  for (std::size_t i = 0; i < delays.size(); ++i) {
    const TruthRow row = compare_told(without[i], with[i]);
    rows.push_back(describe_row(point, base_name, delays[i], row));
    fmt::print(
        "{:<12} {:<12} {:>5} us: wall {:8.1f} us (+-{:5.1f}), adds {:8.1f} us; at the point "
        "{:5.1f}%, in its steps {:5.1f}%{}\n",
        base_name, point.name, delays[i], row.base_us, row.spread_us / 2, row.added_us,
        100 * row.share(), 100 * row.steps_share(), row.share() >= kEnough ? "" : "  LESS");
    std::fflush(stdout);
  }
  return rows;
}

bool is_asked_for(const TruthPoint& point, const Options& options) {
  return options.points.empty() || std::find(options.points.begin(), options.points.end(),
                                             point.name) != options.points.end();
}

void save(const Json& file, const Options& options) {
  if (options.out.empty()) {
    return;
  }
  const auto path = std::filesystem::path(options.out) / "truth.json";
  std::ofstream out(path);
  out << file.dump(1) << '\n';
  out.close();
  if (!out) {
    throw std::runtime_error("could not write " + path.string());
  }
}

int run(const Options& options) {
  if (!options.out.empty()) {
    std::filesystem::create_directories(options.out);
  }
  const Problem problem = make_problem(load_shape(options.shape), parse_routing(options.routing));
  Source source(problem, options);
  Json file = {
      {"program", version_line()},
      {"device", source.devices().empty()
                     ? "as recorded in " + options.from
                     : fmt::format("{} x {}, {}", source.devices().size(),
                                   source.devices().front().name, engine::cuda::driver_version())},
      {"problem", describe(problem)},
      {"rounds", options.rounds},
      {"enough", kEnough},
      {"rows", Json::array()},
      {"failures", Json::array()}};
  bool fine = true;
  for (const std::string& base_name : options.bases) {
    const Config base = base_config(base_name);
    file["bases"][base_name] = describe(base);
    for (const TruthPoint& point : truth_points()) {
      if (!is_asked_for(point, options)) {
        continue;
      }
      try {
        for (const Json& row : measure_point(source, base, point, base_name, options)) {
          fine = fine && row["enough"].get<bool>();
          file["rows"].push_back(row);
        }
      } catch (const std::exception& error) {
        fine = false;
        file["failures"].push_back(
            {{"base", base_name}, {"point", point.name}, {"failure", error.what()}});
        fmt::print("{:<12} {:<12} FAILED: {}\n", base_name, point.name, error.what());
      }
      save(file, options);
    }
  }
  return fine ? 0 : 1;
}

}  // namespace
}  // namespace fusescope::analysis

int main(int argc, char** argv) {
  fusescope::analysis::Options options;
  CLI::App app("The truth test of the attribution, on GPUs.");
  app.add_option("--shape", options.shape, "Name or file")->capture_default_str();
  app.add_option("--routing", options.routing)->capture_default_str();
  app.add_option("--base", options.bases, "fetch first, split; may be repeated")
      ->check(CLI::IsMember({"fetch first", "split"}));
  app.add_option("--point", options.points, "Delay this point only; may be repeated");
  app.add_option("--devices", options.devices)->delimiter(',');
  app.add_option("--rounds", options.rounds, "Turns per delay")->check(CLI::PositiveNumber);
  app.add_option("--iterations", options.iterations, "Recorded per turn; the median one is read")
      ->check(CLI::PositiveNumber);
  app.add_option("--scale", options.scale, "Of the delays")->check(CLI::PositiveNumber);
  app.add_option("--out", options.out, "Folder for truth.json");
  app.add_option("--keep", options.keep, "Folder for the timelines");
  app.add_option("--from", options.from, "Folder of kept timelines, to read instead of recording");
  CLI11_PARSE(app, argc, argv);
  try {
    return fusescope::analysis::run(options);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
