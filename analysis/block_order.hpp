#pragma once
// Order among the tracks of one kernel: what a block's event follows when it is not simply the event
// before it on its own track. Built lazily, because a walk asks about few blocks.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "timeline/dependencies.hpp"

namespace fusescope::analysis {

class BlockOrder {
 public:
  using EventId = timeline::Dependencies::EventId;
  static constexpr EventId kNone = timeline::Dependencies::kNone;

  explicit BlockOrder(const timeline::Dependencies& dependencies) : dependencies_(dependencies) {}

  // The last event of a track that began before a time, or kNone. O(log events).
  EventId last_begun_before(std::uint32_t track, std::int64_t at_ns) const;

  // What the block of a track was doing with its tiles at a time, or kNone. A mainloop and the epilogue of the
  // tile before may run at once, on two lanes: the one that began last, or where all have ended, the one that
  // did so last.
  EventId at_its_tiles(std::uint32_t track, std::int64_t at_ns);

  // The last event of the block of the same kernel that ended last before this event began, or kNone: it
  // freed the SM that a short-lived block then took.
  EventId freed_the_sm(EventId id);

  // The same of the kernel before, for an event of one that takes its SMs one by one.
  EventId left_the_sm(EventId id);

 private:
  EventId last_end_before(const std::vector<EventId>& ends, std::int64_t at_ns) const;
  const timeline::Event& event(EventId id) const { return dependencies_.event(id); }
  const std::vector<EventId>& block_ends(int rank, timeline::Stage stage);
  const std::vector<std::uint32_t>& tile_lanes(std::uint32_t track);

  const timeline::Dependencies& dependencies_;
  // By (rank, stage): the last event of each block, in the order in which they ended.
  std::unordered_map<int, std::vector<EventId>> ends_;
  // By track: the lanes of its block that mainloops and epilogues are on.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> tile_lanes_;
};

}  // namespace fusescope::analysis
