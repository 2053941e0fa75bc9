#include "simulated.hpp"

#include <stdexcept>
#include <utility>

#include "engine/engine.hpp"

namespace fusescope::analysis {

timeline::Timeline simulated(const Problem& problem, const Config& config) {
  static const std::unique_ptr<engine::Engine> engine = engine::make_engine({"sim", "", {}});
  engine::RunRequest request;
  request.problem = &problem;
  request.config = config;
  request.warmup = 0;
  request.min_samples = 1;
  request.timeline = true;
  request.command = "test";
  engine::RunResult result = engine->run(request);
  if (!result.timeline) {
    throw std::logic_error("the simulator recorded no timeline");
  }
  return std::move(*result.timeline);
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
