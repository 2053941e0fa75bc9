// What in-kernel records cost and whether they hold together, for shapes on the GPUs of this machine:
// per shape, medians with and without records taken in turns, records dropped, the bound of the clock
// alignment, what the checker says of every recorded timeline, and whether the attribution adds up.
//
//   layer_records --shape seed-tp2 --shape seed-tp4 --routing uniform --rounds 3 --out DIR
//
// Writes DIR/records.json, and per shape DIR/SHAPE.fst: the timeline of its median iteration.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "analysis/accounting.hpp"
#include "analysis/critical_path.hpp"
#include "base/version.hpp"
#include "engine/cuda/cupti_comparison.hpp"
#include "engine/cuda/devices.hpp"
#include "engine/cuda/layer_runner.hpp"
#include "engine/cuda/link_comparison.hpp"
#include "engine/cuda/recorder.hpp"
#include "layer/problem.hpp"
#include "timeline/store.hpp"

namespace fusescope::engine::cuda {
namespace {

using Json = nlohmann::json;

struct Options {
  std::vector<std::string> shapes;
  std::string routing = "uniform";
  std::vector<std::string> knobs;
  std::vector<int> devices;
  std::string out;
  int rounds = 3;
  int iterations = 20;
  int most_per_writer = 0;
  bool cupti = false;
  bool counters = false;
};

// "" if the critical path adds up to the wall and the accounting to SMs x wall.
std::string what_does_not_add_up(const timeline::Timeline& timeline) {
  const auto path = analysis::critical_path(timeline);
  const auto sum = std::accumulate(path.by_step.begin(), path.by_step.end(), std::int64_t{0});
  if (sum != timeline.wall_ns()) {
    return fmt::format("the critical path is {} ns, the wall {} ns", sum, timeline.wall_ns());
  }
  for (const auto& rank : analysis::account(timeline).ranks) {
    const auto area = std::accumulate(rank.by_use.begin(), rank.by_use.end(), std::int64_t{0});
    const std::int64_t want = timeline.wall_ns() * timeline.meta.sms;
    if (area != want) {
      return fmt::format("the accounting is {} ns, SMs x wall {} ns", area, want);
    }
  }
  return "";
}

Json describe_round(const RecordedTimeline& recorded) {
  const timeline::Timeline& timeline = recorded.timeline;
  const timeline::Meta& meta = timeline.meta;
  const std::string violation = timeline::check(timeline);
  return {{"unrecorded_us", meta.unrecorded_us},
          {"recorded_us", meta.recorded_us},
          {"overhead", meta.recorded_us / meta.unrecorded_us - 1},
          {"chosen", meta.chosen},
          {"wall_us", static_cast<double>(timeline.wall_ns()) / 1e3},
          {"clock_bound_ns", meta.clock_bound_ns},
          {"clocks", meta.clocks},
          {"dispatch_clock_mhz", meta.dispatch_clock_mhz},
          {"combine_clock_mhz", meta.combine_clock_mhz},
          {"buffer_bytes", recorded.buffer_bytes},
          {"records", recorded.report.records},
          {"dropped", recorded.report.dropped},
          {"incomplete", recorded.report.incomplete},
          {"first_incomplete", recorded.report.first_incomplete},
          {"events", timeline.events.size()},
          {"check", violation.empty() ? "passed" : violation},
          {"adds_up", violation.empty() ? what_does_not_add_up(timeline) : "not asked"}};
}

// In one more recorded iteration per shape.
Json compare(LayerRunner& runner, timeline::CuptiActivity& cupti) {
  Json rows = Json::array();
  for (const KernelBoundaries& kernel : compare_with_cupti(runner, cupti)) {
    rows.push_back({{"gpu", kernel.device},
                    {"kernel", kernel.kernel},
                    {"begin_ns", kernel.begin_ns},
                    {"end_ns", kernel.end_ns},
                    {"stamp_ns", kernel.stamp_ns},
                    {"bound_ns", kernel.bound_ns}});
  }
  return rows;
}

Json record_shape(const Options& options, const std::vector<Device>& devices,
                  const std::string& name, timeline::CuptiActivity* cupti) {
  Json row = {{"shape", name}};
  try {
    const Problem problem = make_problem(load_shape(name), parse_routing(options.routing));
    Config config;
    for (const std::string& knob : options.knobs) {
      set_knob_text(config, knob, "--set");
    }
    row["problem"] = describe(problem);
    row["config"] = describe(config);
    const std::string why = why_illegal_on_device(problem, config, limits_of(devices.front()));
    if (!why.empty()) {
      throw std::runtime_error(why);
    }
    LayerRunner runner(problem, devices, {});
    const std::size_t devices_used = runner.devices().size();
    row["gpus"] = devices_used;
    runner.configure(config);
    runner.memory().poison();
    runner.run_once();
    row["relative_error"] = runner.relative_error();
    const std::uint64_t bits = runner.output_checksum();
    RecorderOptions recorder;
    recorder.iterations = options.iterations;
    recorder.most_per_writer = options.most_per_writer;
    recorder.counters = options.counters;
    for (int round = 0; round < options.rounds; ++round) {
      const RecordedTimeline recorded = record_timeline(runner, problem, config, recorder);
      row["rounds"].push_back(describe_round(recorded));
      row["rounds"].back()["links"] = compare_links(recorded, problem.shape, config, devices_used);
      row["rounds"].back()["why_no_counters"] = recorded.why_no_counters;
      if (!options.out.empty() && round == 0) {
        const auto file = std::filesystem::path(options.out) / (problem.shape.name + ".fst");
        timeline::save_timeline(recorded.timeline, file.string());
        row["file_bytes"] = std::filesystem::file_size(file);
      }
    }
    if (cupti != nullptr) {
      row["cupti"] = compare(runner, *cupti);
    }
    row["outputs_unchanged"] = runner.output_checksum() == bits;
  } catch (const std::exception& error) {
    row["failure"] = error.what();
  }
  return row;
}

bool is_fine(const Json& row) {
  return !row.contains("failure") && row["outputs_unchanged"].get<bool>() &&
         std::all_of(row["rounds"].begin(), row["rounds"].end(), [](const Json& round) {
           return round["check"] == "passed" && round["adds_up"] == "" && round["dropped"] == 0 &&
                  round["incomplete"] == 0 && links_agree(round["links"]);
         });
}

void print(const Json& row) {
  fmt::print("{}: {}\n", row["shape"].get<std::string>(), is_fine(row) ? "fine" : "NOT FINE");
  if (row.contains("failure")) {
    fmt::print("  {}\n", row["failure"].get<std::string>());
  }
  for (const Json& kernel : row.value("cupti", Json::array())) {
    fmt::print(
        "  GPU {} {}: in-kernel begin {:+.0f} ns, end {:+.0f} ns from CUPTI's (stamped by one "
        "thread "
        "per block: {:+.0f}; clocks +-{:.0f} ns)\n",
        kernel["gpu"].get<int>(), kernel["kernel"].get<std::string>(),
        kernel["begin_ns"].get<double>(), kernel["end_ns"].get<double>(),
        kernel["stamp_ns"].get<double>(), kernel["bound_ns"].get<double>());
  }
  for (const Json& round : row.value("rounds", Json::array())) {
    fmt::print(
        "  {:.1f} us without records, {:.1f} us with ({:+.2f}%); {} records, {} dropped, {} "
        "incomplete; clocks +-{:.0f} ns; check {}; {}\n",
        round["unrecorded_us"].get<double>(), round["recorded_us"].get<double>(),
        100 * round["overhead"].get<double>(), round["records"].get<std::uint64_t>(),
        round["dropped"].get<std::uint64_t>(), round["incomplete"].get<std::uint64_t>(),
        round["clock_bound_ns"].get<double>(), round["check"].get<std::string>(),
        round["adds_up"] == "" ? "adds up" : round["adds_up"].get<std::string>());
    if (const std::string why = round["why_no_counters"]; !why.empty()) {
      fmt::print("  no counters: {}\n", why);
    }
    for (const Json& link : round["links"]) {
      fmt::print("  {}\n", describe_link(link));
    }
  }
}

int run(const Options& options) {
  const std::vector<Device> devices = select_devices(options.devices);
  if (!options.out.empty()) {
    std::filesystem::create_directories(options.out);
  }
  Json file = {{"program", version_line()},
               {"device", fmt::format("{} x {}", devices.size(), devices.front().name)},
               {"driver", driver_version()},
               {"shapes", Json::array()}};
  std::unique_ptr<timeline::CuptiActivity> cupti;
  if (options.cupti) {
    std::vector<int> indices;
    for (const Device& device : devices) {
      indices.push_back(device.index);
    }
    std::string why_not;
    cupti = timeline::CuptiActivity::start(indices, why_not);
    file["cupti"] = cupti ? "in use" : why_not;
    fmt::print("CUPTI: {}\n", file["cupti"].get<std::string>());
  }
  bool fine = true;
  for (const std::string& shape : options.shapes) {
    const Json row = record_shape(options, devices, shape, cupti.get());
    print(row);
    fine = fine && is_fine(row);
    file["shapes"].push_back(row);
    if (!options.out.empty()) {  // after each shape: what there is survives a later one's crash
      std::ofstream out(std::filesystem::path(options.out) / "records.json");
      out << file.dump(1) << '\n';
      out.close();
      if (!out) {
        throw std::runtime_error("could not write " + options.out + "/records.json");
      }
    }
  }
  return fine ? 0 : 1;
}

}  // namespace
}  // namespace fusescope::engine::cuda

int main(int argc, char** argv) {
  fusescope::engine::cuda::Options options;
  CLI::App app("What in-kernel records cost, and whether they hold together.");
  app.add_option("--shape", options.shapes, "Name or file; may be repeated")->required();
  app.add_option("--routing", options.routing);
  app.add_option("--set", options.knobs, "KNOB=VALUE");
  app.add_option("--devices", options.devices)->delimiter(',');
  app.add_option("--out", options.out, "Folder for records.json and the timelines");
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber);
  app.add_option("--iterations", options.iterations)->check(CLI::PositiveNumber);
  app.add_option("--most-per-writer", options.most_per_writer, "Room of a writer; 0 = enough");
  app.add_flag("--counters", options.counters,
               "Sample the GPUs' own counters; costs are then theirs too");
  app.add_flag("--cupti", options.cupti,
               "Compare kernels' begin and end with CUPTI's; costs are then CUPTI's too");
  CLI11_PARSE(app, argc, argv);
  try {
    return fusescope::engine::cuda::run(options);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
