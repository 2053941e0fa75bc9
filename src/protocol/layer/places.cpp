#include "protocol/layer/places.hpp"

namespace fusescope::protocol {
namespace {

constexpr int kSmemRows = kJobBuffers * kMostJobGroups;
static_assert(kSmemRows >= kStages + kStagedPerConsumer &&
              kSmemRows >= kMostTokensPerBlock * kMostPushRows);

Name of(const char* what, int rank, int i = -1) {
  return {what, static_cast<std::int16_t>(rank), static_cast<std::int16_t>(i), -1, -1};
}

BlockPlaces add_block(Machine& machine, int rank, int device, int block, int row_block) {
  Memory& memory = machine.memory();
  BlockPlaces places{};
  places.smem = memory.add(of("smem", rank, block), kSmemRows * (row_block + 1));
  places.mailboxes = memory.add(of("mailbox", rank, block), kMostJobGroups);
  places.stage_tiles = memory.add(of("stage_tile", rank, block), kStages);
  places.chunk_tiles = memory.add(of("chunk_tile", rank, block), kConsumers * kStagedPerConsumer);
  places.cells = places.chunk_tiles + kConsumers * kStagedPerConsumer - places.smem;
  places.full = machine.add_mbarriers(kStages);
  places.empty = machine.add_mbarriers(kStages);
  places.staged = machine.add_mbarriers(kConsumers * kStagedPerConsumer);
  places.drained = machine.add_mbarriers(kConsumers * kStagedPerConsumer);
  places.landed = machine.add_mbarriers(kMostTokensPerBlock);
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
    p.weights = memory.add(of("weights of source", r), s.ranks);
    p.tokens = memory.add(of("tokens", r), s.tokens_per_rank);
    p.staging = -1;
    for (int plane = 0; plane < s.ranks; ++plane) {
      const CellId first = memory.add(of("staging", r, plane), s.tokens_per_rank);
      p.staging = plane == 0 ? first : p.staging;
    }
    p.ids_flags = machine.add_words(of("ids flag", r), s.ranks, device, true);
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
    p.iteration = memory.add(of("iteration", r), 1);
    p.gathered = memory.add(of("gathered", r), row_blocks * s.row_block);
    p.gate_up = memory.add(of("gate_up", r), tiles);
    p.act = memory.add(of("act", r), tiles);
    p.partial = memory.add(of("partial", r), tiles);
    p.arrivals = machine.add_words(of("arrivals", r), row_blocks, device);
    p.done = machine.add_words(of("done", r), row_blocks, device);
    p.dispenser = machine.add_words(of("dispenser", r), 1, device);
    p.resident = machine.add_words(of("resident", r), 1, device);
    for (int to = 0; to < s.ranks; ++to) {
      const WordId first = machine.add_words(of("pushed", r, to), chunks, device);
      p.pushed = to == 0 ? first : p.pushed;
    }
    p.abort = machine.add_words(of("abort", r), 1, device);
    p.claimed = machine.add_words(of("diagnosed", r), 1, device);
    const int short_lived = s.config.combine == Combine::block_per_job ? s.tokens() : 0;
    for (int block = 0; block < s.sms + short_lived; ++block) {
      p.blocks.push_back(add_block(machine, r, device, block, s.row_block));
    }
    ranks.push_back(std::move(p));
  }
  return ranks;
}

}  // namespace fusescope::protocol
