#include "cli/prediction.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "engine/engine.hpp"

namespace fusescope::cli {
namespace {

double predicted_wall(engine::Engine& engine, const Problem& problem, const Config& config) {
  engine::RunRequest request;
  request.problem = &problem;
  request.config = config;
  request.warmup = 0;
  request.min_samples = 1;
  request.target_rel_ci = std::numeric_limits<double>::infinity();
  try {
    return engine.run(request).samples.front().wall_us;
  } catch (const InputError&) {
    return std::numeric_limits<double>::quiet_NaN();  // the simulator's device cannot run it
  }
}

}  // namespace

sweep::Predict make_prediction(const std::string& profile, const Problem& problem) {
  const std::string guide = profile.empty() ? kGuideProfile : profile;
  const std::shared_ptr<engine::Engine> engine = engine::make_engine({"sim", guide, {}});
  return [engine, guide, &problem](const std::vector<Config>& configs) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<double> walls(configs.size());
    std::atomic<std::size_t> next = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < std::max(1, engine->parallel_runs()); ++i) {
        threads.emplace_back([&] {
          for (std::size_t at = next++; at < configs.size(); at = next++) {
            walls[at] = predicted_wall(*engine, problem, configs[at]);
          }
        });
      }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::fprintf(stderr, "guide: %zu configs simulated on %s in %.1f s\n", configs.size(),
                 guide.c_str(), took.count());
    return walls;
  };
}

}  // namespace fusescope::cli
