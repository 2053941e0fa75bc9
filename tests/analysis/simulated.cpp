#include "simulated.hpp"

#include <stdexcept>
#include <utility>

#include "engine/engine.hpp"
#include "engine/sim/profile.hpp"
#include "engine/sim/sim_engine.hpp"

namespace fusescope::analysis {

namespace {

constexpr const char* kProfile = "rtx-pro-5000-pcie5";
constexpr const char* kH200 = "h200-nvlink";

engine::RunRequest request_of(const Problem& problem, const Config& config) {
  engine::RunRequest request;
  request.problem = &problem;
  request.config = config;
  request.warmup = 0;
  request.min_samples = 1;
  request.command = "test";
  return request;
}

timeline::Timeline run(engine::Engine& engine, const Problem& problem, const Config& config) {
  engine::RunRequest request = request_of(problem, config);
  request.timeline = true;
  engine::RunResult result = engine.run(request);
  if (!result.timeline) {
    throw std::logic_error("the simulator recorded no timeline");
  }
  return std::move(*result.timeline);
}

engine::sim::SimEngine all_in_cache(const char* profile_name) {
  engine::sim::Profile profile = engine::sim::load_profile(profile_name);
  profile.l2 = 4096;
  return engine::sim::SimEngine(profile);
}

Rungs rungs_of(engine::Engine& engine, const Problem& problem, const Config& config) {
  engine::RunRequest request = request_of(problem, config);
  request.rung_rounds = 1;
  const engine::RunResult result = engine.run(request);
  std::array<RungWalls, kRungs.size()> walls;
  for (std::size_t i = 0; i < walls.size(); ++i) {
    walls[i] = result.rungs.at(i).wall_us;
  }
  return make_rungs(walls, {});
}

}  // namespace

timeline::Timeline simulated(const Problem& problem, const Config& config) {
  static const std::unique_ptr<engine::Engine> engine = engine::sim::make_sim_engine(kProfile);
  return run(*engine, problem, config);
}

timeline::Timeline simulated_on_h200(const Problem& problem, const Config& config) {
  static const std::unique_ptr<engine::Engine> engine = engine::sim::make_sim_engine(kH200);
  return run(*engine, problem, config);
}

timeline::Timeline simulated_in_cache(const Problem& problem, const Config& config) {
  static engine::sim::SimEngine engine = all_in_cache(kProfile);
  return run(engine, problem, config);
}

timeline::Timeline simulated_on_h200_in_cache(const Problem& problem, const Config& config) {
  static engine::sim::SimEngine engine = all_in_cache(kH200);
  return run(engine, problem, config);
}

Rungs simulated_rungs(const Problem& problem, const Config& config) {
  static const std::unique_ptr<engine::Engine> engine = engine::sim::make_sim_engine(kProfile);
  return rungs_of(*engine, problem, config);
}

Rungs simulated_rungs_on_h200(const Problem& problem, const Config& config) {
  static const std::unique_ptr<engine::Engine> engine = engine::sim::make_sim_engine(kH200);
  return rungs_of(*engine, problem, config);
}

Problem seed_problem(const std::string& routing) {
  return make_problem(load_shape("seed-tp4"), parse_routing(routing));
}

Problem small_problem(const std::string& routing) {
  return make_problem({.name = "small",
                       .ranks = 4,
                       .tokens_per_rank = 128,
                       .hidden = 2048,
                       .experts = 16,
                       .topk = 4,
                       .intermediate = 512,
                       .source = "a test"},
                      parse_routing(routing));
}

}  // namespace fusescope::analysis
