#pragma once
// One iteration of the layer on every rank, as events on one clock, with what is needed to explain
// it. Engines fill it; dependencies.hpp, store.hpp and writers.hpp read it.

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/event.hpp"

namespace fusescope::timeline {

// What connects the events of a rank: who waits for whom. Taken from the schedule tables, so that
// the analysis needs nothing but the timeline.
struct Wiring {
  int ranks = 0;
  int tokens_per_rank = 0;
  int topk = 0;
  int n_tiles_1 = 0;  // N tiles of a row block in GEMM 1
  int n_tiles_2 = 0;  // ... in GEMM 2: a row block is ready after that many epilogues
  int watermark_chunks = 1;
  // Per rank: the row block of each hit [R*T, K], and the expert of each row block.
  std::vector<std::vector<std::int32_t>> hit_row_block;
  std::vector<std::vector<std::int32_t>> expert_of_row_block;
  // Per rank and row block: the row block by which the tiles that multiply it are named. Empty: each its own.
  std::vector<std::vector<std::int32_t>> tile_of_row_block;

  // Row blocks out of range are their own.
  int tile_of(int rank, int row_block) const;
  // The last row block of the tiles that multiply this one.
  int last_of_tile(int rank, int row_block) const;
  // Row blocks that name tiles.
  int row_tiles(int rank) const;
  bool operator==(const Wiring&) const = default;
};

enum class Provenance : std::uint8_t { measured, simulated };
std::string_view name(Provenance provenance);

struct Meta {
  Provenance provenance = Provenance::simulated;
  std::string device;         // "NVIDIA H200" or the profile's name
  int sms = 0;                // per device
  bool serial = false;        // the serial layer: stream phases only
  bool programmatic = false;  // blocks of a kernel may begin while the kernel before it runs
  double clock_bound_ns = 0;  // what the alignment of two ranks' clocks is good for; 0 = one clock
  std::uint64_t dropped = 0;  // records lost to full buffers
  std::string problem;        // describe(problem)
  std::string config;         // describe(config)
  std::string command;        // what made it
  std::string commit;
  std::string chosen;  // which iteration this is, and how it was chosen

  // Measured timelines; 0 or "" where it is not known.
  std::string clocks;             // how the devices' clocks were aligned
  double unrecorded_us = 0;       // median wall of iterations that write nothing down ...
  double recorded_us = 0;         // ... and of those that do, taken in turns with them
  double dispatch_clock_mhz = 0;  // SM clock during kernel 1 of this iteration, over all ranks
  double combine_clock_mhz = 0;   // during kernel 2
  bool operator==(const Meta&) const = default;
};

// A sampled quantity, for counter rows in viewers.
struct Counter {
  std::string name;  // "row blocks open"
  std::string unit;
  int rank = 0;
  std::vector<std::int64_t> time_ns;
  std::vector<double> value;  // holds from its time to the next
  bool operator==(const Counter&) const = default;
};

struct Timeline {
  Meta meta;
  Wiring wiring;
  std::vector<Track> tracks;
  std::vector<Event> events;
  std::vector<Counter> counters;

  // The iteration's wall: first stream phase's begin on any rank to the last final reduce's
  // (reduce_scatter's) end.
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t wall_ns() const { return end_ns - begin_ns; }
  bool operator==(const Timeline&) const = default;
};

// Sorts events by (track, begin, longer first, kind), the order every reader relies on.
bool before(const Event& a, const Event& b);
void sort_events(Timeline& timeline);

// The first violation of the event contract, or "": tracks overlap, arguments missing, events
// outside the wall, phases out of order, an effect before its cause by more than the clock bound.
std::string check(const Timeline& timeline);

}  // namespace fusescope::timeline
