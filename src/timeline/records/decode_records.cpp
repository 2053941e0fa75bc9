#include "timeline/records/decode_records.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "timeline/records/rank_events.hpp"

namespace fusescope::timeline {
namespace {

constexpr std::array<std::string_view, kFamilies> kFamilyNames = {
    "dispatch_gemm tiles",    "dispatch_gemm token slots",     "gemm_combine_push tiles",
    "gemm_combine_push jobs", "gemm_combine_push joined jobs", "final_reduce"};

void refuse_wrong_sizes(const RankRecords& rank) {
  const auto fits = [&](std::size_t size, std::size_t wanted, const char* what) {
    if (size != wanted) {
      throw std::invalid_argument("rank " + std::to_string(rank.rank) + " has " +
                                  std::to_string(size) + " " + what + ", its layout says " +
                                  std::to_string(wanted));
    }
  };
  fits(rank.records.size(), rank.layout.records, "records");
  fits(rank.dropped.size(), rank.layout.writers, "counts of dropped records");
  fits(rank.phases.size(), kPhases, "phase stamps");
}

// A job waits for the last of its row blocks: the one whose last tile was stored last.
void name_awaited_row_blocks(RankEvents& events) {
  const Wiring& wiring = events.wiring();
  const auto rank = static_cast<std::size_t>(events.source().rank);
  if (rank >= wiring.hit_row_block.size()) {
    return;
  }
  const std::vector<std::int32_t>& hits = wiring.hit_row_block[rank];
  std::map<int, std::int64_t> complete;  // by the row block that names the tiles
  for (std::size_t id = events.first_event(); id < events.size(); ++id) {
    const Event& event = events.event(id);
    if (event.kind == Kind::epilogue && events.stage_of(event) == Stage::gemm_combine_push) {
      std::int64_t& end = complete.try_emplace(event.row_block, event.end_ns).first->second;
      end = std::max(end, event.end_ns);
    }
  }
  for (std::size_t id = events.first_event(); id < events.size(); ++id) {
    Event& event = events.event(id);
    if (event.kind != Kind::ready_wait) {
      continue;
    }
    const auto first = static_cast<std::size_t>(event.token) * wiring.topk;
    std::int64_t latest = INT64_MIN;
    for (std::size_t hit = first; hit < std::min(first + wiring.topk, hits.size()); ++hit) {
      const auto found = complete.find(wiring.tile_of(events.source().rank, hits[hit]));
      const std::int64_t end = found == complete.end() ? INT64_MIN : found->second;
      if (event.row_block < 0 || end > latest) {
        event.row_block = hits[hit];
        latest = end;
      }
    }
  }
}

void set_wall(Timeline& timeline, DecodeReport& report) {
  timeline.begin_ns = INT64_MAX;
  timeline.end_ns = INT64_MIN;
  for (const Event& event : timeline.events) {
    if (is_stream_phase(event.kind)) {
      timeline.begin_ns = std::min(timeline.begin_ns, event.begin_ns);
      timeline.end_ns = std::max(timeline.end_ns, event.end_ns);
    }
  }
  if (timeline.begin_ns > timeline.end_ns) {
    timeline.begin_ns = timeline.end_ns = 0;
  }
  report.origin_ns = timeline.begin_ns;
  for (Event& event : timeline.events) {
    event.begin_ns -= report.origin_ns;
    event.end_ns -= report.origin_ns;
  }
  timeline.end_ns -= report.origin_ns;
  timeline.begin_ns = 0;
}

}  // namespace

RankEvents::RankEvents(const RankRecords& source, Timeline& timeline, DecodeReport& report)
    : source_(source), timeline_(timeline), report_(report), first_event_(timeline.events.size()) {}

std::vector<RankEvents::Moment> RankEvents::moments(Family family, int block, int writer) {
  const FamilyLayout& at = source_.layout[family];
  const std::size_t number =
      static_cast<std::size_t>(block) * at.writers_per_block + static_cast<std::size_t>(writer);
  const auto piece = source_.records.subspan(at.first_record + number * at.capacity, at.capacity);
  std::vector<Moment> moments;
  for (const Record& record : piece) {
    if (record.point == Point::none) {
      break;
    }
    ++report_.records;
    Moment moment{source_.clock.to_reference(record.ns), record.a, record.b, record.point};
    // One thread's clock does not go back, and a damaged record shall not turn a slice around.
    moment.ns = moments.empty() ? moment.ns : std::max(moment.ns, moments.back().ns);
    moments.push_back(moment);
  }
  return moments;
}

std::size_t RankEvents::add(Stage stage, Role role, int block, int lane, Kind kind,
                            std::int64_t begin_ns, std::int64_t end_ns,
                            const EventArguments& arguments) {
  const auto [found, fresh] =
      tracks_.try_emplace({static_cast<int>(stage), static_cast<int>(role), block, lane},
                          static_cast<std::uint32_t>(timeline_.tracks.size()));
  if (fresh) {
    timeline_.tracks.push_back({source_.rank, source_.device, stage, role, block, lane});
  }
  Event event;
  event.begin_ns = begin_ns;
  event.end_ns = std::max(end_ns, begin_ns);
  event.track = found->second;
  event.token = arguments.token;
  event.row_block = arguments.row_block;
  event.index = arguments.index;
  event.peer = static_cast<std::int16_t>(arguments.peer);
  event.kind = kind;
  timeline_.events.push_back(event);
  return timeline_.events.size() - 1;
}

void RankEvents::lose(Family family, int block, int writer, const Moment& moment) {
  if (report_.incomplete++ == 0) {
    report_.first_incomplete = "rank " + std::to_string(source_.rank) + " " +
                               std::string(kFamilyNames[static_cast<std::size_t>(family)]) +
                               ", block " + std::to_string(block) + ", writer " +
                               std::to_string(writer) + ": point " +
                               std::to_string(static_cast<int>(moment.point)) + " of " +
                               std::to_string(moment.a) + " stands alone";
  }
}

DecodeReport decode_records(std::span<const RankRecords> ranks, Timeline& timeline) {
  DecodeReport report;
  timeline.tracks.clear();
  timeline.events.clear();
  for (const RankRecords& rank : ranks) {
    refuse_wrong_sizes(rank);
    report.dropped += std::accumulate(rank.dropped.begin(), rank.dropped.end(), std::uint64_t{0});
    RankEvents events(rank, timeline, report);
    decode_slots(events);
    decode_tiles(events, Family::dispatch_tiles);
    decode_tiles(events, Family::combine_tiles);
    decode_jobs(events, Family::combine_jobs);
    decode_jobs(events, Family::combine_joined);
    name_awaited_row_blocks(events);
    decode_reduce(events);
    decode_phases(events);
  }
  set_wall(timeline, report);
  timeline.meta.dropped = report.dropped + report.incomplete;
  sort_events(timeline);
  return report;
}

}  // namespace fusescope::timeline
