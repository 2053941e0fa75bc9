#include "timeline/store.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/error.hpp"
#include "timeline/atomic_file.hpp"
#include "timeline/byte_columns.hpp"
#include "timeline/checks.hpp"
#include "timeline/gzip.hpp"
#include "timeline/store_header.hpp"

namespace fusescope::timeline {
namespace {

constexpr std::string_view kMagic = "fusescope timeline ";
constexpr int kVersion = 1;

// A column of `rows`: each value is stored as the difference from the one before.
template <typename Rows, typename Get>
void write_column(ColumnWriter& out, const Rows& rows, Get get) {
  std::int64_t last = 0;
  for (const auto& row : rows) {
    const auto value = static_cast<std::int64_t>(get(row));
    out.difference(value, last);
    last = value;
  }
}

template <typename Rows, typename Set>
void read_column(ColumnReader& in, const std::string& column, Rows& rows, std::int64_t least,
                 std::int64_t most, Set set) {
  in.enter(column);
  std::int64_t last = 0;
  for (auto& row : rows) {
    last = in.difference(last, least, most);
    set(row, last);
  }
}

template <typename Value>
constexpr std::int64_t kLeast = static_cast<std::int64_t>(std::numeric_limits<Value>::min());
template <typename Value>
constexpr std::int64_t kMost = static_cast<std::int64_t>(std::numeric_limits<Value>::max());

template <typename Row, typename Value>
void write_field(ColumnWriter& out, const std::vector<Row>& rows, Value Row::*field) {
  write_column(out, rows, [field](const Row& row) { return row.*field; });
}

template <typename Row, typename Value>
void read_field(ColumnReader& in, const std::string& column, std::vector<Row>& rows,
                Value Row::*field) {
  read_column(in, column, rows, kLeast<Value>, kMost<Value>,
              [field](Row& row, std::int64_t value) { row.*field = static_cast<Value>(value); });
}

// A field whose values are numbers into `meaning`.
template <typename Row, typename Enum>
void read_choice(ColumnReader& in, const std::string& column, std::vector<Row>& rows,
                 Enum Row::*field, const std::vector<Enum>& meaning) {
  read_column(
      in, column, rows, 0, static_cast<std::int64_t>(meaning.size()) - 1,
      [&](Row& row, std::int64_t value) { row.*field = meaning[static_cast<std::size_t>(value)]; });
}

void write_rows(ColumnWriter& out, const std::vector<std::vector<std::int32_t>>& ranks) {
  for (const auto& rank : ranks) {
    write_column(out, rank, [](std::int32_t value) { return value; });
  }
}

// Makes room for rows that take at least `least_bytes` each, unless the file cannot hold that many.
template <typename Rows>
void make_room(const ColumnReader& in, Rows& rows, std::size_t count, std::size_t least_bytes) {
  if (count > in.left() / least_bytes) {
    in.refuse("is truncated: " + std::to_string(count) + " rows do not fit in the " +
              std::to_string(in.left()) + " bytes that are left");
  }
  rows.resize(count);
}

void read_rows(ColumnReader& in, const std::string& column, const std::vector<std::size_t>& sizes,
               std::vector<std::vector<std::int32_t>>& ranks) {
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    in.enter(column + " of rank " + std::to_string(rank));
    make_room(in, ranks.emplace_back(), sizes[rank], 1);
    read_column(in, column + " of rank " + std::to_string(rank), ranks.back(), kLeast<std::int32_t>,
                kMost<std::int32_t>, [](std::int32_t& row, std::int64_t value) {
                  row = static_cast<std::int32_t>(value);
                });
  }
}

void write_tracks(ColumnWriter& out, const std::vector<Track>& tracks) {
  write_field(out, tracks, &Track::rank);
  write_field(out, tracks, &Track::device);
  write_field(out, tracks, &Track::stage);
  write_field(out, tracks, &Track::role);
  write_field(out, tracks, &Track::block);
  write_field(out, tracks, &Track::lane);
}

void read_tracks(ColumnReader& in, const StoreHeader& header, std::vector<Track>& tracks) {
  in.enter("tracks");
  make_room(in, tracks, header.track_rows, 6);
  read_field(in, "track ranks", tracks, &Track::rank);
  read_field(in, "track devices", tracks, &Track::device);
  read_choice(in, "track stages", tracks, &Track::stage, header.stages);
  read_choice(in, "track roles", tracks, &Track::role, header.roles);
  read_field(in, "track blocks", tracks, &Track::block);
  read_field(in, "track lanes", tracks, &Track::lane);
}

void write_events(ColumnWriter& out, const std::vector<Event>& events) {
  write_field(out, events, &Event::track);
  // A track mostly goes on where it stopped: begin after the end before, then the duration.
  std::int64_t last_end = 0;
  for (const Event& event : events) {
    out.difference(event.begin_ns, last_end);
    last_end = event.end_ns;
  }
  for (const Event& event : events) {
    out.difference(event.end_ns, event.begin_ns);
  }
  write_field(out, events, &Event::token);
  write_field(out, events, &Event::row_block);
  write_field(out, events, &Event::index);
  write_field(out, events, &Event::peer);
  write_field(out, events, &Event::kind);
}

void read_events(ColumnReader& in, const StoreHeader& header, std::vector<Event>& events) {
  in.enter("events");
  make_room(in, events, header.event_rows, 8);
  read_field(in, "event tracks", events, &Event::track);
  // begin needs the end before it, which comes later: keep the gaps until then.
  in.enter("event begins");
  for (Event& event : events) {
    event.begin_ns = in.difference(0);
  }
  in.enter("event durations");
  std::int64_t last_end = 0;
  for (Event& event : events) {
    event.begin_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(event.begin_ns) +
                                               static_cast<std::uint64_t>(last_end));
    event.end_ns = in.difference(event.begin_ns);
    last_end = event.end_ns;
  }
  read_field(in, "event tokens", events, &Event::token);
  read_field(in, "event row blocks", events, &Event::row_block);
  read_field(in, "event indices", events, &Event::index);
  read_field(in, "event peers", events, &Event::peer);
  read_choice(in, "event kinds", events, &Event::kind, header.kinds);
}

void write_counters(ColumnWriter& out, const std::vector<Counter>& counters) {
  for (const Counter& counter : counters) {
    write_column(out, counter.time_ns, [](std::int64_t time) { return time; });
    for (std::size_t i = 0; i < counter.time_ns.size(); ++i) {
      out.number(counter.value.at(i));
    }
  }
}

void read_counters(ColumnReader& in, const StoreHeader& header, std::vector<Counter>& counters) {
  for (std::size_t i = 0; i < counters.size(); ++i) {
    in.enter("counter " + std::to_string(i));
    make_room(in, counters[i].time_ns, header.counter_rows[i], 9);
    counters[i].value.resize(counters[i].time_ns.size());
    read_column(in, "counter " + std::to_string(i), counters[i].time_ns, INT64_MIN, INT64_MAX,
                [](std::int64_t& row, std::int64_t value) { row = value; });
    for (double& value : counters[i].value) {
      value = in.number();
    }
  }
}

// Checks the first line and returns what follows it.
std::string_view after_first_line(std::string_view content, const std::string& file) {
  const std::size_t end = content.substr(0, kMagic.size() + 12).find('\n');
  const bool ours = content.substr(0, kMagic.size()) == kMagic && end != std::string_view::npos;
  if (!ours) {
    throw InputError({file, "content line 1", "is gzip data, but not of a timeline",
                      "a file written by fusescope (*.fst)"});
  }
  const std::string version(content.substr(kMagic.size(), end - kMagic.size()));
  if (version != std::to_string(kVersion)) {
    throw InputError({file, "content line 1", "is a timeline of format version " + version,
                      "version " + std::to_string(kVersion) + ", or a newer fusescope"});
  }
  return content.substr(end + 1);
}

}  // namespace

std::string encode_timeline(const Timeline& timeline) {
  ColumnWriter out;
  out.text(std::string(kMagic) + std::to_string(kVersion) + "\n");
  out.text(header_text(timeline) + "\n");
  write_rows(out, timeline.wiring.hit_row_block);
  write_rows(out, timeline.wiring.expert_of_row_block);
  write_tracks(out, timeline.tracks);
  write_events(out, timeline.events);
  write_counters(out, timeline.counters);
  // Behind everything else: what does not know of it refuses the file, and does not take it for another.
  write_rows(out, timeline.wiring.tile_of_row_block);
  return gzip(out.take());
}

Timeline decode_timeline(std::string_view bytes, const std::string& file) {
  if (bytes.substr(0, 2) != "\x1f\x8b") {
    throw InputError({file, "byte 0", bytes.empty() ? "is empty" : "is not a timeline",
                      "a file written by fusescope (*.fst)"});
  }
  const std::string content = gunzip(bytes, file);
  const std::string_view rest = after_first_line(content, file);
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) {
    throw InputError(
        {file, "content line 2", "is truncated: the header does not end", "a whole file"});
  }
  const StoreHeader header = read_header(std::string(rest.substr(0, end)), file);
  ColumnReader in(rest.substr(end + 1), file);
  Timeline timeline = header.shell;
  read_rows(in, "hits", header.hit_rows, timeline.wiring.hit_row_block);
  read_rows(in, "experts of row blocks", header.expert_rows, timeline.wiring.expert_of_row_block);
  read_tracks(in, header, timeline.tracks);
  read_events(in, header, timeline.events);
  read_counters(in, header, timeline.counters);
  read_rows(in, "tiles of row blocks", header.tile_rows, timeline.wiring.tile_of_row_block);
  if (in.left() != 0) {
    in.refuse(std::to_string(in.left()) + " bytes follow the last column", "a whole file");
  }
  if (const std::string fault = check_structure(timeline); !fault.empty()) {
    throw InputError({file, "content", fault, "a timeline whose parts fit together"});
  }
  return timeline;
}

void save_timeline(const Timeline& timeline, const std::string& path) {
  AtomicFile file(path);
  file.stream() << encode_timeline(timeline);
  file.commit();
}

Timeline load_timeline(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw InputError({path, "", "cannot be read: " + why, "the path of a timeline (*.fst)"});
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    refuse("it is a directory");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    refuse(std::strerror(errno));
  }
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (file.bad()) {
    refuse(std::strerror(errno));
  }
  return decode_timeline(bytes.view(), path);
}

}  // namespace fusescope::timeline
