#pragma once
// Who waited for whom: the events of a timeline looked up by what they did. Built in one pass over
// sorted events, flat arrays, about a millisecond for 100k events; shared by check(), the flow
// arrows of the writers, and the analysis.
//
// Events are named by their index in Timeline::events, or kNone where there is no such event (not
// recorded, dropped, or not part of the run). Every query is O(1) unless it says otherwise and
// accepts any argument: what lies out of range has no event.

#include <cstdint>
#include <vector>

#include "timeline/timeline.hpp"

namespace fusescope::timeline {

class Dependencies {
 public:
  using EventId = std::uint32_t;
  static constexpr EventId kNone = UINT32_MAX;

  // The events must be sorted (sort_events). The timeline must outlive this and stay as it is.
  explicit Dependencies(const Timeline& timeline);

  const Timeline& timeline() const { return *timeline_; }
  const Event& event(EventId id) const { return timeline_->events[id]; }
  const Track& track_of(EventId id) const { return timeline_->tracks[event(id).track]; }
  int rank_of(EventId id) const { return track_of(id).rank; }

  // Program order. The events of a track are [first, last) in begin order.
  struct Range {
    EventId first = 0;
    EventId last = 0;
  };
  Range events_of_track(std::uint32_t track) const;
  // What its block did before: the event on this one's track that ended last before this one began (at
  // the same nanosecond counts). Where the lanes of a block are the warps of one program, the program's
  // order goes across them:
  //   epilogue      the mainloop of its tile
  //   push          the sum of its job, or what the pusher ended later of the push two jobs before
  //   sum           no claim: a block claims its next job while this one waits to be summed. Its ready wait.
  //                 Where the threads that sum also claim: what the pusher ended last of the push two jobs
  //                 before (the push, its election or a watermark), for a warpgroup has two row buffers
  //   the first     of a lane of a compute block, which begins when the block's other lanes have done their
  //   claim, gate   part: the event of those that ended last before it began
  //   the first     of a lane that fetches beside the block's tiles, which begins when its other slots are through:
  //   pull          as above. No tile follows what such a lane does
  EventId previous_on_track(EventId id) const { return previous_[id]; }
  // Where a warpgroup's pushes run beside its sums, what the pusher did before it came to this; else kNone:
  //   push   the push of its next job, if that was issued before this one was complete: the pusher issues
  //          it first, and looks only then whether this one is complete
  //   sum    by threads that also claim: the push of the job before, if none was under way beside it. They
  //          go on once that is issued, of which no record says when
  EventId issued_first(EventId id) const { return issued_first_[id]; }
  // Where sums have a lane of their own, the push that holds this event up if it begins later than what comes
  // before it has ended; else kNone:
  //   sum    the push two jobs before, until the copy engine has read the row buffer
  //   push   of a warpgroup's second job: the first push, until it is issued and its buffer is read
  EventId held_by(EventId id) const { return held_by_[id]; }
  // The slice that encloses this one on its track.
  EventId parent(EventId id) const { return parent_[id]; }

  // Stream phases; `index` distinguishes barriers, and is -1 for any other phase.
  EventId phase(int rank, Kind kind, int index = -1) const;
  // Which rank came last, that is whose phase began last: what every rank's barrier (ids exchange,
  // all-gather, reduce-scatter) waited for. O(ranks).
  EventId last_to_enter(Kind kind, int index = -1) const;
  // The event that ended last on the block tracks of a rank's stage: why its kernel ended then.
  EventId last_of_stage(int rank, Stage stage) const;

  // The event of one token on a rank; of pull, scatter, arrive, claim, ready_wait, sum, push,
  // elect.
  EventId of_token(int rank, Kind kind, int token) const;

  // Kernel 1: which arrive opened this row block, that is counted last among the tokens that hit
  // it.
  EventId opening_arrive(int rank, int row_block) const;
  // Kernel 1: of the row blocks of the tiles that are named by this one, the one that opened last.
  int last_to_open(int rank, int row_block) const;
  // Which epilogue of kernel 1, and which of kernel 2, completed this row block. It may be of tiles that are
  // named by another.
  EventId activating_epilogue(int rank, int row_block) const;
  EventId completing_epilogue(int rank, int row_block) const;
  // Which epilogue completed the last of this token's K row blocks. O(K).
  EventId readying_epilogue(int rank, int token) const;
  // Which watermark a sender raised at a receiver.
  EventId watermark(int sender, int receiver, int chunk) const;

  // What a wait waited for, on another track: gate_wait -> opening arrive of the tile's last row block to open,
  // activation_wait -> activating epilogue, ready_wait -> readying epilogue, reduce_wait -> watermark, barrier
  // and the other collective phases -> the last rank to enter (kNone if that is the event itself), a kernel's
  // phase -> the last event of its blocks. Else kNone.
  EventId cause(EventId id) const;

  // The first event found that repeats another where the contract allows one (a phase of a rank, a
  // kind of a token, a watermark), or kNone. The lookups above return the later of the two.
  EventId duplicate() const { return duplicate_; }

 private:
  // One slot per (rank, key), kNone where empty.
  struct Table {
    std::size_t keys = 0;
    std::vector<EventId> slots;
    void size(std::size_t ranks, std::size_t keys_per_rank) {
      keys = keys_per_rank;
      slots.assign(ranks * keys_per_rank, kNone);
    }
    EventId at(int rank, int key) const {
      return has(rank, key) ? slots[static_cast<std::size_t>(rank) * keys + key] : kNone;
    }
    bool has(int rank, int key) const {
      return rank >= 0 && key >= 0 && static_cast<std::size_t>(key) < keys &&
             static_cast<std::size_t>(rank) * keys < slots.size();
    }
    EventId& operator()(int rank, int key) {
      return slots[static_cast<std::size_t>(rank) * keys + key];
    }
  };

  void size_tables();
  void order_tracks();
  void index_events();
  void keep_only(Table& table, int rank, int key, EventId id);
  void keep_latest(Table& table, int rank, int key, EventId id) const;
  void find_openings();
  void join_lanes();
  bool fetches(std::uint32_t track) const;
  std::uint32_t lane_beside_tiles(const std::vector<std::uint32_t>& tracks) const;
  void join_block(const std::vector<std::uint32_t>& tracks);
  void join_pushes(const std::vector<std::uint32_t>& tracks);
  void follow(EventId id, EventId earlier);

  const Timeline* timeline_;
  int ranks_ = 0;
  EventId duplicate_ = kNone;
  std::vector<Range> track_events_;
  std::vector<EventId> previous_;
  std::vector<EventId> issued_first_;
  std::vector<EventId> held_by_;
  std::vector<EventId> parent_;
  Table phases_;                 // key: kind, with one more column for barrier 1
  Table stage_ends_;             // key: stage
  std::vector<Table> by_token_;  // one per kind that has a token
  Table opening_;                // key: row block
  Table activating_;             // key: row block
  Table completing_;             // key: row block
  Table watermarks_;             // rank: sender; key: receiver * chunks + chunk
};

// The stream phase that a stage's blocks run in; `stage` is not Stage::stream.
Kind phase_of(Stage stage, bool serial);

}  // namespace fusescope::timeline
