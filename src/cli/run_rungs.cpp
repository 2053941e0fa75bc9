#include "cli/run_rungs.hpp"

#include <array>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/files.hpp"
#include "cli/run_folder.hpp"

namespace fusescope::cli {
namespace {

// As the config's knob `study` spells them, in the order of kRungs.
constexpr std::array<const char*, kRungs.size()> kStudies = {
    "compute_all", "compute_split", "gates_open", "ideal_order", "real_order", "full"};

analysis::RungWalls read_walls(const JsonReader& rounds) {
  analysis::RungWalls walls;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    std::vector<double>& round = walls.emplace_back();
    const JsonReader samples = rounds.element(i);
    for (std::size_t j = 0; j < samples.size(); ++j) {
      round.push_back(samples.element(j).as_number());
    }
    if (round.empty()) {
      samples.refuse("a round without a sample", "walls in microseconds");
    }
  }
  return walls;
}

std::vector<analysis::KernelWaves> read_waves(const JsonReader& kernels) {
  constexpr long long kMost = 1'000'000'000;
  std::vector<analysis::KernelWaves> waves;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const JsonReader kernel = kernels.element(i);
    waves.push_back({kernel.at("kernel").as_string(), kernel.at("tiles").as_integer(0, kMost),
                     static_cast<int>(kernel.at("sms_all").as_integer(1, kMost)),
                     static_cast<int>(kernel.at("sms_split").as_integer(1, kMost))});
  }
  return waves;
}

}  // namespace

std::optional<analysis::Rungs> rungs_of(const engine::RunRequest& request,
                                        const engine::RunResult& result,
                                        const DeviceLimits& device) {
  if (result.rungs.empty()) {
    return std::nullopt;
  }
  std::array<analysis::RungWalls, kRungs.size()> walls;
  for (std::size_t i = 0; i < walls.size(); ++i) {
    walls[i] = result.rungs.at(i).wall_us;
  }
  return analysis::make_rungs(walls,
                              analysis::kernel_waves(*request.problem, request.config, device));
}

Json rungs_document(const analysis::Rungs& rungs, const engine::RunResult& result) {
  Json document = Json::parse(analysis::to_json(rungs));
  for (std::size_t i = 0; i < kStudies.size(); ++i) {
    document["samples_us"][kStudies[i]] = result.rungs.at(i).wall_us;
  }
  return document;
}

std::optional<analysis::Rungs> read_rungs(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path folder = fs::path(timeline_file(path)).parent_path();
  const std::string file = (folder / kRunFile).string();
  if (!fs::is_regular_file(file)) {
    return std::nullopt;
  }
  const Json document = read_json_file(file);
  const JsonReader reader(file, document);
  if (!reader.has("rungs")) {
    return std::nullopt;
  }
  const JsonReader rungs = reader.at("rungs");
  const JsonReader samples = rungs.at("samples_us");
  std::array<analysis::RungWalls, kRungs.size()> walls;
  for (std::size_t i = 0; i < walls.size(); ++i) {
    const JsonReader rung = samples.at(kStudies[i]);
    walls[i] = read_walls(rung);
    if (walls[i].empty() || walls[i].size() != walls[0].size()) {
      rung.refuse("not as many rounds as compute_all has", "the samples of every round");
    }
  }
  analysis::Rungs read = analysis::make_rungs(walls, read_waves(rungs.at("waves")));
  const JsonReader wall = reader.at("wall_us");
  analysis::hold_against(read, wall.at("median").as_number(), wall.at("half_ci").as_number());
  return read;
}

}  // namespace fusescope::cli
