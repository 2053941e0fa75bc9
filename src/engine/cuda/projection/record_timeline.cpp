// Iterations without records and with, in turn; the clocks of the devices before and after; the timeline.

#include <algorithm>

#include "base/error.hpp"
#include "base/version.hpp"
#include "engine/cuda/projection/records.hpp"
#include "engine/cuda/projection/runner.hpp"
#include "kernels/clock_ping.hpp"
#include "timeline/collect/clock_alignment.hpp"

namespace fusescope::engine::cuda::projection {
namespace {

double median_wall(Runner& runner, int iterations, Sample& last) {
  std::vector<double> walls;
  runner.run_once();  // warm
  for (int i = 0; i < std::max(iterations, 1); ++i) {
    last = runner.run_once();
    walls.push_back(last.wall_us);
  }
  std::sort(walls.begin(), walls.end());
  return walls[walls.size() / 2];
}

// Exchanges of every pair of devices in use, which must be idle.
std::vector<timeline::ClockPings> ping_all(const std::vector<Device>& devices) {
  std::vector<timeline::ClockPings> pairs;
  for (std::size_t local = 0; local < devices.size(); ++local) {
    for (std::size_t remote = local + 1; remote < devices.size(); ++remote) {
      timeline::ClockPings pair;
      pair.local = static_cast<int>(local);
      pair.remote = static_cast<int>(remote);
      pair.start = kernels::ping_clocks(devices[local].index, devices[remote].index);
      pairs.push_back(std::move(pair));
    }
  }
  return pairs;
}

double timer_step_ns(const std::vector<Device>& devices) {
  std::uint64_t most = 0;
  for (const Device& device : devices) {
    most = std::max(most, kernels::measure_timer_step(device.index));
  }
  return static_cast<double>(most);
}

std::vector<std::vector<kernels::Bf16>> outputs_of(Runner& runner) {
  std::vector<std::vector<kernels::Bf16>> outputs;
  for (int r = 0; r < runner.memory().ranks(); ++r) {
    outputs.push_back(runner.memory().read_output(r));
  }
  return outputs;
}

}  // namespace

RecordedRun record_timeline(Runner& runner, const Config& wanted, int iterations) {
  const Shape& shape = runner.memory().shape();
  const std::vector<Device>& devices = runner.devices();
  const Config config = with_gemm_chosen(wanted, limits_of(devices.front()));
  RecordedRun result;
  timeline::Meta& meta = result.timeline.meta;
  Sample sample;
  runner.configure(config);
  meta.unrecorded_us = median_wall(runner, iterations, sample);
  const auto plain = outputs_of(runner);

  runner.configure_recorded(config);
  runner.run_once();  // loads what the clocks' exchange must not wait for
  std::vector<timeline::ClockPings> pings = ping_all(devices);
  meta.recorded_us = median_wall(runner, iterations, sample);
  std::vector<timeline::ClockPings> after = ping_all(devices);
  if (outputs_of(runner) != plain) {
    throw CheckFailure("outputs change when records are written (" + describe(wanted) + ")",
                       CheckFailure::Kind::wrong_output);
  }
  for (std::size_t pair = 0; pair < pings.size(); ++pair) {
    pings[pair].end = std::move(after[pair].start);
  }
  const timeline::ClockAlignment clocks =
      timeline::align_clocks(static_cast<int>(devices.size()), pings, timer_step_ns(devices));

  std::vector<RankTape> tapes;
  std::vector<std::vector<std::int32_t>> orders;
  for (int r = 0; r < shape.ranks; ++r) {
    tapes.push_back(runner.records().read(r));
    orders.push_back(push_order(shape, config, r));
  }
  std::vector<timeline::RankRecords> ranks;
  for (int r = 0; r < shape.ranks; ++r) {
    const auto at = static_cast<std::size_t>(r);
    timeline::RankRecords& rank = ranks.emplace_back();
    rank.rank = r;
    rank.device = runner.memory().rank(r).device;
    rank.layout = runner.records().layout(r);
    rank.records = tapes[at].records;
    rank.dropped = tapes[at].dropped;
    rank.phases = tapes[at].phases;
    rank.job_order = orders[at];
    const auto place = std::find_if(devices.begin(), devices.end(), [&](const Device& device) {
      return device.index == rank.device;
    });
    rank.clock = clocks.devices.at(static_cast<std::size_t>(place - devices.begin()));
  }
  result.timeline.wiring = wiring_of(shape, config);
  result.report = decode_records(ranks, result.timeline);

  meta.provenance = timeline::Provenance::measured;
  meta.device = devices.front().name;
  meta.sms = devices.front().sms;
  meta.clock_bound_ns = clocks.bound_ns;
  meta.problem = "gemm-reduce-scatter " + describe(shape);
  meta.config = describe(config);
  meta.commit = commit();
  meta.chosen = "the last of " + std::to_string(std::max(iterations, 1)) + " recorded iterations";
  meta.clocks = describe(clocks);
  meta.combine_clock_mhz = sample.sm_clock_mhz;
  return result;
}

}  // namespace fusescope::engine::cuda::projection
