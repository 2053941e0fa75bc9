#include "trace_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "perfetto_decoder.hpp"
#include "timeline/dependencies.hpp"
#include "timeline/flows.hpp"
#include "timeline/writers.hpp"

namespace fusescope::timeline {
namespace {

using Json = nlohmann::json;

// A slice in any format: (row, name, begin, end) with times relative to the timeline's origin.
using Slice = std::tuple<std::string, std::string, std::int64_t, std::int64_t>;

std::vector<Slice> slices_of(const Timeline& timeline) {
  std::int64_t origin = timeline.begin_ns;
  for (const Counter& counter : timeline.counters) {
    for (std::int64_t time : counter.time_ns) {
      origin = std::min(origin, time);
    }
  }
  std::vector<Slice> slices;
  for (const Event& event : timeline.events) {
    origin = std::min(origin, event.begin_ns);
  }
  for (const Event& event : timeline.events) {
    const Track& track = timeline.tracks[event.track];
    const std::string row = std::to_string(track.rank) + "/" + std::string(name(track.stage)) +
                            "/" + std::to_string(track.block) + "/" + std::to_string(track.lane);
    slices.emplace_back(row, std::string(name(event.kind)), event.begin_ns - origin,
                        event.end_ns - origin);
  }
  std::sort(slices.begin(), slices.end());
  return slices;
}

std::size_t samples_of(const Timeline& timeline) {
  std::size_t samples = 0;
  for (const Counter& counter : timeline.counters) {
    samples += counter.value.size();
  }
  return samples;
}

// "0/dispatch_gemm/2/1" from a thread's name ("dispatch_gemm communication block 2 lane 1").
std::string row_of(int rank, const std::string& title, int lane_of_child) {
  std::istringstream words(title);
  std::string stage;
  std::string word;
  words >> stage;
  int block = 0;
  int lane = std::max(lane_of_child, 0);
  while (words >> word) {
    if (word == "block") {
      words >> block;
    } else if (word == "lane") {
      words >> lane;
    }
  }
  return std::to_string(rank) + "/" + stage + "/" + std::to_string(block) + "/" +
         std::to_string(lane);
}

struct FlowSeen {
  std::vector<std::string> steps;
  bool ended = false;
};

}  // namespace

void expect_perfetto_rules(const Timeline& timeline) {
  std::ostringstream out;
  write_perfetto(timeline, out);
  const DecodedTrace trace = decode_perfetto(out.view());

  std::map<std::uint64_t, DecodedTrack> tracks;
  std::set<std::int64_t> tids;
  for (const DecodedTrack& track : trace.tracks) {
    EXPECT_TRUE(tracks.emplace(track.uuid, track).second) << "uuid twice: " << track.uuid;
    if (track.tid >= 0) {
      EXPECT_TRUE(tids.insert(track.tid).second) << "tid twice: " << track.tid;
    }
    if (track.parent != 0) {
      EXPECT_TRUE(tracks.contains(track.parent)) << "parent of " << track.name;
    }
  }

  std::map<std::uint64_t, std::vector<DecodedEvent>> open;
  std::map<std::uint64_t, std::uint64_t> track_time;
  std::vector<Slice> slices;
  std::size_t samples = 0;
  std::vector<DecodedEvent> in_time = trace.events;
  for (DecodedEvent& event : in_time) {
    ASSERT_TRUE(tracks.contains(event.track)) << "event on undeclared track " << event.track;
    const DecodedTrack& track = tracks.at(event.track);
    EXPECT_GE(event.time_ns, track_time[event.track]);
    track_time[event.track] = event.time_ns;
    if (event.type == 4) {
      EXPECT_TRUE(track.is_counter);
      ++samples;
    } else if (event.type == 1) {
      EXPECT_FALSE(track.is_counter);
      EXPECT_FALSE(event.name.empty());
      open[event.track].push_back(event);
    } else {
      ASSERT_EQ(event.type, 2);
      ASSERT_FALSE(open[event.track].empty()) << "an end without a begin on " << track.name;
      const DecodedEvent begin = open[event.track].back();
      open[event.track].pop_back();
      event.name = begin.name;
      if (track.tid < 0 && track.parent == 0) {
        continue;  // the row that says what was run
      }
      const DecodedTrack& thread = track.parent == 0 ? track : tracks.at(track.parent);
      const int lane = track.parent == 0 ? 0 : track.order;
      slices.emplace_back(row_of(thread.pid - 1, thread.name, lane), begin.name,
                          static_cast<std::int64_t>(begin.time_ns),
                          static_cast<std::int64_t>(event.time_ns));
    }
  }
  for (const auto& [uuid, left] : open) {
    EXPECT_TRUE(left.empty()) << "a begin without an end on " << tracks.at(uuid).name;
  }
  std::sort(slices.begin(), slices.end());
  EXPECT_EQ(slices.size(), timeline.events.size());
  EXPECT_TRUE(slices == slices_of(timeline)) << "slices differ from the timeline's events";
  EXPECT_EQ(samples, samples_of(timeline));

  // Readers follow flows in the order of time: that must be the order of the chain.
  std::stable_sort(in_time.begin(), in_time.end(),
                   [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  std::map<std::uint64_t, FlowSeen> seen;
  for (const DecodedEvent& event : in_time) {
    for (std::uint64_t id : event.flows) {
      EXPECT_FALSE(seen[id].ended) << "flow " << id << " goes on after its end";
      seen[id].steps.push_back(event.name);
    }
    for (std::uint64_t id : event.last_flows) {
      EXPECT_FALSE(seen[id].ended) << "flow " << id << " ends twice";
      seen[id].ended = true;
      seen[id].steps.push_back(event.name);
    }
  }
  const Dependencies dependencies(timeline);
  const std::vector<Flow> flows = find_flows(dependencies);
  ASSERT_EQ(seen.size(), flows.size());
  for (std::size_t i = 0; i < flows.size(); ++i) {
    std::vector<std::string> expected;
    for (const FlowStep& step : flows[i].steps) {
      expected.emplace_back(name(dependencies.event(step.event).kind));
    }
    EXPECT_EQ(seen[i + 1].steps, expected) << flows[i].name;
    EXPECT_TRUE(seen[i + 1].ended) << flows[i].name;
  }
}

void expect_chrome_rules(const Timeline& timeline) {
  std::ostringstream out;
  write_chrome(timeline, out);
  const Json document = Json::parse(out.view());
  EXPECT_EQ(document.at("otherData").at("provenance"), name(timeline.meta.provenance));

  using Row = std::pair<int, int>;
  std::map<Row, std::string> rows;
  struct Span {
    std::int64_t begin;
    std::int64_t end;
  };
  std::map<Row, std::vector<Span>> spans;
  std::map<int, std::vector<Json>> flows;
  std::vector<Slice> slices;
  std::size_t samples = 0;
  const auto ns = [](const Json& us) {
    return static_cast<std::int64_t>(std::llround(us.get<double>() * 1000));
  };
  for (const Json& event : document.at("traceEvents")) {
    const std::string phase = event.at("ph");
    if (phase == "M") {
      if (event.at("name") == "thread_name") {
        const Row row{event.at("pid"), event.at("tid")};
        EXPECT_TRUE(rows.emplace(row, event.at("args").at("name")).second);
      }
    } else if (phase == "X") {
      const Row row{event.at("pid"), event.at("tid")};
      ASSERT_TRUE(rows.contains(row));
      const std::int64_t begin = ns(event.at("ts"));
      const std::int64_t end = begin + ns(event.at("dur"));
      spans[row].push_back({begin, end});
      slices.emplace_back(row_of(row.first, rows[row], -1), event.at("name"), begin, end);
    } else if (phase == "C") {
      ++samples;
    } else {
      ASSERT_TRUE(phase == "s" || phase == "t" || phase == "f") << phase;
      flows[event.at("id")].push_back(event);
    }
  }
  EXPECT_EQ(rows.size(), timeline.tracks.size());
  EXPECT_EQ(samples, samples_of(timeline));
  std::sort(slices.begin(), slices.end());
  EXPECT_TRUE(slices == slices_of(timeline)) << "slices differ from the timeline's events";

  for (auto& [row, list] : spans) {
    std::sort(list.begin(), list.end(), [](const Span& a, const Span& b) {
      return std::pair(a.begin, b.end) < std::pair(b.begin, a.end);
    });
    std::vector<Span> open;
    for (const Span& span : list) {
      while (!open.empty() && open.back().end <= span.begin) {
        open.pop_back();
      }
      EXPECT_TRUE(open.empty() || span.end <= open.back().end) << "overlap on " << rows[row];
      open.push_back(span);
    }
  }

  EXPECT_EQ(flows.size(), find_flows(Dependencies(timeline)).size());
  for (const auto& [id, steps] : flows) {
    ASSERT_GE(steps.size(), 2u) << "flow " << id;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::string expected = i == 0 ? "s" : i + 1 == steps.size() ? "f" : "t";
      EXPECT_EQ(steps[i].at("ph"), expected) << "flow " << id;
      const std::int64_t time = ns(steps[i].at("ts"));
      EXPECT_TRUE(i == 0 || time >= ns(steps[i - 1].at("ts"))) << "flow " << id;
      const auto& list = spans[{steps[i].at("pid"), steps[i].at("tid")}];
      auto after =
          std::upper_bound(list.begin(), list.end(), time,
                           [](std::int64_t t, const Span& span) { return t < span.begin; });
      const bool inside =
          after != list.begin() && std::any_of(list.begin(), after, [&](const Span& span) {
            return span.begin <= time && time <= span.end;
          });
      EXPECT_TRUE(inside) << "flow " << id << " step " << i << " is in no slice";
    }
  }
}

}  // namespace fusescope::timeline
