// Perfetto files, read back by an independent decoder.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "perfetto_decoder.hpp"
#include "timeline/dependencies.hpp"
#include "timeline/writers.hpp"
#include "tiny_layer.hpp"
#include "trace_rules.hpp"

namespace fusescope::timeline {
namespace {

DecodedTrace written(const Timeline& timeline) {
  std::ostringstream out;
  write_perfetto(timeline, out);
  return decode_perfetto(out.view());
}

std::map<std::uint64_t, DecodedTrack> by_uuid(const DecodedTrace& trace) {
  std::map<std::uint64_t, DecodedTrack> tracks;
  for (const DecodedTrack& track : trace.tracks) {
    tracks[track.uuid] = track;
  }
  return tracks;
}

const DecodedTrack& named(const DecodedTrace& trace, const std::string& name, int pid) {
  for (const DecodedTrack& track : trace.tracks) {
    if (track.name == name && track.pid == pid) {
      return track;
    }
  }
  throw std::runtime_error("no track " + name);
}

TEST(Perfetto, TheTinyLayerKeepsTheRules) {
  expect_perfetto_rules(tiny_layer());
}

TEST(Perfetto, NestedAndZeroLengthSlicesKeepTheRules) {
  Timeline timeline = tiny_layer();
  const Event outer = timeline.events[0];
  Event inner = outer;
  inner.end_ns = inner.begin_ns + 10;
  timeline.events.push_back(inner);
  inner.begin_ns = inner.end_ns;
  timeline.events.push_back(inner);
  inner.begin_ns = inner.end_ns = outer.end_ns;
  timeline.events.push_back(inner);
  sort_events(timeline);
  expect_perfetto_rules(timeline);
}

TEST(Perfetto, ProcessesAreRanksAndThreadsAreBlocksInReadingOrder) {
  const DecodedTrace trace = written(tiny_layer());
  EXPECT_EQ(trace.tracks[0].uuid, 0u);
  EXPECT_EQ(trace.tracks[0].process_ordering, 1);
  EXPECT_EQ(trace.tracks[0].thread_ordering, 1);
  std::vector<std::string> rows;
  for (const DecodedTrack& track : trace.tracks) {
    if (track.is_process || track.tid >= 0 || track.parent != 0) {
      rows.push_back(track.name);
    }
  }
  const std::vector<std::string> of_rank = {"stream",
                                            "dispatch_gemm compute block 0",
                                            "dispatch_gemm compute block 1",
                                            "dispatch_gemm communication block 2",
                                            "block 2 lane 0",
                                            "block 2 lane 1",
                                            "gemm_combine_push compute block 0",
                                            "gemm_combine_push compute block 1",
                                            "gemm_combine_push communication block 2",
                                            "final_reduce reduce block 0"};
  std::vector<std::string> expected = {"rank 0 (sketch, simulated)"};
  expected.insert(expected.end(), of_rank.begin(), of_rank.end());
  expected.push_back("rank 1 (sketch, simulated)");
  expected.insert(expected.end(), of_rank.begin(), of_rank.end());
  expected.insert(expected.end(), {"row blocks open", "row blocks open"});
  EXPECT_EQ(rows, expected);
  EXPECT_LT(named(trace, "dispatch_gemm compute block 1", 1).order,
            named(trace, "dispatch_gemm communication block 2", 1).order);
  EXPECT_EQ(named(trace, "stream", 2).pid, 2);
}

TEST(Perfetto, SaysWhetherItWasSimulated) {
  Timeline timeline = tiny_layer();
  for (Provenance provenance : {Provenance::simulated, Provenance::measured}) {
    timeline.meta.provenance = provenance;
    const std::string word(name(provenance));
    const DecodedTrace trace = written(timeline);
    EXPECT_EQ(trace.attributes.at("fusescope.provenance"), word);
    EXPECT_NO_THROW(named(trace, "rank 1 (sketch, " + word + ")", 2));
    EXPECT_EQ(trace.events[0].name, word + " run: tiny");
    EXPECT_EQ(trace.events[0].annotations.at("config"), "dispatch_comm_sms=1");
  }
}

TEST(Perfetto, SlicesSayWhatTheyWorkedOn) {
  const DecodedTrace trace = written(tiny_layer());
  const auto find = [&](const std::string& name, const std::string& key, const std::string& value) {
    for (const DecodedEvent& event : trace.events) {
      const auto found = event.annotations.find(key);
      if (event.name == name && found != event.annotations.end() && found->second == value) {
        return event;
      }
    }
    throw std::runtime_error("no " + name);
  };
  using Map = std::map<std::string, std::string>;
  EXPECT_EQ(find("pull", "token", "5").annotations, (Map{{"token", "5"}, {"source_rank", "1"}}));
  EXPECT_EQ(find("pull", "token", "5").category, "communication");
  EXPECT_EQ(find("mainloop", "row_block", "2").annotations,
            (Map{{"row_block", "2"}, {"expert", "1"}, {"n_tile", "0"}}));
  // Row block 0 holds tokens 0 to 2, and as second hit 6 and 7.
  EXPECT_EQ(find("gate_wait", "row_block", "0").annotations, (Map{{"row_block", "0"},
                                                                  {"expert", "0"},
                                                                  {"n_tile", "0"},
                                                                  {"opened_by_token", "7"},
                                                                  {"opened_by_source_rank", "1"}}));
  EXPECT_EQ(find("push", "token", "3").annotations,
            (Map{{"token", "3"}, {"destination_rank", "0"}, {"job", "3"}}));
  EXPECT_EQ(find("reduce_wait", "sending_rank", "1").category, "wait");
}

TEST(Perfetto, CountersHaveUnitsAndValues) {
  Timeline timeline = tiny_layer();
  timeline.counters.push_back({"bandwidth", "GB/s", 1, {10, 20, 30}, {1.5, -2, 1e300}});
  const DecodedTrace trace = written(timeline);
  std::vector<double> values;
  const auto tracks = by_uuid(trace);
  for (const DecodedEvent& event : trace.events) {
    const DecodedTrack& track = tracks.at(event.track);
    if (event.type == 4 && track.name == "bandwidth") {
      EXPECT_EQ(track.unit, "GB/s");
      EXPECT_EQ(tracks.at(track.parent).pid, 2);
      values.push_back(event.value);
    }
  }
  EXPECT_EQ(values, (std::vector<double>{1.5, -2, 1e300}));
}

TEST(Perfetto, TimesBeforeTheWallStayPositive) {
  Timeline timeline = tiny_layer();
  timeline.counters[0].time_ns[0] = -500;
  timeline.begin_ns = -100;
  const DecodedTrace trace = written(timeline);
  EXPECT_EQ(trace.events[0].time_ns, 400u);
  for (const DecodedEvent& event : trace.events) {
    EXPECT_LT(event.time_ns, 10'000u);
  }
}

TEST(Perfetto, ALayerOfTheSeedsSizeIsBelowTenMegabytes) {
  std::ostringstream out;
  write_perfetto(tiny_layer(seed_sized()), out);
  RecordProperty("bytes", std::to_string(out.view().size()));
  EXPECT_LT(out.view().size(), 10'000'000u);
  expect_perfetto_rules(tiny_layer(seed_sized()));
}

}  // namespace
}  // namespace fusescope::timeline
