#include "engine/sim/figures.hpp"

#include <algorithm>

namespace fusescope::engine::sim {
namespace {

RunResult simulated(SimEngine& engine, const Problem& problem, const Config& config) {
  RunRequest request;
  request.problem = &problem;
  request.config = config;
  request.timeline = true;
  return engine.run(request);
}

// The longest such phase of any rank [us].
double phase_us(const timeline::Timeline& timeline, timeline::Kind kind) {
  std::int64_t longest = 0;
  for (const timeline::Event& event : timeline.events) {
    if (event.kind == kind) {
      longest = std::max(longest, event.end_ns - event.begin_ns);
    }
  }
  return static_cast<double>(longest) / 1e3;
}

// From kernel 1's begin until every row block of the first expert is open, on the slowest rank [us].
double head_us(const timeline::Timeline& timeline) {
  const timeline::Wiring& wiring = timeline.wiring;
  double slowest = 0;
  for (int rank = 0; rank < wiring.ranks; ++rank) {
    const std::vector<std::int32_t>& experts = wiring.expert_of_row_block[rank];
    std::int64_t begin = 0;
    std::int64_t opened = 0;
    for (const timeline::Event& event : timeline.events) {
      if (timeline.tracks[event.track].rank != rank) {
        continue;
      }
      if (event.kind == timeline::Kind::dispatch_gemm) {
        begin = event.begin_ns;
      } else if (event.kind == timeline::Kind::arrive) {
        const auto hits = wiring.hit_row_block[rank].begin() +
                          static_cast<std::ptrdiff_t>(event.token) * wiring.topk;
        const bool of_first = std::any_of(hits, hits + wiring.topk, [&](std::int32_t row_block) {
          return experts[row_block] == experts.front();
        });
        opened = of_first ? std::max(opened, event.end_ns) : opened;
      }
    }
    slowest = std::max(slowest, static_cast<double>(opened - begin) / 1e3);
  }
  return slowest;
}

}  // namespace

std::vector<FigurePrediction> predict_figures(SimEngine& engine, const Problem& problem,
                                              Config unordered, Config tuned) {
  // The seed rebuilt its schedule in kernels of their own.
  unordered.schedule = tuned.schedule = ScheduleSite::device;
  Config serial = tuned;
  serial.form = LayerForm::serial;
  Config compute_only = tuned;
  compute_only.study = Study::compute_all;

  const double serial_us = simulated(engine, problem, serial).samples.front().wall_us;
  const double unordered_us = simulated(engine, problem, unordered).samples.front().wall_us;
  const RunResult tuned_run = simulated(engine, problem, tuned);
  const RunResult compute_run = simulated(engine, problem, compute_only);
  const double exposed = phase_us(*tuned_run.timeline, timeline::Kind::dispatch_gemm) -
                         phase_us(*compute_run.timeline, timeline::Kind::dispatch_gemm);
  return {
      {figure::kFusedUnorderedVsSerial, unordered_us / serial_us - 1, "ratio"},
      {figure::kTunedVsSerial, tuned_run.samples.front().wall_us / serial_us - 1, "ratio"},
      {figure::kExposedKernel1, exposed, "us"},
      {figure::kHeadShare, head_us(*tuned_run.timeline) / exposed, "ratio"},
      {figure::kScheduleRebuild, phase_us(*tuned_run.timeline, timeline::Kind::schedule_build),
       "us"},
  };
}

}  // namespace fusescope::engine::sim
