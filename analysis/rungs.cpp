#include "analysis/rungs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "layer/gemm_path.hpp"
#include "layer/row_tiles.hpp"
#include "layer/tables.hpp"

namespace fusescope::analysis {
namespace {

constexpr int kDraws = 2000;
constexpr double kOutside = 0.025;  // on either side of an interval

using Walls = std::array<RungWalls, kRungs.size()>;
using Medians = std::array<double, kRungs.size()>;

double median(std::vector<double>& values) {
  const auto upper = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), upper, values.end());
  if (values.size() % 2 == 1) {
    return *upper;
  }
  return (*std::max_element(values.begin(), upper) + *upper) / 2;
}

Medians medians_of(const Walls& walls, const std::vector<std::size_t>& rounds) {
  Medians medians{};
  std::vector<double> pool;
  for (std::size_t rung = 0; rung < walls.size(); ++rung) {
    pool.clear();
    for (const std::size_t round : rounds) {
      pool.insert(pool.end(), walls[rung][round].begin(), walls[rung][round].end());
    }
    medians[rung] = median(pool);
  }
  return medians;
}

double cost_of(const Medians& medians, std::size_t cost) {
  return medians[cost + 1] - medians[cost];
}

double waiting_of(const Medians& medians) {
  return cost_of(medians, static_cast<std::size_t>(RungCost::arrival_limit)) +
         cost_of(medians, static_cast<std::size_t>(RungCost::ordering_loss));
}

Estimate estimate(double us, std::vector<double>& drawn) {
  std::sort(drawn.begin(), drawn.end());
  const auto at = [&](double share) {
    return drawn[static_cast<std::size_t>(
        std::lround(share * static_cast<double>(drawn.size() - 1)))];
  };
  return {us, std::min(us, at(kOutside)), std::max(us, at(1 - kOutside))};
}

void require_whole(const Walls& walls) {
  for (const RungWalls& rung : walls) {
    if (rung.empty() || rung.size() != walls.front().size() ||
        std::any_of(rung.begin(), rung.end(), [](const auto& round) { return round.empty(); })) {
      throw std::invalid_argument("make_rungs: every rung needs samples of the same rounds");
    }
  }
}

int waves(long long tiles, int sms) {
  return sms > 0 ? static_cast<int>((tiles + sms - 1) / sms) : 0;
}

double filled(long long tiles, int sms) {
  return static_cast<double>(tiles) / sms;
}

std::string wave_sentence(const KernelWaves& kernel) {
  const std::string counts =
      fmt::format("{}: {} tiles are {:.2f} waves on {} SMs and {:.2f} on the split's {}",
                  kernel.kernel, kernel.tiles, filled(kernel.tiles, kernel.sms_all), kernel.sms_all,
                  filled(kernel.tiles, kernel.sms_split), kernel.sms_split);
  const int more = kernel.waves_split() - kernel.waves_all();
  if (more == 0) {
    return counts + fmt::format(", {} after rounding up in both: the split costs no whole wave",
                                kernel.waves_all());
  }
  return counts + fmt::format(", {} and {} after rounding up: the SM tax holds {} whole wave{}",
                              kernel.waves_all(), kernel.waves_split(), more, more > 1 ? "s" : "");
}

std::vector<std::string> sentences_of(const Rungs& rungs) {
  std::vector<std::string> sentences;
  for (const KernelWaves& kernel : rungs.waves) {
    if (kernel.sms_split != kernel.sms_all) {
      sentences.push_back(wave_sentence(kernel) + ".");
    }
  }
  for (std::size_t i = 0; i < rungs.costs.size(); ++i) {
    const Estimate& cost = rungs.costs[i];
    const std::string_view called = name(static_cast<RungCost>(i));
    if (cost.low <= 0 && cost.high >= 0 && cost.high > cost.low) {
      sentences.push_back(fmt::format("The {} is within noise.", called));
    } else if (cost.us < 0) {
      sentences.push_back(fmt::format(
          "The {} is negative, and beyond noise: here that cost is a gain of {:.1f} us.", called,
          -cost.us));
    }
  }
  return sentences;
}

nlohmann::json json_of(const Estimate& estimate) {
  return {{"us", estimate.us}, {"low", estimate.low}, {"high", estimate.high}};
}

}  // namespace

int KernelWaves::waves_all() const {
  return waves(tiles, sms_all);
}
int KernelWaves::waves_split() const {
  return waves(tiles, sms_split);
}

std::vector<KernelWaves> kernel_waves(const Problem& problem, const Config& config,
                                      const DeviceLimits& device) {
  const Shape& shape = problem.shape;
  const ScheduleTables tables = build_tables_golden(shape, problem.routing, SlotOrder::by_token, 0);
  const TileShape tile = with_gemm_chosen(config, device).tile;
  const int tile_n = tile_columns(tile);
  const auto row_tiles =
      static_cast<long long>(fusescope::row_tiles(tables, row_grouping(tile)).size());
  const int sms = device.sms;
  const auto tiles = [&](int n) { return row_tiles * ((n + tile_n - 1) / tile_n); };
  return {{"dispatch_gemm", tiles(2 * shape.intermediate), sms, sms - config.dispatch_comm_sms},
          {"gemm_combine_push", tiles(shape.hidden), sms, sms - config.combine_comm_sms}};
}

std::string_view name(RungCost cost) {
  constexpr std::array<std::string_view, kRungCosts> kNames = {
      "SM tax", "contention", "arrival limit", "ordering loss", "tail"};
  return kNames[static_cast<std::size_t>(cost)];
}

std::string_view rung_name(Study study) {
  switch (study) {
    case Study::compute_all:
      return "compute only, all SMs";
    case Study::compute_split:
      return "compute only, the split's SMs";
    case Study::gates_open:
      return "communication beside it, no waits";
    case Study::ideal_order:
      return "waits on, ideal order";
    case Study::real_order:
      return "waits on, the config's order";
    case Study::full:
      return "full layer";
  }
  return "";
}

Rungs make_rungs(const Walls& walls, std::vector<KernelWaves> waves) {
  require_whole(walls);
  const std::size_t count = walls.front().size();
  std::vector<std::size_t> rounds(count);
  for (std::size_t i = 0; i < count; ++i) {
    rounds[i] = i;
  }
  const Medians medians = medians_of(walls, rounds);

  std::array<std::vector<double>, kRungs.size()> drawn_walls;
  std::array<std::vector<double>, kRungCosts> drawn_costs;
  std::vector<double> drawn_waiting;
  std::mt19937_64 random(1);
  for (int draw = 0; draw < kDraws; ++draw) {
    for (std::size_t& round : rounds) {
      round = random() % count;
    }
    const Medians drawn = medians_of(walls, rounds);
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      drawn_walls[i].push_back(drawn[i]);
    }
    for (std::size_t i = 0; i < drawn_costs.size(); ++i) {
      drawn_costs[i].push_back(cost_of(drawn, i));
    }
    drawn_waiting.push_back(waiting_of(drawn));
  }

  Rungs rungs;
  rungs.rounds = static_cast<int>(count);
  for (const std::vector<double>& round : walls.back()) {
    rungs.samples += static_cast<int>(round.size());
  }
  for (std::size_t i = 0; i < medians.size(); ++i) {
    rungs.walls[i] = estimate(medians[i], drawn_walls[i]);
  }
  for (std::size_t i = 0; i < rungs.costs.size(); ++i) {
    rungs.costs[i] = estimate(cost_of(medians, i), drawn_costs[i]);
  }
  rungs.waiting = estimate(waiting_of(medians), drawn_waiting);
  rungs.waves = std::move(waves);
  rungs.sentences = sentences_of(rungs);
  return rungs;
}

void hold_against(Rungs& rungs, double median_us, double half_ci_us) {
  const Telescoping held{median_us, rungs.full().us - median_us, rungs.full().half() + half_ci_us};
  rungs.telescoping = held;
  const std::string both = fmt::format(
      "the rungs sum to {:.1f} us, the run's own samples have a "
      "median of {:.1f} us",
      rungs.full().us, median_us);
  const double apart = std::abs(held.apart_us);
  std::string sentence;
  if (!held.agrees()) {
    sentence = fmt::format(
        "Warning: {}: they are {:.1f} us ({:.1f}%) apart, and their 95% intervals allow {:.1f} us. "
        "The "
        "two were sampled one after the other, and the machine was not in the same state: the "
        "costs are "
        "parts of the rungs' full layer, not of the run's wall.",
        both, apart, 100 * apart / median_us, held.bound_us);
  } else if (apart == 0) {
    sentence = "The rungs sum to the run's own wall exactly.";
  } else {
    sentence = fmt::format("{}: {:.1f} us apart, within their 95% intervals (+-{:.1f} us).", both,
                           apart, held.bound_us);
    sentence.front() = 'T';
  }
  rungs.sentences.insert(rungs.sentences.begin(), std::move(sentence));
}

std::string rungs_text(const Rungs& rungs) {
  const auto row = [&](std::string_view called, const Estimate& value, const char* format) {
    const std::string us = fmt::format(fmt::runtime(format), value.us);
    std::string line = fmt::format("{:<34} {:>10}", called, us);
    if (value.high > value.low) {
      line += fmt::format("  [{:.1f}, {:.1f}]", value.low, value.high);
    }
    return line + '\n';
  };
  std::string text =
      fmt::format("{:<34} {:>10}  {}\n", "counterfactual rungs", "us",
                  rungs.samples > 1 ? fmt::format("medians of {} samples in {} rounds of turns, "
                                                  "95% intervals",
                                                  rungs.samples, rungs.rounds)
                                    : "one iteration of each: the simulation has no noise");
  text += row(rung_name(kRungs.front()), rungs.compute(), "{:.1f}");
  for (std::size_t i = 0; i < rungs.costs.size(); ++i) {
    text += row(fmt::format("+ {}", name(static_cast<RungCost>(i))), rungs.costs[i], "{:+.1f}");
  }
  text += row("= full layer", rungs.full(), "{:.1f}");
  for (const std::string& sentence : rungs.sentences) {
    text += "  " + sentence + '\n';
  }
  return text;
}

std::string to_json(const Rungs& rungs) {
  nlohmann::json json = {{"rounds", rungs.rounds},
                         {"samples", rungs.samples},
                         {"walls_us", nlohmann::json::object()},
                         {"costs_us", nlohmann::json::object()},
                         {"waves", nlohmann::json::array()},
                         {"sentences", rungs.sentences}};
  for (std::size_t i = 0; i < rungs.walls.size(); ++i) {
    json["walls_us"][std::string(rung_name(kRungs[i]))] = json_of(rungs.walls[i]);
  }
  for (std::size_t i = 0; i < rungs.costs.size(); ++i) {
    json["costs_us"][std::string(name(static_cast<RungCost>(i)))] = json_of(rungs.costs[i]);
  }
  for (const KernelWaves& kernel : rungs.waves) {
    json["waves"].push_back({{"kernel", kernel.kernel},
                             {"tiles", kernel.tiles},
                             {"sms_all", kernel.sms_all},
                             {"sms_split", kernel.sms_split},
                             {"waves_all", kernel.waves_all()},
                             {"waves_split", kernel.waves_split()}});
  }
  json["waiting_us"] = json_of(rungs.waiting);
  if (rungs.telescoping) {
    json["telescoping"] = {{"run_median_us", rungs.telescoping->median_us},
                           {"apart_us", rungs.telescoping->apart_us},
                           {"bound_us", rungs.telescoping->bound_us},
                           {"agrees", rungs.telescoping->agrees()}};
  }
  return json.dump(2);
}

}  // namespace fusescope::analysis
