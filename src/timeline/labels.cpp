#include "timeline/labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "timeline/records/decode_records.hpp"

namespace fusescope::timeline {
namespace {

std::string_view index_name(Kind kind) {
  switch (kind) {
    case Kind::barrier:
      return "barrier";
    case Kind::gate_wait:
    case Kind::activation_wait:
    case Kind::mainloop:
    case Kind::epilogue:
      return "n_tile";
    case Kind::watermark:
    case Kind::reduce_wait:
    case Kind::reduce:
      return "chunk";
    default:
      return "job";
  }
}

std::string_view peer_name(Kind kind) {
  switch (kind) {
    case Kind::pull:
      return "source_rank";
    case Kind::reduce_wait:
      return "sending_rank";
    default:
      return "destination_rank";
  }
}

}  // namespace

std::string_view category(Kind kind) {
  if (is_stream_phase(kind)) {
    return "phase";
  }
  switch (kind) {
    case Kind::pull:
    case Kind::scatter:
    case Kind::arrive:
      return "communication";
    case Kind::mainloop:
    case Kind::epilogue:
      return "compute";
    case Kind::gate_wait:
    case Kind::activation_wait:
    case Kind::ready_wait:
    case Kind::reduce_wait:
      return "wait";
    case Kind::reduce:
      return "reduce";
    default:
      return "combine";
  }
}

const std::vector<std::string_view>& annotation_names() {
  static const std::vector<std::string_view> kNames = {
      "token",     "source_rank", "destination_rank", "sending_rank",
      "row_block", "expert",      "n_tile",           "job",
      "chunk",     "barrier",     "opened_by_token",  "opened_by_source_rank"};
  return kNames;
}

Annotations annotate(const Dependencies& dependencies, Dependencies::EventId id) {
  const Timeline& timeline = dependencies.timeline();
  const Event& event = timeline.events[id];
  Annotations list;
  if (event.token >= 0) {
    list.add("token", event.token);
  }
  if (event.peer >= 0) {
    list.add(peer_name(event.kind), event.peer);
  }
  if (event.row_block >= 0) {
    list.add("row_block", event.row_block);
    const auto& experts = timeline.wiring.expert_of_row_block;
    const auto rank = static_cast<std::size_t>(dependencies.rank_of(id));
    const auto block = static_cast<std::size_t>(event.row_block);
    if (rank < experts.size() && block < experts[rank].size()) {
      list.add("expert", experts[rank][block]);
    }
  }
  if (event.index >= 0) {
    list.add(index_name(event.kind), event.index);
  }
  if (event.kind == Kind::gate_wait) {
    if (const auto arrive = dependencies.cause(id); arrive != Dependencies::kNone) {
      const std::int32_t token = dependencies.event(arrive).token;
      list.add("opened_by_token", token);
      if (timeline.wiring.tokens_per_rank > 0) {
        list.add("opened_by_source_rank", token / timeline.wiring.tokens_per_rank);
      }
    }
  }
  return list;
}

std::string process_name(const Timeline& timeline, int rank) {
  return "rank " + std::to_string(rank) + " (" + timeline.meta.device + ", " +
         std::string(name(timeline.meta.provenance)) + ")";
}

std::string lane_purpose(const Track& track) {
  const bool jobs = track.stage == Stage::gemm_combine_push;
  if (track.role == Role::compute && track.lane == kEpilogueLane) {
    return "epilogues";
  }
  if (jobs && track.lane >= kFirstFreeLane) {
    const int lane = track.lane - kFirstFreeLane;
    const int of_group = lane % kLanesPerJobGroup;
    return fmt::format("{} of warpgroup {}",
                       of_group == 0   ? "claims"
                       : of_group == 1 ? "sums"
                                       : "pushes",
                       lane / kLanesPerJobGroup);
  }
  if (track.role == Role::compute && track.lane >= kFirstFreeLane) {
    return fmt::format("token slot {}", track.lane - kFirstFreeLane);
  }
  return "";
}

std::string thread_name(const Track& track) {
  const std::string text = describe(track);
  const std::string purpose = lane_purpose(track);
  return text.substr(text.find(' ', text.find(' ') + 1) + 1) +  // without "rank 0 "
         (purpose.empty() ? "" : " (" + purpose + ")");
}

std::vector<std::pair<std::string, std::string>> provenance_of(const Timeline& timeline) {
  const Meta& meta = timeline.meta;
  std::vector<std::pair<std::string, std::string>> facts = {
      {"provenance", std::string(name(meta.provenance))},
      {"device", meta.device},
      {"sms_per_device", std::to_string(meta.sms)},
      {"layer", meta.serial ? "serial" : "fused"},
      {"problem", meta.problem},
      {"config", meta.config},
      {"iteration", meta.chosen},
      {"wall_ns", std::to_string(timeline.wall_ns())},
      {"clock_bound_ns", fmt::format("{}", meta.clock_bound_ns)},
      {"dropped_records", std::to_string(meta.dropped)},
      {"command", meta.command},
      {"commit", meta.commit}};
  if (meta.recorded_us > 0) {
    facts.emplace_back("clocks", meta.clocks);
    facts.emplace_back("median_us_without_records", fmt::format("{:.2f}", meta.unrecorded_us));
    facts.emplace_back("median_us_with_records", fmt::format("{:.2f}", meta.recorded_us));
    facts.emplace_back("sm_clock_mhz",
                       fmt::format("dispatch_gemm {:.0f}, gemm_combine_push {:.0f}",
                                   meta.dispatch_clock_mhz, meta.combine_clock_mhz));
  }
  return facts;
}

std::vector<std::uint32_t> reading_order(const Timeline& timeline) {
  std::vector<std::uint32_t> order(timeline.tracks.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&](std::uint32_t index) {
    const Track& track = timeline.tracks[index];
    return std::tuple(track.rank, track.stage, track.role, track.block, track.lane);
  };
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  return order;
}

std::int64_t origin_ns(const Timeline& timeline) {
  std::int64_t origin = timeline.begin_ns;
  for (const Event& event : timeline.events) {
    origin = std::min(origin, event.begin_ns);
  }
  for (const Counter& counter : timeline.counters) {
    if (!counter.time_ns.empty()) {
      origin = std::min(origin, counter.time_ns.front());
    }
  }
  return origin;
}

}  // namespace fusescope::timeline
