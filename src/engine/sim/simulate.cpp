#include "engine/sim/simulate.hpp"

#include <algorithm>
#include <string>

#include "engine/sim/kernels.hpp"

namespace fusescope::engine::sim {
namespace {

timeline::Wiring wiring_of(const World& world) {
  timeline::Wiring wiring;
  wiring.ranks = world.shape.ranks;
  wiring.tokens_per_rank = world.shape.tokens_per_rank;
  wiring.topk = world.shape.topk;
  wiring.n_tiles_1 = world.costs.gemm_1.n_tiles;
  wiring.n_tiles_2 = world.costs.gemm_2.n_tiles;
  wiring.watermark_chunks = world.config.watermark_chunks;
  for (const std::unique_ptr<Rank>& rank : world.ranks) {
    std::vector<std::int32_t> row_blocks;
    row_blocks.reserve(rank->tables.slots.size());
    for (const std::int32_t slot : rank->tables.slots) {
      row_blocks.push_back(slot / kRowBlock);
    }
    wiring.hit_row_block.push_back(std::move(row_blocks));
    wiring.expert_of_row_block.push_back(rank->expert_of_row_block);
    if (world.costs.grouping.merges()) {
      wiring.tile_of_row_block.push_back(tiles_of_row_blocks(rank->row_tiles));
    }
  }
  return wiring;
}

// What must hold at the end of every full fused iteration.
void check_protocol(const World& world) {
  for (const std::unique_ptr<Rank>& rank : world.ranks) {
    const auto refuse = [&](const std::string& what) {
      throw CheckFailure("rank " + std::to_string(rank->id) + " ends its iteration with " + what);
    };
    if (rank->dispenser.taken() != rank->dispenser.jobs()) {
      refuse(std::to_string(rank->dispenser.taken()) + " of " +
             std::to_string(rank->dispenser.jobs()) + " jobs done");
    }
    for (const FillCounter& counter : rank->arrivals) {
      if (!counter.is_open()) {
        refuse("an arrival counter at " + std::to_string(counter.value()));
      }
    }
    for (const FillCounter& watermark : rank->watermarks) {
      if (!watermark.is_open()) {
        refuse("a watermark that nobody raised");
      }
    }
  }
}

}  // namespace

std::vector<ScheduleTables> tables_for(const Problem& problem, const Config& config) {
  const SlotOrder order =
      config.study == Study::ideal_order ? SlotOrder::interleave_sources : config.slot_order;
  const int layouts = order == SlotOrder::rotate_from_self ? problem.shape.ranks : 1;
  std::vector<ScheduleTables> tables;
  tables.reserve(static_cast<std::size_t>(layouts));
  for (int rank = 0; rank < layouts; ++rank) {
    tables.push_back(build_tables_golden(problem.shape, problem.routing, order, rank));
  }
  return tables;
}

Iteration simulate(const Problem& problem, const Config& config, const Profile& profile,
                   const std::vector<ScheduleTables>& tables, std::uint64_t seed, bool record,
                   StepChooser* chooser) {
  World world(problem, config, profile, tables, seed, record, chooser);
  const bool serial = config.form == LayerForm::serial;
  for (const std::unique_ptr<Rank>& rank : world.ranks) {
    world.scheduler.spawn(serial ? run_serial_layer(*rank) : run_fused_layer(*rank));
  }
  world.scheduler.run();
  if (!serial && config.study == Study::full) {
    check_protocol(world);
  }

  Iteration iteration;
  iteration.rank_wall = world.wall;
  iteration.steps = world.scheduler.steps_run();
  if (record) {
    timeline::Timeline& timeline = iteration.timeline.emplace();
    timeline.wiring = wiring_of(world);
    timeline.begin_ns = 0;
    timeline.end_ns = *std::max_element(world.wall.begin(), world.wall.end());
    world.recorder.finish(timeline);
    if (!serial) {
      add_counters(timeline, world.costs.row_bytes);
    }
  }
  return iteration;
}

}  // namespace fusescope::engine::sim
