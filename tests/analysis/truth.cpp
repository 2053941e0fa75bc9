#include "truth.hpp"

#include <algorithm>
#include <stdexcept>

namespace fusescope::analysis {
namespace {

using timeline::Event;
using timeline::Kind;
using timeline::Timeline;

constexpr int kLateRank = 1;
constexpr int kLateToken = 7;   // moved early by a fused layer of either shape
constexpr int kLateExpert = 3;  // its tokens are among the first that are moved

template <Kind kind>
bool is_of_kind(const Timeline&, const Event& event, const Inject&) {
  return event.kind == kind;
}

bool is_pull_of_rank(const Timeline&, const Event& event, const Inject& inject) {
  return event.kind == Kind::pull && event.peer == inject.rank;
}

bool is_pull_of_token(const Timeline&, const Event& event, const Inject& inject) {
  return event.kind == Kind::pull && event.token == inject.token;
}

bool is_pull_of_expert(const Timeline& timeline, const Event& event, const Inject& inject) {
  if (event.kind != Kind::pull || event.token < 0) {
    return false;
  }
  const auto rank = static_cast<std::size_t>(timeline.tracks.at(event.track).rank);
  const std::vector<std::int32_t>& row_blocks = timeline.wiring.hit_row_block.at(rank);
  const std::vector<std::int32_t>& experts = timeline.wiring.expert_of_row_block.at(rank);
  const auto topk = static_cast<std::size_t>(timeline.wiring.topk);
  const std::size_t first = static_cast<std::size_t>(event.token) * topk;
  for (std::size_t hit = first; hit < first + topk; ++hit) {
    if (experts.at(static_cast<std::size_t>(row_blocks.at(hit))) == inject.expert) {
      return true;
    }
  }
  return false;
}

std::int64_t sum(const CriticalPath& path, const std::vector<Step>& steps) {
  std::int64_t ns = 0;
  for (const Step step : steps) {
    ns += path.by_step[static_cast<std::size_t>(step)];
  }
  return ns;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const TruthPoint& point) {
  return out << point.name;
}

// Delays are large against the few microseconds by which ranks differ: whichever rank is last after the
// delay, its own share of the other steps comes with it.
const std::vector<TruthPoint>& truth_points() {
  static const std::vector<Step> dispatch = {Step::dispatch_head, Step::dispatch_order,
                                             Step::dispatch_bandwidth};
  static const std::vector<Step> jobs = {Step::combine_work, Step::push_drain};
  static const std::vector<TruthPoint> points = {
      {InjectPoint::pull, "pull", is_of_kind<Kind::pull>, dispatch, {100, 200, 400}},
      {InjectPoint::scatter, "scatter", is_of_kind<Kind::scatter>, dispatch, {100, 200, 400}},
      {InjectPoint::job, "job", is_of_kind<Kind::sum>, jobs, {100, 200, 400}},
      {InjectPoint::push, "push", is_of_kind<Kind::push>, jobs, {100, 200, 400}},
      {InjectPoint::watermark,
       "watermark",
       is_of_kind<Kind::watermark>,
       {Step::watermark},
       {200, 400, 800}},
      {InjectPoint::source_rank, "source rank", is_pull_of_rank, dispatch, {100, 200, 400}},
      {InjectPoint::token, "token", is_pull_of_token, dispatch, {800, 1600, 3200}},
      {InjectPoint::expert, "expert", is_pull_of_expert, dispatch, {800, 1600, 3200}},
  };
  return points;
}

Inject injection(const TruthPoint& point, int delay_us) {
  Inject inject;
  inject.point = point.point;
  inject.delay_ns = delay_us * 1000;
  inject.rank = point.point == InjectPoint::source_rank ? kLateRank : -1;
  inject.token = point.point == InjectPoint::token ? kLateToken : -1;
  inject.expert = point.point == InjectPoint::expert ? kLateExpert : -1;
  return inject;
}

Told told(const TruthPoint& point, const Inject& inject, const Timeline& timeline) {
  const CriticalPath path = critical_path(timeline);
  Told told;
  told.wall_ns = timeline.wall_ns();
  for (const Segment& segment : path.segments) {
    if (segment.event != UINT32_MAX &&
        point.is_delayed(timeline, timeline.events[segment.event], inject)) {
      told.at_point_ns += segment.end_ns - segment.begin_ns;
    }
  }
  told.in_steps_ns = sum(path, point.steps);
  told.tiles_ns = sum(path, {Step::gemm_1, Step::gemm_2});
  told.exposed_ns = path.exposed_communication_ns();
  return told;
}

TruthRow compare_told(std::span<const Told> without, std::span<const Told> with) {
  if (without.empty() || without.size() != with.size()) {
    throw std::invalid_argument("compare_told: as many iterations with the delay as without");
  }
  const auto difference = [&](std::int64_t Told::*part) {
    std::vector<double> us;
    for (std::size_t i = 0; i < with.size(); ++i) {
      us.push_back(static_cast<double>(with[i].*part - without[i].*part) / 1e3);
    }
    return median(std::move(us));
  };
  std::vector<double> walls;
  for (const Told& one : without) {
    walls.push_back(static_cast<double>(one.wall_ns) / 1e3);
  }
  TruthRow row;
  row.spread_us =
      *std::max_element(walls.begin(), walls.end()) - *std::min_element(walls.begin(), walls.end());
  row.base_us = median(std::move(walls));
  row.added_us = difference(&Told::wall_ns);
  row.at_point_us = difference(&Told::at_point_ns);
  row.in_steps_us = difference(&Told::in_steps_ns);
  row.tiles_us = difference(&Told::tiles_ns);
  row.exposed_us = difference(&Told::exposed_ns);
  return row;
}

}  // namespace fusescope::analysis
