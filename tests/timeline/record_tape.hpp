#pragma once
// What the device code of the records does, on the host: writers that fill their pieces of a buffer. And
// a timeline, taken apart into the records that it could have been made of.

#include <vector>

#include "timeline/records/decode_records.hpp"

namespace fusescope::timeline {

class RecordTape {
 public:
  explicit RecordTape(const RecordLayout& layout);

  // One writer's next record; dropped and counted when its piece is full.
  void write(Family family, int block, int writer, std::uint64_t ns, Point point, int a = -1,
             int b = 0);
  void stamp(Phase phase, std::uint64_t begin_ns, std::uint64_t end_ns);

  RankRecords read(int rank) const;

  std::vector<Record> records;
  std::vector<std::uint32_t> dropped;
  std::vector<PhaseStamp> phases;
  std::vector<std::int32_t> job_order;
  RecordLayout layout;

 private:
  std::vector<std::uint32_t> written_;
};

// The work of a timeline with one job lane per block, for lay_out_records().
RecordedWork work_of(const Timeline& timeline, int rank);

// All events of one rank as records on that device's clock, which shows `ahead_ns` more than the
// timeline's.
RecordTape take_apart(const Timeline& timeline, int rank, std::uint64_t ahead_ns);

}  // namespace fusescope::timeline
