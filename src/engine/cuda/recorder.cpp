#include "engine/cuda/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/version.hpp"
#include "engine/cuda/record_memory.hpp"
#include "engine/cuda/record_turns.hpp"
#include "kernels/clock_ping.hpp"
#include "layer/row_tiles.hpp"
#include "timeline/collect/clock_alignment.hpp"

namespace fusescope::engine::cuda {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
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

// `grouping`: of the configured tile.
void wire(LayerRunner& runner, const RowGrouping& grouping, timeline::Timeline& timeline,
          std::vector<ScheduleTables>& tables) {
  const RankPlan& plan = runner.plan(0);
  timeline::Wiring& wiring = timeline.wiring;
  wiring.ranks = plan.layer.ranks;
  wiring.tokens_per_rank = plan.layer.tokens_per_rank;
  wiring.topk = plan.layer.topk;
  wiring.n_tiles_1 = plan.dispatch.gemm.n_tiles;
  wiring.n_tiles_2 = plan.combine.gemm.n_tiles;
  wiring.watermark_chunks = plan.combine.combine.watermark_chunks;
  for (int r = 0; r < runner.memory().ranks(); ++r) {
    tables.push_back(runner.memory().read_tables(r));
    std::vector<std::int32_t> row_blocks;
    row_blocks.reserve(tables.back().slots.size());
    for (const std::int32_t slot : tables.back().slots) {
      row_blocks.push_back(slot / kRowBlock);
    }
    wiring.hit_row_block.push_back(std::move(row_blocks));
    wiring.expert_of_row_block.push_back(experts_of_row_blocks(tables.back()));
    if (grouping.merges()) {
      wiring.tile_of_row_block.push_back(tiles_of_row_blocks(row_tiles(tables.back(), grouping)));
    }
  }
}

std::vector<timeline::RankRecords> rank_records(LayerRunner& runner, const Recorded& chosen,
                                                const std::vector<ScheduleTables>& tables,
                                                const timeline::ClockAlignment& clocks) {
  std::vector<timeline::RankRecords> ranks;
  for (int r = 0; r < runner.memory().ranks(); ++r) {
    const auto rank = static_cast<std::size_t>(r);
    const RankPlan& plan = runner.plan(r);
    const RankTape& tape = chosen.tapes.at(rank);
    timeline::RankRecords records;
    records.rank = r;
    records.device = runner.memory().rank(r).device;
    records.layout = runner.records().layout(r);
    records.records = tape.records;
    records.dropped = tape.dropped;
    records.phases = tape.phases;
    if (plan.combine.layer.job_order != nullptr) {
      records.job_order = tables[rank].job_order;
    }
    records.fetches_first = plan.dispatch.fetches_first;
    records.tokens_pushed = plan.layer.tokens_pushed;
    records.block_per_job = plan.combine.announces_residency;
    const auto& devices = runner.devices();
    const auto place = std::find_if(devices.begin(), devices.end(), [&](const Device& device) {
      return device.index == records.device;
    });
    records.clock = clocks.devices.at(static_cast<std::size_t>(place - devices.begin()));
    ranks.push_back(records);
  }
  return ranks;
}

// The first rank of each device gets its counters.
void add_counters(LayerRunner& runner, const Recorded& chosen,
                  const timeline::ClockAlignment& clocks, RecordedTimeline& result) {
  std::string& said = result.timeline.meta.clocks;
  for (std::size_t i = 0; i < chosen.counters.size(); ++i) {
    const int device = runner.devices()[i].index;
    int rank = 0;
    while (runner.memory().rank(rank).device != device) {
      ++rank;
    }
    const auto& [samples, of_copy] = chosen.counters[i];
    const std::int64_t origin = result.report.origin_ns;
    add_pm_counters(samples, rank, clocks.devices[i], origin, result.timeline);
    result.link_bytes.push_back(
        {device, link_bytes(samples, clocks.devices[i], origin, result.timeline), of_copy});
    said += fmt::format("; samples of GPU {} moved by {:+.1f} us, then known to +-{:.1f} us",
                        device, samples.shift_ns / 1e3, samples.bound_ns / 1e3);
    constexpr double kSeesAll = 0.02;
    if (of_copy.written > 0 && std::abs(of_copy.written - 1) > kSeesAll) {
      said += fmt::format(" (its link counters see {:.1f}% of a copy of known size)",
                          100 * of_copy.written);
    }
  }
}

// The tapes of a median are kept until all walls are known: not more of them than that.
int iterations_to_record(const RecorderOptions& options, std::size_t bytes) {
  constexpr std::size_t kMostHeldBytes = std::size_t{2} << 30;
  constexpr std::size_t kLeast = 3;
  const auto wanted = static_cast<std::size_t>(std::max(options.iterations, 1));
  if (options.choice.pick != IterationChoice::Pick::median) {
    return static_cast<int>(wanted);
  }
  const std::size_t held = std::max(kLeast, kMostHeldBytes / std::max<std::size_t>(bytes, 1));
  return static_cast<int>(std::min(wanted, held));
}

}  // namespace

std::string why_not_recorded(const Config& config) {
  if (config.form == LayerForm::serial) {
    return "the kernels of the serial layer do not record";
  }
  if (config.study != Study::full) {
    return "a study leaves out what the records of a layer are tied together by";
  }
  return "";
}

RecordedTimeline record_timeline(LayerRunner& runner, const Problem& problem, const Config& config,
                                 const RecorderOptions& options) {
  if (options.choice.pick == IterationChoice::Pick::number &&
      options.choice.number >= options.iterations) {
    throw InputError({"", "iteration",
                      fmt::format("{} is not among the {} that are recorded, counted from 0",
                                  options.choice.number, options.iterations),
                      fmt::format("0 to {}, median or slowest", options.iterations - 1)});
  }
  runner.prepare_records(options.most_per_writer);
  RecordedTimeline result;
  result.buffer_bytes = runner.records().bytes();
  runner.run_recorded();
  const std::uint64_t recorded_bits = runner.output_checksum();
  runner.run_once();
  if (runner.output_checksum() != recorded_bits) {
    throw CheckFailure("outputs change when records are written (" + describe(config) + ")",
                       CheckFailure::Kind::wrong_output);
  }

  const double step_ns = timer_step_ns(runner.devices());
  std::vector<timeline::ClockPings> pings = ping_all(runner.devices());
  std::unique_ptr<CounterSampling> counters;
  if (options.counters) {
    counters = CounterSampling::make(runner.devices(), result.why_no_counters);
  }
  const Turns turns =
      take_turns(runner, options.choice, iterations_to_record(options, result.buffer_bytes),
                 options.rest, counters.get());
  std::vector<timeline::ClockPings> pings_after = ping_all(runner.devices());
  for (std::size_t pair = 0; pair < pings.size(); ++pair) {
    pings[pair].end = std::move(pings_after[pair].start);
  }
  const timeline::ClockAlignment clocks =
      align_clocks(static_cast<int>(runner.devices().size()), pings, step_ns);

  const Recorded& chosen = chosen_of(turns, options.choice);
  timeline::Timeline& timeline = result.timeline;
  std::vector<ScheduleTables> tables;
  wire(runner, row_grouping(config.tile), timeline, tables);
  result.report = decode_records(rank_records(runner, chosen, tables, clocks), timeline);
  timeline::Meta& meta = timeline.meta;
  meta.provenance = timeline::Provenance::measured;
  meta.device = runner.devices().front().name;
  meta.sms = runner.devices().front().sms;
  meta.programmatic = config.launch == LaunchOrder::programmatic;
  meta.clock_bound_ns = clocks.bound_ns;
  meta.problem = describe(problem);
  meta.config = describe(config);
  meta.commit = commit();
  meta.chosen = describe_choice(turns, options.choice);
  meta.clocks = describe(clocks);
  if (counters != nullptr) {
    result.why_no_counters = chosen.why_no_counters;
    add_counters(runner, chosen, clocks, result);
  }
  meta.unrecorded_us = median(turns.unrecorded_us);
  std::vector<double> recorded_us;
  for (const Recorded& recorded : turns.recorded) {
    recorded_us.push_back(recorded.wall_us);
  }
  meta.recorded_us = median(std::move(recorded_us));
  meta.dispatch_clock_mhz = chosen.clock_mhz[0];
  meta.combine_clock_mhz = chosen.clock_mhz[1];
  return result;
}

}  // namespace fusescope::engine::cuda
