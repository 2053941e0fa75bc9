#pragma once
// What viewers call things: the same words in every format.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "timeline/dependencies.hpp"

namespace fusescope::timeline {

// "phase", "communication", "compute", "wait", "combine", "reduce": what an event is, for colours
// and filters.
std::string_view category(Kind kind);

// What an event carries, each with a name that says what it is: the index of a mainloop is its
// n_tile, the peer of a pull is its source_rank. A gate_wait also names the token that opened it.
struct Annotation {
  std::string_view name;
  std::int64_t value = 0;
};
class Annotations {
 public:
  void add(std::string_view name, std::int64_t value) { list_[size_++] = {name, value}; }
  const Annotation* begin() const { return list_.data(); }
  const Annotation* end() const { return list_.data() + size_; }

 private:
  std::array<Annotation, 8> list_;
  std::size_t size_ = 0;
};
Annotations annotate(const Dependencies& dependencies, Dependencies::EventId id);
// Every name that annotate() uses.
const std::vector<std::string_view>& annotation_names();

// "rank 0 (NVIDIA H200, measured)": nobody shall take a simulation for a measurement.
std::string process_name(const Timeline& timeline, int rank);
// What a block's lane is for, where that is not plain: "epilogues", "sums of warpgroup 1"; else "".
std::string lane_purpose(const Track& track);
// "dispatch_gemm communication block 119", "dispatch_gemm compute block 3 lane 1 (epilogues)", "stream".
std::string thread_name(const Track& track);

// What the run was, as (key, text).
std::vector<std::pair<std::string, std::string>> provenance_of(const Timeline& timeline);

// Tracks as they are read, by rank, stage, role, block and lane.
std::vector<std::uint32_t> reading_order(const Timeline& timeline);

// The earliest time in the timeline, to which viewers' clocks are relative.
std::int64_t origin_ns(const Timeline& timeline);

}  // namespace fusescope::timeline
