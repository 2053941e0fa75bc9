#pragma once
// Collects the events of a simulated iteration. Blocks record slices as they end; every track's slices
// come in order, so that the finished timeline needs no sort. Off = a branch per slice.

#include <vector>

#include "engine/sim/scheduler.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::engine::sim {

using timeline::Kind;
using timeline::Role;
using timeline::Stage;
using TrackId = std::uint32_t;
inline constexpr TrackId kNoTrack = UINT32_MAX;  // records nothing

// The arguments of an event that its kind sets; see timeline::Kind.
struct Args {
  int token = -1;
  int row_block = -1;
  int index = -1;
  int peer = -1;
};

class Recorder {
 public:
  explicit Recorder(bool on) : on_(on) {}
  bool on() const { return on_; }

  TrackId add_track(int rank, Stage stage, Role role, int block, int lane = 0);

  // A slice that lasted no time is left out: nothing waited.
  void slice(TrackId track, Kind kind, Time begin, Time end, const Args& args = {}) {
    if (on_ && end > begin && track != kNoTrack) {
      keep(track, kind, begin, end, args);
    }
  }

  // The events by track, in time's order, moved into the timeline together with the tracks.
  void finish(timeline::Timeline& timeline);

 private:
  void keep(TrackId track, Kind kind, Time begin, Time end, const Args& args);

  bool on_;
  std::vector<timeline::Track> tracks_;
  std::vector<timeline::Event> events_;
};

// Counter rows drawn from the events: "row blocks open", "jobs done", and the links' rates.
void add_counters(timeline::Timeline& timeline, double row_bytes);

}  // namespace fusescope::engine::sim
