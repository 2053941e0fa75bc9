#include "timeline/dependencies.hpp"

#include <algorithm>

namespace fusescope::timeline {
namespace {

using EventId = Dependencies::EventId;

std::size_t index_of(Kind kind) {
  return static_cast<std::size_t>(kind);
}

// A column of the phase table, or -1: barriers 0 and 1 have one each.
int phase_key(Kind kind, int index) {
  if (kind != Kind::barrier) {
    return is_stream_phase(kind) ? static_cast<int>(kind) : -1;
  }
  return index == 0 ? static_cast<int>(kind) : index == 1 ? kKinds : -1;
}

bool waits_for_every_rank(Kind kind) {
  return kind == Kind::barrier || kind == Kind::ids_exchange || kind == Kind::all_gather ||
         kind == Kind::reduce_scatter;
}

}  // namespace

Kind phase_of(Stage stage, bool serial) {
  switch (stage) {
    case Stage::dispatch_gemm:
      return serial ? Kind::gemm_1 : Kind::dispatch_gemm;
    case Stage::gemm_combine_push:
      return serial ? Kind::gemm_2 : Kind::gemm_combine_push;
    default:
      return serial ? Kind::reduce_scatter : Kind::final_reduce;
  }
}

Dependencies::Dependencies(const Timeline& timeline) : timeline_(&timeline) {
  size_tables();
  order_tracks();
  index_events();
  find_openings();
  join_lanes();
}

void Dependencies::size_tables() {
  const Wiring& wiring = timeline_->wiring;
  ranks_ = std::max(wiring.ranks, 0);
  for (const Track& track : timeline_->tracks) {
    ranks_ = std::max(ranks_, track.rank + 1);
  }
  std::vector<int> tokens(kKinds, 0);
  for (const Event& event : timeline_->events) {
    int& most = tokens[index_of(event.kind)];
    most = std::max(most, event.token < INT32_MAX ? event.token + 1 : 0);
  }
  // What the wiring does not know is not looked up: a wild id must not size a table.
  int row_blocks = 0;
  for (const auto& experts : wiring.expert_of_row_block) {
    row_blocks = std::max(row_blocks, static_cast<int>(experts.size()));
  }
  const int most_tokens = std::max(wiring.ranks, 0) * std::max(wiring.tokens_per_rank, 0);

  const auto ranks = static_cast<std::size_t>(ranks_);
  by_token_.resize(kKinds);
  for (std::size_t kind = 0; kind < by_token_.size(); ++kind) {
    by_token_[kind].size(ranks, static_cast<std::size_t>(std::min(tokens[kind], most_tokens)));
  }
  phases_.size(ranks, kKinds + 1);
  stage_ends_.size(ranks, kStages);
  opening_.size(ranks, static_cast<std::size_t>(row_blocks));
  activating_.size(ranks, static_cast<std::size_t>(row_blocks));
  completing_.size(ranks, static_cast<std::size_t>(row_blocks));
  watermarks_.size(ranks, ranks * static_cast<std::size_t>(std::max(wiring.watermark_chunks, 1)));
}

void Dependencies::order_tracks() {
  const std::vector<Event>& events = timeline_->events;
  track_events_.resize(timeline_->tracks.size());
  previous_.assign(events.size(), kNone);
  issued_first_.assign(events.size(), kNone);
  held_by_.assign(events.size(), kNone);
  parent_.assign(events.size(), kNone);
  std::vector<EventId> open;
  for (EventId first = 0; first < events.size();) {
    const std::uint32_t track = events[first].track;
    EventId closed = kNone;
    EventId id = first;
    open.clear();
    for (; id < events.size() && events[id].track == track; ++id) {
      while (!open.empty() && events[open.back()].end_ns <= events[id].begin_ns) {
        closed = open.back();
        open.pop_back();
      }
      previous_[id] = closed;
      parent_[id] = open.empty() ? kNone : open.back();
      open.push_back(id);
    }
    if (track < track_events_.size()) {
      track_events_[track] = {first, id};
    }
    first = id;
  }
}

void Dependencies::keep_only(Table& table, int rank, int key, EventId id) {
  if (!table.has(rank, key)) {
    return;
  }
  EventId& slot = table(rank, key);
  if (slot != kNone && duplicate_ == kNone) {
    duplicate_ = id;
  }
  slot = id;
}

void Dependencies::keep_latest(Table& table, int rank, int key, EventId id) const {
  if (!table.has(rank, key)) {
    return;
  }
  EventId& slot = table(rank, key);
  if (slot == kNone || event(id).end_ns > event(slot).end_ns) {
    slot = id;
  }
}

void Dependencies::index_events() {
  const int chunks = std::max(timeline_->wiring.watermark_chunks, 1);
  for (std::uint32_t track = 0; track < track_events_.size(); ++track) {
    const Track& where = timeline_->tracks[track];
    for (EventId id = track_events_[track].first; id < track_events_[track].last; ++id) {
      const Event& what = event(id);
      if (where.stage == Stage::stream) {
        keep_only(phases_, where.rank, phase_key(what.kind, what.index), id);
        continue;
      }
      keep_latest(stage_ends_, where.rank, static_cast<int>(where.stage), id);
      if (what.kind == Kind::epilogue) {
        const bool first = where.stage == Stage::dispatch_gemm;
        keep_latest(first ? activating_ : completing_, where.rank, what.row_block, id);
      } else if (what.kind == Kind::watermark && what.index >= 0 && what.index < chunks &&
                 what.peer >= 0 && what.peer < ranks_) {
        keep_only(watermarks_, where.rank, what.peer * chunks + what.index, id);
      } else if (what.token >= 0) {
        keep_only(by_token_[index_of(what.kind)], where.rank, what.token, id);
      }
    }
  }
}

void Dependencies::find_openings() {
  const Wiring& wiring = timeline_->wiring;
  const Table& arrives = by_token_[index_of(Kind::arrive)];
  for (std::size_t rank = 0; rank < wiring.hit_row_block.size(); ++rank) {
    const std::vector<std::int32_t>& blocks = wiring.hit_row_block[rank];
    for (std::size_t hit = 0; hit < blocks.size() && wiring.topk > 0; ++hit) {
      const auto token = static_cast<int>(hit / static_cast<std::size_t>(wiring.topk));
      const EventId arrive = arrives.at(static_cast<int>(rank), token);
      if (arrive != kNone) {
        keep_latest(opening_, static_cast<int>(rank), blocks[hit], arrive);
      }
    }
  }
}

Dependencies::Range Dependencies::events_of_track(std::uint32_t track) const {
  return track < track_events_.size() ? track_events_[track] : Range{};
}

EventId Dependencies::phase(int rank, Kind kind, int index) const {
  return phases_.at(rank, phase_key(kind, index));
}

EventId Dependencies::last_to_enter(Kind kind, int index) const {
  EventId last = kNone;
  for (int rank = 0; rank < ranks_; ++rank) {
    const EventId id = phase(rank, kind, index);
    if (id != kNone && (last == kNone || event(id).begin_ns > event(last).begin_ns)) {
      last = id;
    }
  }
  return last;
}

EventId Dependencies::last_of_stage(int rank, Stage stage) const {
  return stage_ends_.at(rank, static_cast<int>(stage));
}

EventId Dependencies::of_token(int rank, Kind kind, int token) const {
  return by_token_[index_of(kind)].at(rank, token);
}

EventId Dependencies::opening_arrive(int rank, int row_block) const {
  return opening_.at(rank, row_block);
}

int Dependencies::last_to_open(int rank, int row_block) const {
  int last = row_block;
  const int end = timeline_->wiring.last_of_tile(rank, row_block);
  for (int block = row_block; block < end; ++block) {
    const EventId id = opening_arrive(rank, block + 1);
    const EventId before = opening_arrive(rank, last);
    if (id != kNone && (before == kNone || event(id).end_ns > event(before).end_ns)) {
      last = block + 1;
    }
  }
  return last;
}

EventId Dependencies::activating_epilogue(int rank, int row_block) const {
  return activating_.at(rank, timeline_->wiring.tile_of(rank, row_block));
}

EventId Dependencies::completing_epilogue(int rank, int row_block) const {
  return completing_.at(rank, timeline_->wiring.tile_of(rank, row_block));
}

EventId Dependencies::readying_epilogue(int rank, int token) const {
  const Wiring& wiring = timeline_->wiring;
  if (rank < 0 || token < 0 || wiring.topk <= 0 ||
      static_cast<std::size_t>(rank) >= wiring.hit_row_block.size()) {
    return kNone;
  }
  const std::vector<std::int32_t>& blocks = wiring.hit_row_block[static_cast<std::size_t>(rank)];
  const auto topk = static_cast<std::size_t>(wiring.topk);
  const std::size_t begin = static_cast<std::size_t>(token) * topk;
  EventId last = kNone;
  for (std::size_t hit = begin; hit < std::min(begin + topk, blocks.size()); ++hit) {
    const EventId id = completing_epilogue(rank, blocks[hit]);
    if (id != kNone && (last == kNone || event(id).end_ns > event(last).end_ns)) {
      last = id;
    }
  }
  return last;
}

EventId Dependencies::watermark(int sender, int receiver, int chunk) const {
  const int chunks = std::max(timeline_->wiring.watermark_chunks, 1);
  if (receiver < 0 || receiver >= ranks_ || chunk < 0 || chunk >= chunks) {
    return kNone;
  }
  return watermarks_.at(sender, receiver * chunks + chunk);
}

EventId Dependencies::cause(EventId id) const {
  const Event& what = event(id);
  const int rank = rank_of(id);
  switch (what.kind) {
    case Kind::gate_wait:
      return opening_arrive(rank, last_to_open(rank, what.row_block));
    case Kind::activation_wait:
      return activating_epilogue(rank, what.row_block);
    case Kind::ready_wait: {
      const EventId readying = readying_epilogue(rank, what.token);
      return readying != kNone ? readying : completing_epilogue(rank, what.row_block);
    }
    case Kind::reduce_wait:
      return watermark(what.peer, rank, what.index);
    case Kind::dispatch_gemm:
    case Kind::gemm_1:
      return last_of_stage(rank, Stage::dispatch_gemm);
    case Kind::gemm_combine_push:
    case Kind::gemm_2:
      return last_of_stage(rank, Stage::gemm_combine_push);
    case Kind::final_reduce:
      return last_of_stage(rank, Stage::final_reduce);
    default: {
      const EventId last =
          waits_for_every_rank(what.kind) ? last_to_enter(what.kind, what.index) : kNone;
      return last == id ? kNone : last;
    }
  }
}

}  // namespace fusescope::timeline
