#include "engine/cuda/link_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "timeline/collect/pm_sampling.hpp"

namespace fusescope::engine::cuda {
namespace {

using Json = nlohmann::json;

constexpr double kAgreement = 0.1;
constexpr double kAtTheirTime = 0.99;

// The four ways of payload, and what each is called in print.
struct Way {
  std::string_view key;
  std::string_view words;
  double timeline::LinkBytes::*counted;
};
constexpr std::array<Way, 4> kWays = {
    {{"read", "pulled from others", &timeline::LinkBytes::read},
     {"served", "pulled by others", &timeline::LinkBytes::served},
     {"written", "pushed", &timeline::LinkBytes::written},
     {"written_here", "pushed here", &timeline::LinkBytes::written_here}}};

// A row of each token of all other ranks.
double rows_bytes(const Shape& shape) {
  return 2.0 * (shape.ranks - 1) * shape.tokens_per_rank * shape.hidden;
}
// By symmetry as many are pulled from here as from the others.
double pulled_bytes(const Shape& shape, const Config& config) {
  return pushes_tokens(config) ? 0 : rows_bytes(shape);
}
// Partial rows for all other ranks, this rank's tokens where they are pushed, their ids and weights before that, and flags. The prologue's ids carry their
// iteration, in a word of twice the size, in place of a flag of their own, and need no barrier before the copy-in.
double pushed_bytes(const Shape& shape, const Config& config) {
  const bool prologue = config.schedule == ScheduleSite::fused;
  const std::size_t hit = (prologue ? sizeof(std::uint64_t) : sizeof(std::int32_t)) + sizeof(float);
  const int flags = (prologue ? 1 : 3) + config.watermark_chunks;
  const double hits = static_cast<double>(shape.tokens_per_rank) * shape.topk;
  const double tokens = pushes_tokens(config) ? rows_bytes(shape) : 0;
  return tokens + rows_bytes(shape) +
         (shape.ranks - 1) * (static_cast<double>(hit) * hits + flags * sizeof(std::uint64_t));
}

// Of what the counter of reads shows, the part within [first pull from elsewhere, last such pull's landing]
// of the rank, a sample wider on both sides.
double share_at_its_time(const timeline::Timeline& timeline, int rank, const Shape& shape) {
  const std::size_t metric = timeline::pm_metric("nvlrx__bytes_packet_response_data_user.sum");
  const std::string_view name = timeline::pm_metrics()[metric].name;
  const auto counter = std::find_if(
      timeline.counters.begin(), timeline.counters.end(),
      [&](const timeline::Counter& one) { return one.rank == rank && one.name == name; });
  if (counter == timeline.counters.end() || counter->time_ns.size() < 2) {
    return 0;
  }
  const std::int64_t sample_ns = counter->time_ns[1] - counter->time_ns[0];
  std::int64_t begin_ns = INT64_MAX;
  std::int64_t end_ns = INT64_MIN;
  for (const timeline::Event& event : timeline.events) {
    if (event.kind == timeline::Kind::pull && timeline.tracks[event.track].rank == rank &&
        event.token / shape.tokens_per_rank != rank) {
      begin_ns = std::min(begin_ns, event.begin_ns - sample_ns);
      end_ns = std::max(end_ns, event.end_ns + sample_ns);
    }
  }
  double all = 0;
  double within = 0;
  for (std::size_t i = 0; i < counter->time_ns.size(); ++i) {
    all += counter->value[i];
    within +=
        counter->time_ns[i] >= begin_ns && counter->time_ns[i] < end_ns ? counter->value[i] : 0;
  }
  return all > 0 ? within / all : 0;
}

}  // namespace

Json compare_links(const RecordedTimeline& recorded, const Shape& shape, const Config& config,
                   std::size_t devices) {
  Json rows = Json::array();
  if (devices != static_cast<std::size_t>(shape.ranks) || devices < 2) {
    return rows;
  }
  for (const DeviceLinkBytes& link : recorded.link_bytes) {
    Json row = {{"gpu", link.device},
                {"wire_sent", link.bytes.sent},
                {"wire_received", link.bytes.received},
                {"copy",
                 {{"payload", link.of_copy.written},
                  {"wire_sent", link.of_copy.sent},
                  {"wire_received", link.of_copy.received}}}};
    if (pulled_bytes(shape, config) > 0) {
      row["pulls_at_their_time"] =
          share_at_its_time(recorded.timeline, static_cast<int>(rows.size()), shape);
    }
    for (const Way& way : kWays) {
      const bool pull = way.key == "read" || way.key == "served";
      const double scheduled = pull ? pulled_bytes(shape, config) : pushed_bytes(shape, config);
      if (scheduled == 0) {
        continue;
      }
      const double counted = link.bytes.*way.counted;
      row[std::string(way.key)] = {
          {"scheduled", scheduled}, {"counted", counted}, {"ratio", counted / scheduled}};
    }
    rows.push_back(row);
  }
  return rows;
}

bool links_agree(const Json& links) {
  for (const Json& link : links) {
    if (link.value("pulls_at_their_time", 1.0) < kAtTheirTime) {
      return false;
    }
    for (const Way& way : kWays) {
      if (!link.contains(way.key)) {
        continue;
      }
      const auto ratio = link[std::string(way.key)]["ratio"].get<double>();
      if (!(std::abs(ratio / link["copy"]["payload"].get<double>() - 1) <= kAgreement)) {
        return false;
      }
    }
  }
  return true;
}

std::string describe_link(const Json& link) {
  std::string text =
      fmt::format("GPU {} NVLink payload, counted over scheduled:", link["gpu"].get<int>());
  for (const Way& way : kWays) {
    if (!link.contains(way.key)) {
      continue;
    }
    const Json& bytes = link[std::string(way.key)];
    text += fmt::format("{} {} {:.3f} ({:.2f} MB)", text.back() == ':' ? "" : ",", way.words,
                        bytes["ratio"].get<double>(), bytes["counted"].get<double>() / 1e6);
  }
  return text +
         fmt::format("; of a plain copy {:.4f} is counted, {:.3f} on the wire, {:.3f} back",
                     link["copy"]["payload"].get<double>(), link["copy"]["wire_sent"].get<double>(),
                     link["copy"]["wire_received"].get<double>()) +
         (link.contains("pulls_at_their_time")
              ? fmt::format("; {:.1f}% of the pulls at their time",
                            100 * link["pulls_at_their_time"].get<double>())
              : "") +
         fmt::format("; on the wire {:.2f} MB sent, {:.2f} MB received",
                     link["wire_sent"].get<double>() / 1e6,
                     link["wire_received"].get<double>() / 1e6);
}

}  // namespace fusescope::engine::cuda
