// The stream's phases: what stamped their begin and end, and what the blocks recorded. One that begins while
// the one before still runs counts from the end of that one.

#include <algorithm>

#include "timeline/records/rank_events.hpp"

namespace fusescope::timeline {
namespace {

struct PhaseMeaning {
  Kind kind;
  int index;
};

constexpr std::array<PhaseMeaning, kPhases> kPhaseMeanings = {{{Kind::ids_exchange, -1},
                                                               {Kind::schedule_build, -1},
                                                               {Kind::barrier, 0},
                                                               {Kind::copy_in, -1},
                                                               {Kind::barrier, 1},
                                                               {Kind::dispatch_gemm, -1},
                                                               {Kind::activation, -1},
                                                               {Kind::gemm_combine_push, -1},
                                                               {Kind::final_reduce, -1}}};

Phase phase_of_blocks(Kind kind) {
  switch (kind) {
    case Kind::pull:
    case Kind::scatter:
    case Kind::arrive:
    case Kind::gate_wait:
      return Phase::dispatch_gemm;
    case Kind::reduce_wait:
    case Kind::reduce:
      return Phase::final_reduce;
    default:
      return Phase::gemm_combine_push;
  }
}

}  // namespace

void decode_phases(RankEvents& events) {
  struct Window {
    std::int64_t begin_ns = INT64_MAX;
    std::int64_t end_ns = INT64_MIN;
  };
  std::array<Window, kPhases> windows;
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    const PhaseStamp& stamp = events.source().phases[phase];
    if (stamp.begin_ns != UINT64_MAX) {
      windows[phase].begin_ns = events.source().clock.to_reference(stamp.begin_ns);
    }
    if (stamp.end_ns != 0) {
      windows[phase].end_ns = events.source().clock.to_reference(stamp.end_ns);
    }
  }
  // A block's first and last thread may record a little outside of what its stamping thread saw.
  for (std::size_t id = events.first_event(); id < events.size(); ++id) {
    const Event& event = events.event(id);
    const bool tile = event.kind == Kind::mainloop || event.kind == Kind::epilogue;
    const Phase phase = tile && events.stage_of(event) == Stage::dispatch_gemm
                            ? Phase::dispatch_gemm
                            : phase_of_blocks(event.kind);
    Window& window = windows[static_cast<std::size_t>(phase)];
    window.begin_ns = std::min(window.begin_ns, event.begin_ns);
    window.end_ns = std::max(window.end_ns, event.end_ns);
  }
  std::int64_t now = INT64_MIN;
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    const Window& window = windows[phase];
    if (window.end_ns == INT64_MIN) {
      continue;
    }
    const bool unknown = window.begin_ns == INT64_MAX;
    const std::int64_t begin =
        unknown ? (now == INT64_MIN ? window.end_ns : now) : std::max(window.begin_ns, now);
    now = std::max(begin, window.end_ns);
    events.add(Stage::stream, Role::stream, 0, 0, kPhaseMeanings[phase].kind, begin, now,
               {.index = kPhaseMeanings[phase].index});
  }
}

}  // namespace fusescope::timeline
