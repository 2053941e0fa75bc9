#include "protocol/layer/layer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "protocol/layer/gemm.hpp"
#include "protocol/layer/gemm_schedule.hpp"

namespace fusescope::protocol {
namespace {

int most_row_blocks(const std::vector<Round>& rounds) {
  int most = 0;
  for (const Round& round : rounds) {
    for (const ScheduleTables& tables : round.tables) {
      most = std::max(most, tables.row_blocks());
    }
  }
  return most;
}

}  // namespace

// Kernels of a device come one after the other, so that the largest decides; see the threads that
// each of them adds.
MachineSize Layer::size_of(const Scenario& s) {
  const int slots = s.config.tokens_per_block;
  const int slot_components = 4;  // itself, its load, its stores' reads and writes
  // Producer, scheduler or relay, the loads of each stage, consumers, storers with their reads and writes.
  const auto gemm = [&s](bool activates) {
    return 2 + kStages + kConsumers * consumer_warps(s, activates) + 3 * kConsumers;
  };
  const bool is_layer = s.subject == Subject::layer;
  const bool gathers = is_layer && gathers_rows(s.config);
  const int gemm_1 = gemm(s.config.activation == Activation::fused) +
                     (gathers ? kStages : 0) +            // the rows of each stage
                     (s.fetches_beside_tiles() ? 3 : 0);  // a load, its stores' reads and writes
  // Four parts, the loads of each piece, the push's read and write.
  const int group = 2 + kSummingWarps + kJobPieces + 2;
  const int comm_1 = s.config.dispatch_comm_sms;
  const int fetching = comm_1 == 0 ? s.sms : comm_1;
  const int kernel_1 = (s.sms - comm_1) * gemm_1 + fetching * slots * slot_components;
  const int comm_2 = s.config.combine_comm_sms;
  const bool per_job = s.config.combine == Combine::block_per_job;
  const int joiners = s.config.all_hands ? s.sms - comm_2 : 0;
  const int per_block = is_layer ? s.job_groups * group : slots * slot_components;
  const int kernel_2 =
      (s.sms - comm_2) * gemm(false) +
      (per_job ? 2 + std::min(s.sms, s.tokens()) * group : (comm_2 + joiners) * per_block);
  const int ranks_here = (s.ranks + s.devices - 1) / s.devices;
  const int before = std::max(s.ranks, 4);  // the kernels before kernel 1
  const bool overlap = is_layer && s.config.launch == LaunchOrder::programmatic;
  MachineSize size;
  size.devices = s.devices;
  // Streams: one now, one after a fault, and the host between them. Kernels that overlap have a watcher
  // for each block.
  size.components_per_device =
      3 + ranks_here * 2 +  // final reduces, which may be left open
      (overlap ? before + kernel_1 + s.sms + ranks_here * (kernel_2 + s.sms + 2)
               : std::max({kernel_1, kernel_2, before}));
  size.sms = s.sms;
  for (int rank = 0; rank < s.ranks; ++rank) {
    size.device_of_rank.push_back(s.device_of(rank));
  }
  return size;
}

Layer::Layer(Machine& on, const Scenario& scenario, Bug planted)
    : machine(on),
      s(scenario),
      bug(planted),
      rounds(make_rounds(scenario, planted)),
      row_blocks(most_row_blocks(rounds)) {
  machine.reset(size_of(s));
  places = add_places(machine, s, row_blocks);
  claims_.assign(s.ranks, std::vector<int>(s.tokens(), 0));
  elections_.assign(s.ranks, std::vector<int>(s.ranks * s.config.watermark_chunks, 0));
  std::vector<WordId> aborts, claimed_words;
  std::vector<CellId> diagnoses;
  for (const RankPlaces& p : places) {
    aborts.push_back(p.abort);
    claimed_words.push_back(p.claimed);
    diagnoses.push_back(p.diagnosis);
  }
  machine.guard(std::move(aborts), std::move(claimed_words), std::move(diagnoses));
  if (s.fault != Fault::none) {
    machine.allow_timeouts();
  }
  if (s.fault == Fault::frozen_rank) {
    machine.freeze(s.fault_rank, static_cast<std::uint64_t>(s.fault_step));
  }
}

void Layer::start_streams(int first, int last, bool knowing) {
  for (int device = 0; device < s.devices; ++device) {
    Thread& stream = machine.add_stream(
        device, {Role::stream, "stream", static_cast<std::int16_t>(device), -1, -1});
    if (knowing) {
      machine.tell_everything(stream);
    } else {
      for (int rank = device; rank < s.ranks; rank += s.devices) {
        stream.write(places[rank].iteration, 0, 0);
      }
    }
    machine.start(stream, device_stream(stream, *this, device, first, last));
  }
}

void Layer::start() {
  start_streams(0, s.iterations - 1, false);
}

bool Layer::recover() {
  if (s.fault == Fault::none || s.fault == Fault::frozen_rank) {
    return false;
  }
  // Whether a signal that the third kernel loses is missed depends on who pushes what to whom.
  const bool may_pass =
      s.fault == Fault::impatience || (s.fault == Fault::dead_rank && s.ranks == 1) ||
      (s.fault == Fault::lost_residency && s.config.combine == Combine::dispenser) ||
      ((s.fault == Fault::lost_begun || s.fault == Fault::lost_activations) && !overlaps()) ||
      (s.subject == Subject::gemm_reduce_scatter && s.fault != Fault::dead_rank &&
       s.fault != Fault::lost_barrier);
  const bool reported = std::any_of(places.begin(), places.end(), [&](const RankPlaces& p) {
    return machine.memory().peek(p.diagnosis) != 0;
  });
  if (machine.aborted() != reported || (!may_pass && !reported)) {
    machine.report(FindingKind::incomplete, "a fault left no diagnosis behind");
    return false;
  }
  machine.recover();
  Thread& host = machine.add_stream(0, {Role::stream, "host", 0, -1, -1});
  machine.tell_everything(host);
  for (const RankPlaces& p : places) {
    const auto clear = [&](WordId first, int count) {
      for (WordId word = first; word < first + count; ++word) {
        host.initialise(word, 0, std::numeric_limits<std::uint64_t>::max());
      }
    };
    clear(p.ids_flags, s.ranks);
    if (!has(Bug::stamped_ids_kept_after_abort)) {
      clear(p.stamped_ids, s.ranks * kIdsOfRank);
    }
    clear(p.barrier_flags, s.ranks);
    if (!has(Bug::watermarks_kept_after_abort)) {
      clear(p.watermarks, s.ranks * s.config.watermark_chunks);
    }
    clear(p.begun, 1);
    clear(p.dispenser, 1);
    clear(p.resident, 1);
    clear(p.copied, 1);
    clear(p.pushed, s.ranks * s.config.watermark_chunks);
    clear(p.abort, 1);
    clear(p.claimed, 1);
    host.write(p.iteration, 0, 0);
    host.write(p.diagnosis, 0, 0);
  }
  start_streams(s.iterations, s.iterations, true);
  return true;
}

const BlockPlaces& Layer::fresh_block(int rank, int place) {
  const BlockPlaces& block = places[rank].blocks[place];
  machine.memory().forget(block.smem, block.cells);
  machine.forget_barriers(block.landed, kMostTokensPerBlock, block.named, kNamedBarriers);
  return block;
}

void Layer::begin_round(int rank) {
  std::fill(claims_[rank].begin(), claims_[rank].end(), 0);
  std::fill(elections_[rank].begin(), elections_[rank].end(), 0);
}

void Layer::claimed(const Thread& by, int token) {
  if (++claims_[by.rank()][token] == 2) {
    machine.report(FindingKind::claim,
                   fmt::format("the job of token {} is claimed a second time, by {}", token,
                               to_string(by.label())));
  }
}

void Layer::elected(const Thread& by, int to, int chunk) {
  if (++elections_[by.rank()][to * s.config.watermark_chunks + chunk] == 2) {
    machine.report(FindingKind::election,
                   fmt::format("a second job is elected for chunk {} of rank {}'s plane on rank "
                               "{}: {}",
                               chunk, by.rank(), to, to_string(by.label())));
  }
}

void Layer::check_round(int rank, const Round& round) {
  const bool faulty = s.fault != Fault::none && round.stamp == s.fault_iteration + 1;
  if (machine.aborted() || faulty) {
    return;
  }
  const auto must_be = [&](WordId first, int count, std::uint64_t wanted) {
    for (WordId id = first; id < first + count; ++id) {
      const Word& word = machine.word(id);
      if (word.latest().value != wanted) {
        machine.report(FindingKind::overshoot,
                       fmt::format("{} ends at {}, not at {}", to_string(word.name),
                                   word.latest().value, wanted));
      }
    }
  };
  const bool pushes_rows = s.subject == Subject::gemm_reduce_scatter;  // and none to itself
  const int blocks = round.tables[rank].row_blocks();
  if (!pushes_rows) {
    must_be(places[rank].arrivals, blocks, static_cast<std::uint64_t>(s.row_block));
    must_be(places[rank].computed, blocks, static_cast<std::uint64_t>(s.n_tiles()));
  }
  must_be(places[rank].done, blocks, static_cast<std::uint64_t>(s.n_tiles()));
  if (!pushes_rows) {
    const auto tiles = static_cast<std::uint64_t>(row_tiles(s, round.tables[rank])) *
                       static_cast<std::uint64_t>(s.n_tiles());
    const TileCounter counter = s.config.tile_counter;
    must_be(places[rank].next_tile, 1, counter == TileCounter::both ? tiles : 0);
    must_be(places[rank].next_tile + 1, 1, counter != TileCounter::none ? tiles : 0);
  }
  for (int to = 0; to < s.ranks; ++to) {
    if (pushes_rows && to == rank) {
      continue;
    }
    for (int chunk = 0; chunk < s.config.watermark_chunks; ++chunk) {
      must_be(pushed(rank, to, chunk), 1,
              static_cast<std::uint64_t>(chunk_begin(chunk + 1) - chunk_begin(chunk)));
    }
  }
  for (int token = 0; token < s.tokens() && !pushes_rows; ++token) {
    if (claims_[rank][token] != 1) {
      machine.report(FindingKind::claim, fmt::format("the job of token {} on rank {} is claimed {} "
                                                     "times",
                                                     token, rank, claims_[rank][token]));
    }
  }
  for (std::size_t i = 0; i < elections_[rank].size(); ++i) {
    const bool none = pushes_rows && static_cast<int>(i) / s.config.watermark_chunks == rank;
    if (elections_[rank][i] != (none ? 0 : 1)) {
      machine.report(
          FindingKind::election,
          fmt::format("{} jobs of rank {} are elected for chunk {} on rank {}", elections_[rank][i],
                      rank, i % s.config.watermark_chunks, i / s.config.watermark_chunks));
    }
  }
}

void Layer::check_outputs(int rank, const Round& round) {
  if (machine.aborted()) {
    return;
  }
  for (int t = 0; t < s.tokens_per_rank; ++t) {
    const int token = rank * s.tokens_per_rank + t;
    const CellId cell = places[rank].output + t;
    if (machine.memory().stamp(cell) != round.stamp ||
        machine.memory().peek(cell) != round.outputs[token]) {
      machine.report(FindingKind::value,
                     fmt::format("iteration {}: the output of token {} differs from the reference",
                                 round.stamp, token));
    }
  }
}

}  // namespace fusescope::protocol
