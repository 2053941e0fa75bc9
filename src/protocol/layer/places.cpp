#include "protocol/layer/places.hpp"

#include <algorithm>

namespace fusescope::protocol {
namespace {

constexpr int kSmemRows = kMostTokensPerBlock * kMostPushRows;
constexpr int kGemmRows = kStages + kMostChunks;
static_assert(kSmemRows > kRoomRow);

Name of(const char* what, int rank, int i = -1) {
  return {what, static_cast<std::int16_t>(rank), static_cast<std::int16_t>(i), -1, -1};
}

// kernels/job_memory.cuh: rows, pieces, control.
JobPlaces add_jobs(Machine& machine, const Scenario& s, CellId first) {
  JobPlaces jobs{};
  jobs.rows = first;
  jobs.pieces = jobs.rows + kJobRows * job_columns(s);
  jobs.control = jobs.pieces + kJobPieces * (s.topk + 1);
  jobs.piece_tokens = jobs.control + 1;
  jobs.row_tokens = jobs.piece_tokens + kJobPieces;
  jobs.full = machine.add_mbarriers(kJobPieces);
  jobs.empty = machine.add_mbarriers(kJobPieces);
  jobs.summed = machine.add_mbarriers(kJobRows);
  jobs.drained = machine.add_mbarriers(kJobRows);
  return jobs;
}

int job_cells(const Scenario& s) {
  return kJobRows * job_columns(s) + kJobPieces * (s.topk + 1) + 1 + kJobPieces + kJobRows;
}

BlockPlaces add_block(Machine& machine, const Scenario& s, int rank, int device, int block) {
  Memory& memory = machine.memory();
  BlockPlaces places{};
  const int for_jobs = kMostJobGroups * job_cells(s);
  places.row_pitch = std::max(stage_rows(s) + 1, for_jobs / kGemmRows);
  places.smem =
      memory.add(of("smem", rank, block), std::max(kSmemRows * places.row_pitch, for_jobs));
  for (int group = 0; group < kMostJobGroups; ++group) {
    places.jobs[group] = add_jobs(machine, s, places.smem + group * job_cells(s));
  }
  places.stage_tiles = memory.add(of("stage_tile", rank, block), kStages);
  places.chunk_tiles = memory.add(of("chunk_tile", rank, block), kConsumers * kMostChunks);
  places.lenders = memory.add(of("lender", rank, block), kConsumers * kMostChunks);
  places.next = memory.add(of("next", rank, block), 1);
  places.gave_up = memory.add(of("gave_up", rank, block), 1);
  places.fetch_state = memory.add(of("fetch_state", rank, block), 1);
  places.cells = places.fetch_state + 1 - places.smem;
  places.full = machine.add_mbarriers(kStages);
  places.empty = machine.add_mbarriers(kStages);
  places.staged = machine.add_mbarriers(kConsumers * kMostChunks);
  places.drained = machine.add_mbarriers(kConsumers * kMostChunks);
  places.prepared = machine.add_mbarriers(1);
  places.found = machine.add_mbarriers(1);
  places.asked = machine.add_mbarriers(1);
  places.fetched = machine.add_mbarriers(1);
  places.landed = machine.add_mbarriers(kMostTokensPerBlock);
  places.rows_landed = machine.add_mbarriers(kStages);
  places.named = machine.add_barriers(kNamedBarriers);
  places.halves = machine.add_words(of("halves_stored", rank, block), kJoinSlots, device);
  return places;
}

}  // namespace

std::vector<RankPlaces> add_places(Machine& machine, const Scenario& s, int row_blocks) {
  Memory& memory = machine.memory();
  const int chunks = s.config.watermark_chunks;
  const int tiles = row_blocks * s.n_tiles() * s.row_block;
  std::vector<RankPlaces> ranks;
  for (int r = 0; r < s.ranks; ++r) {
    const int device = s.device_of(r);
    RankPlaces p{};
    p.input = memory.add(of("input", r), s.tokens_per_rank);
    p.own_ids = memory.add(of("own_ids", r), 1);
    p.own_weights = memory.add(of("own_weights", r), 1);
    p.host_ids = memory.add(of("host copy of ids", r), 1);
    p.host_tables = memory.add(of("host tables", r), 1);
    p.diagnosis = memory.add(of("diagnosis", r), 1);
    p.output = memory.add(of("output", r), s.tokens_per_rank);
    p.ids = memory.add(of("ids of source", r), s.ranks);
    p.weights = memory.add(of("weights", r), s.tokens());
    p.tokens = memory.add(of("tokens", r), s.tokens_per_rank);
    p.staging = -1;
    for (int plane = 0; plane < s.ranks; ++plane) {
      const CellId first = memory.add(of("staging", r, plane), s.tokens_per_rank);
      p.staging = plane == 0 ? first : p.staging;
    }
    p.ids_flags = machine.add_words(of("ids flag", r), s.ranks, device, true);
    p.stamped_ids = machine.add_data_words(of("stamped ids", r), s.ranks * kIdsOfRank, device);
    p.barrier_flags = machine.add_words(of("barrier flag", r), s.ranks, device, true);
    for (int plane = 0; plane < s.ranks; ++plane) {
      const WordId first = machine.add_words(of("watermark", r, plane), chunks, device, true);
      p.watermarks = plane == 0 ? first : p.watermarks;
    }
    p.expert_rows = memory.add(of("expert_rows", r), 1);
    p.slots = memory.add(of("slots", r), 1);
    p.pull_order = memory.add(of("pull_order", r), 1);
    p.job_order = memory.add(of("job_order", r), 1);
    p.slack = memory.add(of("slack", r), 1);
    p.token_of_slot = memory.add(of("token_of_slot", r), 1);
    p.iteration = memory.add(of("iteration", r), 1);
    p.all_tokens = memory.add(of("all_tokens", r), s.tokens());
    p.gathered = memory.add(of("gathered", r), row_blocks * s.row_block);
    p.gate_up = memory.add(of("gate_up", r), tiles);
    p.act = memory.add(of("act", r), tiles);
    p.partial = memory.add(of("partial", r), tiles);
    p.arrivals = machine.add_words(of("arrivals", r), row_blocks, device);
    p.computed = machine.add_words(of("computed", r), row_blocks, device);
    p.done = machine.add_words(of("done", r), row_blocks, device);
    p.begun = machine.add_words(of("begun", r), 1, device, true);
    p.dispenser = machine.add_words(of("dispenser", r), 1, device);
    p.next_tile = machine.add_words(of("next_tile", r), 2, device);
    p.resident = machine.add_words(of("resident", r), 1, device);
    p.copied = machine.add_words(of("copied", r), 1, device);
    p.cluster = machine.add_barriers(1);
    for (int to = 0; to < s.ranks; ++to) {
      const WordId first = machine.add_words(of("pushed", r, to), chunks, device);
      p.pushed = to == 0 ? first : p.pushed;
    }
    p.abort = machine.add_words(of("abort", r), 1, device);
    p.claimed = machine.add_words(of("diagnosed", r), 1, device);
    const bool overlaps =
        s.subject == Subject::layer && s.config.launch == LaunchOrder::programmatic;
    const int short_lived = s.config.combine == Combine::block_per_job ? s.tokens() : 0;
    for (int block = 0; block < s.sms * (overlaps ? 2 : 1) + short_lived; ++block) {
      p.blocks.push_back(add_block(machine, s, r, device, block));
    }
    ranks.push_back(std::move(p));
  }
  return ranks;
}

}  // namespace fusescope::protocol
