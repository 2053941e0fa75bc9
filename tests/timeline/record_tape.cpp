#include "record_tape.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace fusescope::timeline {
namespace {

bool is_job_block(const Track& track) {
  return track.stage == Stage::gemm_combine_push && track.role == Role::communication;
}

Phase phase_of(const Event& event) {
  switch (event.kind) {
    case Kind::ids_exchange:
      return Phase::ids_exchange;
    case Kind::schedule_build:
      return Phase::schedule_build;
    case Kind::barrier:
      return event.index == 0 ? Phase::entry_barrier : Phase::copied_barrier;
    case Kind::copy_in:
      return Phase::copy_in;
    case Kind::dispatch_gemm:
      return Phase::dispatch_gemm;
    case Kind::activation:
      return Phase::activation;
    case Kind::gemm_combine_push:
      return Phase::gemm_combine_push;
    default:
      return Phase::final_reduce;
  }
}

}  // namespace

RecordTape::RecordTape(const RecordLayout& of)
    : records(of.records),
      dropped(of.writers, 0),
      phases(kPhases),
      layout(of),
      written_(of.writers, 0) {}

void RecordTape::write(Family family, int block, int writer, std::uint64_t ns, Point point, int a,
                       int b) {
  const FamilyLayout& at = layout[family];
  const std::size_t number =
      static_cast<std::size_t>(block) * at.writers_per_block + static_cast<std::size_t>(writer);
  std::uint32_t& written = written_.at(at.first_writer + number);
  if (written == at.capacity) {
    ++dropped[at.first_writer + number];
    return;
  }
  records[at.first_record + number * at.capacity + written++] = {
      ns, a, static_cast<std::uint16_t>(b), point, 0};
}

void RecordTape::stamp(Phase phase, std::uint64_t begin_ns, std::uint64_t end_ns) {
  phases[static_cast<std::size_t>(phase)] = {begin_ns, end_ns};
}

RankRecords RecordTape::read(int rank) const {
  RankRecords result;
  result.rank = rank;
  result.device = rank;
  result.layout = layout;
  result.records = records;
  result.dropped = dropped;
  result.phases = phases;
  result.job_order = job_order;
  return result;
}

RecordedWork work_of(const Timeline& timeline, int rank) {
  const Wiring& wiring = timeline.wiring;
  RecordedWork work;
  work.ranks = wiring.ranks;
  work.tokens = wiring.ranks * wiring.tokens_per_rank;
  work.row_blocks = static_cast<int>(wiring.expert_of_row_block[0].size());
  work.n_tiles_1 = wiring.n_tiles_1;
  work.n_tiles_2 = wiring.n_tiles_2;
  work.watermark_chunks = wiring.watermark_chunks;
  work.job_groups_per_block = 1;
  work.all_hands = true;
  const auto at_least = [](int& count, int number) { count = std::max(count, number + 1); };
  for (const Track& track : timeline.tracks) {
    if (track.rank != rank) {
      continue;
    }
    if (track.stage == Stage::final_reduce) {
      at_least(work.reduce_blocks, track.block);
    } else if (is_job_block(track)) {
      at_least(work.combine_job_blocks, track.block);
    } else if (track.role == Role::communication) {
      at_least(work.dispatch_slot_blocks, track.block);
      at_least(work.slots_per_block, track.lane);
    } else if (track.role == Role::compute) {
      at_least(track.stage == Stage::dispatch_gemm ? work.dispatch_compute_blocks
                                                   : work.combine_compute_blocks,
               track.block);
    }
  }
  return work;
}

RecordTape take_apart(const Timeline& timeline, int rank, std::uint64_t ahead_ns) {
  RecordTape tape(lay_out_records(work_of(timeline, rank)));
  tape.job_order.resize(static_cast<std::size_t>(timeline.wiring.ranks) *
                        timeline.wiring.tokens_per_rank);
  std::set<std::pair<int, int>> gated;  // tiles of kernel 1 with a wait
  for (const Event& event : timeline.events) {
    const Track& track = timeline.tracks[event.track];
    if (track.rank != rank) {
      continue;
    }
    const std::uint64_t begin = static_cast<std::uint64_t>(event.begin_ns) + ahead_ns;
    const std::uint64_t end = static_cast<std::uint64_t>(event.end_ns) + ahead_ns;
    const int block = track.block;
    const Family tiles =
        track.stage == Stage::dispatch_gemm ? Family::dispatch_tiles : Family::combine_tiles;
    const Family jobs = is_job_block(track) ? Family::combine_jobs : Family::combine_joined;
    const auto two = [&](Family family, int writer, Point first, Point second, int a, int b = 0) {
      tape.write(family, block, writer, begin, first, a, b);
      tape.write(family, block, writer, end, second, a, b);
    };
    switch (event.kind) {
      case Kind::pull:
        two(Family::dispatch_slots, track.lane, Point::pull_issued, Point::pull_landed,
            event.token);
        break;
      case Kind::scatter:
        tape.write(Family::dispatch_slots, block, track.lane, end, Point::scattered, event.token);
        break;
      case Kind::arrive:
        tape.write(Family::dispatch_slots, block, track.lane, end, Point::counted, event.token);
        break;
      case Kind::gate_wait:
        gated.insert({event.row_block, event.index});
        two(tiles, kProducer, Point::gate_begin, Point::gate_end, event.row_block, event.index);
        break;
      case Kind::mainloop:
        if (tiles == Family::combine_tiles || !gated.contains({event.row_block, event.index})) {
          for (const Point point : {Point::gate_begin, Point::gate_end}) {
            tape.write(tiles, block, kProducer, begin, point, event.row_block, event.index);
          }
        }
        two(tiles, kConsumer, Point::mainloop_begin, Point::mainloop_end, event.row_block,
            event.index);
        break;
      case Kind::epilogue:
        tape.write(tiles, block, kConsumer, end, Point::epilogue_end, event.row_block, event.index);
        if (tiles == Family::combine_tiles) {
          tape.write(tiles, block, event.index % 2 == 0 ? kStorer0 : kStorer1, end, Point::stored,
                     event.row_block, event.index);
        }
        break;
      case Kind::claim:
        two(jobs, kFront, Point::claim_begin, Point::claimed, event.index);
        tape.job_order[static_cast<std::size_t>(event.index)] = event.token;
        break;
      case Kind::ready_wait:
        two(jobs, kFront, Point::ready_wait_begin, Point::ready, event.token);
        break;
      case Kind::sum:
        tape.write(jobs, block, kSummer, begin, Point::fetched, event.token);
        two(jobs, kSummer, Point::sum_begin, Point::summed, event.token);
        break;
      case Kind::push:
        two(jobs, kPusher, Point::push_issued, Point::pushed, event.token);
        break;
      case Kind::elect:
        tape.write(jobs, block, kPusher, end, Point::push_counted, event.token);
        break;
      case Kind::watermark:
        two(jobs, kPusher, Point::watermark_begin, Point::watermark_raised, event.peer,
            event.index);
        break;
      case Kind::reduce_wait:
        two(Family::reduce, event.peer, Point::watermark_wait_begin, Point::watermark_seen,
            event.peer, event.index);
        break;
      case Kind::reduce:
        two(Family::reduce, 0, Point::reduce_begin, Point::reduce_end, -1, event.index);
        break;
      case Kind::dispenser_reset:
        break;  // the kernels have no such phase
      default:
        tape.stamp(phase_of(event), begin, end);
    }
  }
  return tape;
}

}  // namespace fusescope::timeline
