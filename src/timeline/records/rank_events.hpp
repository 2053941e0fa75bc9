#pragma once
// What the decoders of one rank share: its records by writer, and the events that come out.

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "timeline/records/decode_records.hpp"

namespace fusescope::timeline {

// Arguments of an event that its kind sets; see Kind.
struct EventArguments {
  int token = -1;
  int row_block = -1;
  int index = -1;
  int peer = -1;
};

class RankEvents {
 public:
  RankEvents(const RankRecords& source, Timeline& timeline, DecodeReport& report);

  const RankRecords& source() const { return source_; }
  const Wiring& wiring() const { return timeline_.wiring; }
  int tokens() const { return wiring().ranks * wiring().tokens_per_rank; }
  int source_rank(int token) const { return token / wiring().tokens_per_rank; }
  bool is_token(int token) const { return token >= 0 && token < tokens(); }

  // What this writer wrote, on the reference clock.
  struct Moment {
    std::int64_t ns = 0;
    int a = -1;
    int b = 0;
    Point point = Point::none;
  };
  std::vector<Moment> moments(Family family, int block, int writer);

  // The track is made when its first event comes.
  std::size_t add(Stage stage, Role role, int block, int lane, Kind kind, std::int64_t begin_ns,
                  std::int64_t end_ns, const EventArguments& arguments);
  Event& event(std::size_t id) { return timeline_.events[id]; }
  Stage stage_of(const Event& event) const { return timeline_.tracks[event.track].stage; }
  std::size_t first_event() const { return first_event_; }
  std::size_t size() const { return timeline_.events.size(); }

  // A record that does not fit to those around it.
  void lose(Family family, int block, int writer, const Moment& moment);

 private:
  const RankRecords& source_;
  Timeline& timeline_;
  DecodeReport& report_;
  std::size_t first_event_;
  std::map<std::array<int, 4>, std::uint32_t> tracks_;
};

// One per family. They rely on each other only in their order: jobs come after the tiles.
void decode_slots(RankEvents& events);
void decode_tiles(RankEvents& events, Family family);
void decode_jobs(RankEvents& events, Family family);
void decode_reduce(RankEvents& events);
// The stream's phases, which also cover what the blocks recorded.
void decode_phases(RankEvents& events);

}  // namespace fusescope::timeline
