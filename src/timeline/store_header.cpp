#include "timeline/store_header.hpp"

#include <cmath>
#include <cstdint>
#include <optional>

#include "base/error.hpp"
#include "base/json_reader.hpp"

namespace fusescope::timeline {
namespace {

// Far beyond any layer, and small enough that no table sized by them can exhaust memory.
constexpr long long kMostRanks = 1024;
constexpr long long kMostTokensPerRank = 1 << 22;
constexpr long long kMostOfAKind = 1 << 20;
constexpr long long kMostRows = 1LL << 30;
constexpr long long kMostTriples = 1LL << 24;  // (rank, rank, token): eight tables have that many
constexpr long long kMostSms = 1 << 12;

template <typename Enum>
Json names_of(int count) {
  Json names = Json::array();
  for (int i = 0; i < count; ++i) {
    names.push_back(name(static_cast<Enum>(i)));
  }
  return names;
}

// The file's own numbering, translated to this program's.
template <typename Enum>
std::vector<Enum> numbering(const JsonReader& stored, int count) {
  std::vector<std::string> known;
  for (int i = 0; i < count; ++i) {
    known.emplace_back(name(static_cast<Enum>(i)));
  }
  std::vector<Enum> values;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    values.push_back(static_cast<Enum>(stored.element(i).as_choice(known)));
  }
  return values;
}

Json sizes_of(const std::vector<std::vector<std::int32_t>>& rows) {
  Json sizes = Json::array();
  for (const auto& row : rows) {
    sizes.push_back(row.size());
  }
  return sizes;
}

std::vector<std::size_t> read_sizes(const JsonReader& stored) {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    sizes.push_back(static_cast<std::size_t>(stored.element(i).as_integer(0, kMostRows)));
  }
  return sizes;
}

Json meta_json(const Meta& meta) {
  for (const double number : {meta.clock_bound_ns, meta.unrecorded_us, meta.recorded_us,
                              meta.dispatch_clock_mhz, meta.combine_clock_mhz}) {
    if (!std::isfinite(number) || meta.dropped > INT64_MAX) {
      throw InputError(
          {"", "meta", "a bound, a time, a clock or a count is not a number", "finite numbers"});
    }
  }
  return {{"provenance", name(meta.provenance)},
          {"device", meta.device},
          {"sms", meta.sms},
          {"serial", meta.serial},
          {"programmatic", meta.programmatic},
          {"clock_bound_ns", meta.clock_bound_ns},
          {"dropped", meta.dropped},
          {"problem", meta.problem},
          {"config", meta.config},
          {"command", meta.command},
          {"commit", meta.commit},
          {"chosen", meta.chosen},
          {"clocks", meta.clocks},
          {"unrecorded_us", meta.unrecorded_us},
          {"recorded_us", meta.recorded_us},
          {"dispatch_clock_mhz", meta.dispatch_clock_mhz},
          {"combine_clock_mhz", meta.combine_clock_mhz}};
}

Meta read_meta(const JsonReader& stored) {
  Meta meta;
  meta.provenance =
      static_cast<Provenance>(stored.at("provenance").as_choice({"measured", "simulated"}));
  meta.device = stored.at("device").as_string();
  meta.sms = static_cast<int>(stored.at("sms").as_integer(0, kMostSms));
  meta.serial = stored.at("serial").as_bool();
  if (stored.has("programmatic")) {  // no file of an earlier program has it
    meta.programmatic = stored.at("programmatic").as_bool();
  }
  meta.clock_bound_ns = stored.at("clock_bound_ns").as_number();
  meta.dropped = static_cast<std::uint64_t>(stored.at("dropped").as_integer(0, INT64_MAX));
  meta.problem = stored.at("problem").as_string();
  meta.config = stored.at("config").as_string();
  meta.command = stored.at("command").as_string();
  meta.commit = stored.at("commit").as_string();
  meta.chosen = stored.at("chosen").as_string();
  if (stored.has("clocks")) {  // files of earlier programs end here
    meta.clocks = stored.at("clocks").as_string();
    meta.unrecorded_us = stored.at("unrecorded_us").as_number();
    meta.recorded_us = stored.at("recorded_us").as_number();
    meta.dispatch_clock_mhz = stored.at("dispatch_clock_mhz").as_number();
    meta.combine_clock_mhz = stored.at("combine_clock_mhz").as_number();
  }
  return meta;
}

Wiring read_wiring(const JsonReader& stored) {
  const auto integer = [&](const char* key, long long most) {
    return static_cast<int>(stored.at(key).as_integer(0, most));
  };
  Wiring wiring;
  wiring.ranks = integer("ranks", kMostRanks);
  wiring.tokens_per_rank = integer("tokens_per_rank", kMostTokensPerRank);
  wiring.topk = integer("topk", kMostOfAKind);
  wiring.n_tiles_1 = integer("n_tiles_1", kMostOfAKind);
  wiring.n_tiles_2 = integer("n_tiles_2", kMostOfAKind);
  wiring.watermark_chunks = integer("watermark_chunks", kMostTokensPerRank);
  const long long planes = 1LL * wiring.ranks * wiring.ranks;
  for (const int per_plane : {wiring.tokens_per_rank, wiring.watermark_chunks}) {
    if (planes * per_plane > kMostTriples) {
      stored.refuse(std::to_string(wiring.ranks) + " ranks with " + std::to_string(per_plane) +
                        " tokens or watermark chunks each are beyond any layer",
                    "at most 2^24 (rank, rank, token) triples");
    }
  }
  return wiring;
}

}  // namespace

std::string header_text(const Timeline& timeline) {
  const Wiring& wiring = timeline.wiring;
  Json counters = Json::array();
  for (const Counter& counter : timeline.counters) {
    counters.push_back({{"name", counter.name},
                        {"unit", counter.unit},
                        {"rank", counter.rank},
                        {"samples", counter.time_ns.size()}});
  }
  const Json header = {{"meta", meta_json(timeline.meta)},
                       {"wall_ns", {timeline.begin_ns, timeline.end_ns}},
                       {"wiring",
                        {{"ranks", wiring.ranks},
                         {"tokens_per_rank", wiring.tokens_per_rank},
                         {"topk", wiring.topk},
                         {"n_tiles_1", wiring.n_tiles_1},
                         {"n_tiles_2", wiring.n_tiles_2},
                         {"watermark_chunks", wiring.watermark_chunks},
                         {"hits", sizes_of(wiring.hit_row_block)},
                         {"row_blocks", sizes_of(wiring.expert_of_row_block)},
                         {"tiles", sizes_of(wiring.tile_of_row_block)}}},
                       {"kinds", names_of<Kind>(kKinds)},
                       {"stages", names_of<Stage>(kStages)},
                       {"roles", names_of<Role>(kRoles)},
                       {"tracks", timeline.tracks.size()},
                       {"events", timeline.events.size()},
                       {"counters", counters}};
  // Text from a command line may hold any bytes; JSON holds UTF-8.
  return header.dump(-1, ' ', false, Json::error_handler_t::replace);
}

StoreHeader read_header(const std::string& text, const std::string& file) {
  const std::optional<Json> document = parse_json(text);
  if (!document) {
    throw InputError(
        {file, "content line 2", "the header is not valid JSON", "a file written by fusescope"});
  }
  const JsonReader stored(file, *document);
  StoreHeader header;
  Timeline& shell = header.shell;
  shell.meta = read_meta(stored.at("meta"));
  shell.wiring = read_wiring(stored.at("wiring"));
  const JsonReader wall = stored.at("wall_ns");
  if (wall.size() != 2) {
    wall.refuse("has " + std::to_string(wall.size()) + " elements", "[begin, end]");
  }
  shell.begin_ns = wall.element(0).as_integer(INT64_MIN, INT64_MAX);
  shell.end_ns = wall.element(1).as_integer(INT64_MIN, INT64_MAX);
  header.hit_rows = read_sizes(stored.at("wiring").at("hits"));
  header.expert_rows = read_sizes(stored.at("wiring").at("row_blocks"));
  if (stored.at("wiring").has("tiles")) {  // not in files of earlier programs
    header.tile_rows = read_sizes(stored.at("wiring").at("tiles"));
  }
  header.kinds = numbering<Kind>(stored.at("kinds"), kKinds);
  header.stages = numbering<Stage>(stored.at("stages"), kStages);
  header.roles = numbering<Role>(stored.at("roles"), kRoles);
  header.track_rows = static_cast<std::size_t>(stored.at("tracks").as_integer(0, kMostRows));
  header.event_rows = static_cast<std::size_t>(stored.at("events").as_integer(0, kMostRows));
  const JsonReader counters = stored.at("counters");
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const JsonReader counter = counters.element(i);
    shell.counters.push_back(
        {.name = counter.at("name").as_string(),
         .unit = counter.at("unit").as_string(),
         .rank = static_cast<int>(counter.at("rank").as_integer(0, kMostRanks)),
         .time_ns = {},
         .value = {}});
    header.counter_rows.push_back(
        static_cast<std::size_t>(counter.at("samples").as_integer(0, kMostRows)));
  }
  return header;
}

}  // namespace fusescope::timeline
