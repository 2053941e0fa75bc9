// Chrome trace event JSON ("Trace Event Format", the catapult project's public description):
// complete events X with ts and dur in microseconds, flow events s, t, f bound to the slice that
// encloses them, counters C, names and order of rows as metadata events M.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "timeline/flows.hpp"
#include "timeline/json_entries.hpp"
#include "timeline/labels.hpp"
#include "timeline/writers.hpp"

namespace fusescope::timeline {
namespace {

class ChromeWriter {
 public:
  ChromeWriter(const Timeline& timeline, std::ostream& out)
      : timeline_(timeline),
        json_(out),
        dependencies_(timeline),
        origin_(origin_ns(timeline)),
        tids_(timeline.tracks.size()) {}

  void write() {
    json_.text("{\"displayTimeUnit\":\"ns\",\"otherData\":{");
    std::string_view comma;
    for (const auto& [key, value] : provenance_of(timeline_)) {
      json_.add("{}{}:{}", comma, quoted_json(key), quoted_json(value));
      comma = ",";
    }
    json_.text("},\n\"traceEvents\":[");
    write_rows();
    for (std::uint32_t track : reading_order(timeline_)) {
      const auto range = dependencies_.events_of_track(track);
      for (auto id = range.first; id < range.last; ++id) {
        write_slice(id);
      }
    }
    write_flows();
    write_counters();
    json_.text("\n]}\n");
    json_.flush();
  }

 private:
  // "12.345": microseconds.
  static std::string us(std::uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
  static std::uint64_t between(std::int64_t begin_ns, std::int64_t end_ns) {
    return static_cast<std::uint64_t>(end_ns) - static_cast<std::uint64_t>(begin_ns);
  }
  std::string at(std::int64_t time_ns) const { return us(between(origin_, time_ns)); }

  void metadata(std::string_view what, int pid, int tid, const std::string& argument) {
    json_.next();
    json_.add(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what, pid, tid,
              argument);
  }

  void write_rows() {
    int rank = -1;
    int tid = 0;
    for (std::uint32_t index : reading_order(timeline_)) {
      const Track& track = timeline_.tracks[index];
      if (track.rank != rank) {
        rank = track.rank;
        tid = 0;
        metadata("process_name", rank, 0, "\"name\":" + quoted_json(process_name(timeline_, rank)));
        metadata("process_sort_index", rank, 0, fmt::format("\"sort_index\":{}", rank));
      }
      tids_[index] = tid;
      metadata("thread_name", rank, tid, "\"name\":" + quoted_json(thread_name(track)));
      metadata("thread_sort_index", rank, tid, fmt::format("\"sort_index\":{}", tid));
      ++tid;
    }
  }

  void write_slice(Dependencies::EventId id) {
    const Event& event = dependencies_.event(id);
    json_.next();
    json_.add(R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{)",
              name(event.kind), category(event.kind), timeline_.tracks[event.track].rank,
              tids_[event.track], at(event.begin_ns), us(between(event.begin_ns, event.end_ns)));
    std::string_view comma;
    for (const Annotation& annotation : annotate(dependencies_, id)) {
      json_.add("{}\"{}\":{}", comma, annotation.name, annotation.value);
      comma = ",";
    }
    json_.text("}}");
  }

  // A flow event belongs to the slice that encloses its time, so the end of a slice is its last
  // nanosecond.
  std::int64_t time(const FlowStep& step) const {
    const Event& event = dependencies_.event(step.event);
    return step.at_end ? std::max(event.begin_ns, event.end_ns - 1) : event.begin_ns;
  }

  void write_flows() {
    std::size_t id = 0;
    for (const Flow& flow : find_flows(dependencies_)) {
      ++id;
      for (std::size_t i = 0; i < flow.steps.size(); ++i) {
        const Event& event = dependencies_.event(flow.steps[i].event);
        const std::string_view phase = i == 0 ? "s" : i + 1 == flow.steps.size() ? "f" : "t";
        json_.next();
        json_.add(
            R"({{"ph":"{}","bp":"e","name":"{}","cat":"flow","id":{},"pid":{},"tid":{},"ts":{}}})",
            phase, flow.name, id, timeline_.tracks[event.track].rank, tids_[event.track],
            at(time(flow.steps[i])));
      }
    }
  }

  void write_counters() {
    for (const Counter& counter : timeline_.counters) {
      const std::string title = quoted_json(counter.name);
      const std::string unit = quoted_json(counter.unit.empty() ? "value" : counter.unit);
      for (std::size_t i = 0; i < counter.time_ns.size(); ++i) {
        json_.next();
        json_.add(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{{}:{}}}}})", title,
                  counter.rank, at(counter.time_ns[i]), unit,
                  nlohmann::json(counter.value[i]).dump());
      }
    }
  }

  const Timeline& timeline_;
  JsonEntries json_;
  Dependencies dependencies_;
  std::int64_t origin_;
  std::vector<int> tids_;
};

}  // namespace

void write_chrome(const Timeline& timeline, std::ostream& out) {
  ChromeWriter(timeline, out).write();
}

}  // namespace fusescope::timeline
