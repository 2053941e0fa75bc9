#include "engine/sim/world.hpp"

#include <algorithm>

namespace fusescope::engine::sim {
namespace {

std::vector<FillCounter> arrival_counters(const ScheduleTables& tables) {
  std::vector<FillCounter> counters;
  counters.reserve(tables.slack.size());
  for (std::size_t block = 0; block < tables.slack.size(); ++block) {
    counters.emplace_back(tables.slack[block], kRowBlock, "the arrival counter of row block",
                          static_cast<int>(block));
  }
  return counters;
}

std::vector<FillCounter> counters(int count, int full, const char* what) {
  std::vector<FillCounter> result;
  result.reserve(static_cast<std::size_t>(count));
  for (int id = 0; id < count; ++id) {
    result.emplace_back(0, full, what, id);
  }
  return result;
}

std::vector<double> untouched(int count) {
  return std::vector<double>(static_cast<std::size_t>(count), -1.0);
}

}  // namespace

Kernel::Kernel(int rank, int blocks, int sms)
    : ended_(0, blocks, "the block count of a kernel", rank) {
  const int free = std::max(0, sms - blocks);
  for (int sm = 0; sm < sms; ++sm) {
    left_.emplace_back(sm < free ? 1 : 0, 1, "the freeing of SM", sm);
  }
  next_left_ = static_cast<std::size_t>(free);
}

void Kernel::end_block(Scheduler& scheduler, Time follows_after) {
  if (next_left_ < left_.size()) {
    left_[next_left_++].add(scheduler, follows_after);
  }
  ended_.add(scheduler, 0);
}

Rank::Rank(World& its_world, int its_id, const ScheduleTables& its_tables, std::uint64_t seed)
    : world(its_world),
      id(its_id),
      tables(its_tables),
      expert_of_row_block(experts_of_row_blocks(its_tables)),
      row_tiles(fusescope::row_tiles(its_tables, world.costs.grouping)),
      memory(world.costs.memory_rate, world.costs.cache_bytes),
      pull_lines(static_cast<std::size_t>(world.shape.ranks)),
      push_lines(static_cast<std::size_t>(world.shape.ranks)),
      weights_1(untouched(world.shape.experts * world.costs.gemm_1.n_tiles)),
      weights_2(untouched(world.shape.experts * world.costs.gemm_2.n_tiles)),
      gathered(untouched(tables.row_blocks())),
      activated(untouched(tables.row_blocks())),
      partials(untouched(tables.row_blocks())),
      arrivals(arrival_counters(tables)),
      computed(counters(tables.row_blocks(), world.costs.gemm_1.n_tiles,
                        "the computed counter of row block")),
      done(counters(tables.row_blocks(), world.costs.gemm_2.n_tiles,
                    "the done counter of row block")),
      dispenser(world.shape.tokens()),
      election(world.shape.ranks, world.config.watermark_chunks, world.shape.tokens_per_rank),
      watermarks(counters(world.shape.ranks * world.config.watermark_chunks, 1, "watermark")),
      random_(seed, static_cast<std::uint64_t>(its_id)) {
  stream = world.recorder.add_track(id, Stage::stream, Role::stream, 0);
}

Kernel* Rank::kernel_before(Stage stage) {
  if (!world.overlaps() || stage == Stage::dispatch_gemm) {
    return nullptr;
  }
  return &kernel(stage == Stage::final_reduce ? Stage::gemm_combine_push : Stage::dispatch_gemm);
}

FramePool& Rank::frame_pool() {
  return world.scheduler.frame_pool();
}

int Rank::row_block(int token, int k) const {
  const std::size_t hit = static_cast<std::size_t>(token) * world.shape.topk + k;
  return tables.slots[hit] / kRowBlock;
}

FillCounter& Rank::watermark(int sender, int chunk) {
  return watermarks.at(static_cast<std::size_t>(sender) * world.config.watermark_chunks + chunk);
}

double Rank::noise() {
  if (world.profile.jitter == 0) {
    return 1;
  }
  // Twelve uniform numbers have a variance of 1, and their sum is as good as normal.
  double deviation = -6;
  for (int i = 0; i < 12; ++i) {
    deviation += random_.unit();
  }
  return std::max(0.5, 1 + world.profile.jitter * deviation);
}

World::World(const Problem& its_problem, const Config& its_config, const Profile& its_profile,
             const std::vector<ScheduleTables>& tables, std::uint64_t seed, bool record,
             StepChooser* chooser)
    : problem(its_problem),
      shape(its_problem.shape),
      config(its_config),
      profile(its_profile),
      costs(make_costs(its_profile, shape, its_config, tables.front().rows())),
      scheduler(chooser),
      recorder(record),
      ids_exchanged(scheduler, shape.ranks, rounded(costs.ids_exchange)),
      entry_barrier(scheduler, shape.ranks, us(profile.barrier_latency)),
      copied_barrier(scheduler, shape.ranks, us(profile.barrier_latency)),
      rows_gathered(scheduler, shape.ranks, rounded(costs.all_gather)),
      rows_reduced(scheduler, shape.ranks, rounded(costs.reduce_scatter)),
      wall(static_cast<std::size_t>(shape.ranks), 0) {
  for (int rank = 0; rank < shape.ranks; ++rank) {
    ranks.push_back(std::make_unique<Rank>(
        *this, rank, tables[static_cast<std::size_t>(rank) % tables.size()], seed));
  }
}

int World::chunk_of(int token) const {
  const long long row = token % shape.tokens_per_rank;
  return static_cast<int>(row * config.watermark_chunks / shape.tokens_per_rank);
}

}  // namespace fusescope::engine::sim
