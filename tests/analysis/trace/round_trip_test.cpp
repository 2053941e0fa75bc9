// A fusescope timeline written as Chrome JSON and read back: its in-kernel records give the same
// exposed communication as the timeline itself, counted another way.

#include <algorithm>
#include <set>
#include <sstream>

#include "analysis/trace/attribution.hpp"
#include "timeline/import/traces.hpp"
#include "timeline/writers.hpp"
#include "tiny_layer.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Event;
using timeline::Kind;
using timeline::Timeline;
using timeline::Trace;

const std::set<Kind> kCommunication = {Kind::ids_exchange, Kind::all_gather, Kind::reduce_scatter,
                                       Kind::pull,         Kind::scatter,    Kind::arrive,
                                       Kind::push,         Kind::elect,      Kind::watermark};
const std::set<Kind> kCompute = {Kind::schedule_build, Kind::activation, Kind::dispenser_reset,
                                 Kind::scatter_rows,   Kind::gemm_1,     Kind::gemm_2,
                                 Kind::combine,        Kind::mainloop,   Kind::epilogue,
                                 Kind::claim,          Kind::sum,        Kind::reduce};

struct Counted {
  std::int64_t compute_ns = 0;
  std::int64_t exposed_ns = 0;
  std::int64_t communication_ns = 0;
};

// Between each two neighbouring times of the rank: what runs?
Counted count(const Timeline& timeline, int rank) {
  std::vector<Event> events;
  std::vector<std::int64_t> times;
  for (const Event& event : timeline.events) {
    if (timeline.tracks[event.track].rank == rank) {
      events.push_back(event);
      times.push_back(event.begin_ns);
      times.push_back(event.end_ns);
    }
  }
  std::sort(times.begin(), times.end());
  Counted out;
  for (std::size_t i = 0; i + 1 < times.size(); ++i) {
    const auto runs = [&](const std::set<Kind>& kinds) {
      return std::any_of(events.begin(), events.end(), [&](const Event& event) {
        return kinds.contains(event.kind) && event.begin_ns <= times[i] &&
               event.end_ns >= times[i + 1];
      });
    };
    const std::int64_t length = times[i + 1] - times[i];
    if (length > 0) {
      const bool computes = runs(kCompute);
      const bool communicates = runs(kCommunication);
      out.compute_ns += computes ? length : 0;
      out.communication_ns += communicates ? length : 0;
      out.exposed_ns += communicates && !computes ? length : 0;
    }
  }
  return out;
}

TEST(RoundTrip, ATimelineAsChromeJson) {
  const Timeline timeline = timeline::tiny_layer();
  std::ostringstream text;
  timeline::write_chrome(timeline, text);
  const Trace trace = timeline::test::read_text(text.str());
  EXPECT_TRUE(trace.in_kernel_records);
  EXPECT_EQ(trace.gpu.size(), timeline.events.size());
  for (const char* rules : {"default", "hta"}) {
    SCOPED_TRACE(rules);
    const TraceAttribution attribution = attribute_traces({&trace, 1}, load_rules(rules));
    std::set<int> ranks;
    for (const timeline::Track& track : timeline.tracks) {
      ranks.insert(track.rank);
    }
    ASSERT_EQ(attribution.devices.size(), ranks.size());
    for (const DeviceAttribution& device : attribution.devices) {
      const Counted wanted = count(timeline, device.rank);
      EXPECT_EQ(device.part(WorkClass::compute), wanted.compute_ns) << device.rank;
      EXPECT_EQ(device.exposed_ns(), wanted.exposed_ns) << device.rank;
      EXPECT_EQ(device.all(WorkClass::communication), wanted.communication_ns) << device.rank;
      EXPECT_EQ(check_closing(device), "");
      EXPECT_GT(device.exposed_ns(), 0);
    }
  }
}

}  // namespace
}  // namespace fusescope::analysis
