// Perfetto protobuf: a sequence of packets, first the names and the tracks, then per track its
// slices as begin and end packets in nesting order (readers sort by time; at one nanosecond the
// order of the file holds, which is why a track's packets stay in its own order).

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "timeline/flows.hpp"
#include "timeline/labels.hpp"
#include "timeline/perfetto_packets.hpp"
#include "timeline/writers.hpp"

namespace fusescope::timeline {
namespace {

namespace pf = perfetto;
using EventId = Dependencies::EventId;
using Packet = PerfettoPackets::Packet;

constexpr std::uint64_t kRootTrack = 0;
constexpr std::uint64_t kRunTrack = 1;
constexpr int kTidsPerProcess = 1'000'000;

// Which flows pass an event's begin or end.
struct FlowMark {
  std::uint64_t point;  // 2 * event + at_end
  std::uint64_t flow;   // from 1
  bool last;
};

std::vector<FlowMark> mark_flows(const std::vector<Flow>& flows) {
  std::vector<FlowMark> marks;
  for (std::size_t flow = 0; flow < flows.size(); ++flow) {
    for (const FlowStep& step : flows[flow].steps) {
      marks.push_back({std::uint64_t{step.event} * 2 + step.at_end, flow + 1,
                       &step == &flows[flow].steps.back()});
    }
  }
  std::sort(marks.begin(), marks.end(), [](const FlowMark& a, const FlowMark& b) {
    return std::pair(a.point, a.flow) < std::pair(b.point, b.flow);
  });
  return marks;
}

class PerfettoWriter {
 public:
  PerfettoWriter(const Timeline& timeline, std::ostream& out)
      : timeline_(timeline),
        dependencies_(timeline),
        flows_(mark_flows(find_flows(dependencies_))),
        packets_(out, origin_ns(timeline)),
        track_uuids_(timeline.tracks.size()) {}

  void write() {
    write_names();
    write_attributes();
    write_run();
    write_tracks();
    for (std::uint32_t track : reading_order(timeline_)) {
      write_slices(track);
    }
    write_counters();
  }

 private:
  template <typename Names>
  static void intern(protozero::pbf_builder<pf::InternedData>& data, pf::InternedData field,
                     const Names& names) {
    std::uint64_t iid = 1;
    for (const auto& name : names) {
      add_name(data, field, iid++, std::string(name));
    }
  }

  void write_names() {
    std::vector<std::string_view> kinds;
    for (int kind = 0; kind < kKinds; ++kind) {
      kinds.push_back(name(static_cast<Kind>(kind)));
      const std::string_view of_kind = category(static_cast<Kind>(kind));
      if (std::find(categories_.begin(), categories_.end(), of_kind) == categories_.end()) {
        categories_.push_back(of_kind);
      }
    }
    packets_.packet(
        [&](Packet& packet) {
          protozero::pbf_builder<pf::InternedData> data(packet, pf::TracePacket::interned_data);
          intern(data, pf::InternedData::event_categories, categories_);
          intern(data, pf::InternedData::event_names, kinds);
          intern(data, pf::InternedData::debug_annotation_names, annotation_names());
        },
        pf::kIncrementalStateCleared);
  }

  template <typename Name>
  static std::uint64_t iid(const std::vector<Name>& names, std::string_view name) {
    return static_cast<std::uint64_t>(std::find(names.begin(), names.end(), name) - names.begin()) +
           1;
  }

  void write_attributes() {
    packets_.packet([&](Packet& packet) {
      protozero::pbf_builder<pf::TraceAttributes> attributes(packet,
                                                             pf::TracePacket::trace_attributes);
      for (const auto& [key, value] : provenance_of(timeline_)) {
        protozero::pbf_builder<pf::TraceAttribute> attribute(attributes,
                                                             pf::TraceAttributes::attribute);
        attribute.add_string(pf::TraceAttribute::key, "fusescope." + key);
        attribute.add_string(pf::TraceAttribute::string_value, value);
      }
    });
  }

  template <typename Fill>
  void descriptor(std::uint64_t uuid, std::int32_t order, Fill fill) {
    packets_.packet([&](Packet& packet) {
      packet.add_uint64(pf::TracePacket::timestamp, 0);
      protozero::pbf_builder<pf::TrackDescriptor> track(packet, pf::TracePacket::track_descriptor);
      track.add_uint64(pf::TrackDescriptor::uuid, uuid);
      track.add_int32(pf::TrackDescriptor::sibling_order_rank, order);
      fill(track);
    });
  }

  // The first row says whether this was measured or simulated, and of what: one slice over the
  // wall.
  void write_run() {
    const std::string kind = std::string(name(timeline_.meta.provenance)) + " run";
    descriptor(kRootTrack, 0, [](auto& track) {
      track.add_enum(pf::TrackDescriptor::child_ordering, pf::kChildrenExplicit);
      track.add_enum(pf::TrackDescriptor::process_ordering, pf::kProcessesExplicit);
      track.add_enum(pf::TrackDescriptor::thread_ordering, pf::kThreadsExplicit);
    });
    descriptor(kRunTrack, -1,
               [&](auto& track) { track.add_string(pf::TrackDescriptor::name, kind); });
    packets_.event(timeline_.begin_ns, kRunTrack, pf::kSliceBegin, [&](auto& event) {
      event.add_string(pf::TrackEvent::name, kind + ": " + timeline_.meta.problem);
      for (const auto& [key, value] : provenance_of(timeline_)) {
        protozero::pbf_builder<pf::DebugAnnotation> annotation(event,
                                                               pf::TrackEvent::debug_annotations);
        annotation.add_string(pf::DebugAnnotation::name, key);
        annotation.add_string(pf::DebugAnnotation::string_value, value);
      }
    });
    packets_.event(timeline_.end_ns, kRunTrack, pf::kSliceEnd, [](auto&) {});
  }

  // A process per rank, a thread per block; a block with several lanes has one child track for
  // each.
  void write_tracks() {
    const std::vector<std::uint32_t> order = reading_order(timeline_);
    int rank = -1;
    std::int32_t thread = 0;
    for (std::size_t i = 0; i < order.size();) {
      const Track& first = timeline_.tracks[order[i]];
      if (first.rank != rank) {
        rank = first.rank;
        thread = 0;
        write_process(rank);
      }
      std::size_t next = i + 1;
      while (next < order.size() && same_block(first, timeline_.tracks[order[next]])) {
        ++next;
      }
      const std::uint64_t block = next_uuid_++;
      write_thread(block, first, thread++);
      for (std::size_t lane = i; lane < next; ++lane) {
        track_uuids_[order[lane]] =
            next - i == 1 ? block : write_lane(block, timeline_.tracks[order[lane]]);
      }
      i = next;
    }
  }

  static bool same_block(const Track& a, const Track& b) {
    return a.rank == b.rank && a.stage == b.stage && a.role == b.role && a.block == b.block;
  }

  std::uint64_t process_uuid(int rank) const {
    return kRunTrack + 1 + static_cast<std::uint64_t>(rank);
  }

  void write_process(int rank) {
    descriptor(process_uuid(rank), rank, [&](auto& track) {
      protozero::pbf_builder<pf::ProcessDescriptor> process(track, pf::TrackDescriptor::process);
      process.add_int32(pf::ProcessDescriptor::pid, pid(rank));
      process.add_string(pf::ProcessDescriptor::process_name, process_name(timeline_, rank));
    });
  }

  // Process 0 is the idle process to trace readers.
  static std::int32_t pid(int rank) { return rank + 1; }

  void write_thread(std::uint64_t uuid, const Track& first, std::int32_t order) {
    Track block = first;
    block.lane = 0;
    std::string title = thread_name(block);
    if (const std::size_t lane = title.find(" lane "); lane != std::string::npos) {
      title.resize(lane);
    }
    descriptor(uuid, order, [&](auto& track) {
      protozero::pbf_builder<pf::ThreadDescriptor> thread(track, pf::TrackDescriptor::thread);
      thread.add_int32(pf::ThreadDescriptor::pid, pid(first.rank));
      thread.add_int64(pf::ThreadDescriptor::tid,
                       std::int64_t{pid(first.rank)} * kTidsPerProcess + order);
      thread.add_string(pf::ThreadDescriptor::thread_name, title);
    });
  }

  std::uint64_t write_lane(std::uint64_t block, const Track& what) {
    const std::uint64_t uuid = next_uuid_++;
    descriptor(uuid, what.lane, [&](auto& track) {
      track.add_uint64(pf::TrackDescriptor::parent_uuid, block);
      const std::string purpose = lane_purpose(what);
      track.add_string(pf::TrackDescriptor::name, "block " + std::to_string(what.block) + " lane " +
                                                      std::to_string(what.lane) +
                                                      (purpose.empty() ? "" : ": " + purpose));
    });
    return uuid;
  }

  void write_slices(std::uint32_t track) {
    const auto range = dependencies_.events_of_track(track);
    open_.clear();
    for (EventId id = range.first; id < range.last; ++id) {
      end_slices(track, dependencies_.event(id).begin_ns);
      begin_slice(track, id);
      open_.push_back(id);
    }
    end_slices(track, INT64_MAX);
  }

  void begin_slice(std::uint32_t track, EventId id) {
    const Event& what = dependencies_.event(id);
    packets_.event(what.begin_ns, track_uuids_[track], pf::kSliceBegin, [&](auto& event) {
      event.add_uint64(pf::TrackEvent::category_iids, iid(categories_, category(what.kind)));
      event.add_uint64(pf::TrackEvent::name_iid, static_cast<std::uint64_t>(what.kind) + 1);
      for (const Annotation& annotation : annotate(dependencies_, id)) {
        protozero::pbf_builder<pf::DebugAnnotation> entry(event, pf::TrackEvent::debug_annotations);
        entry.add_uint64(pf::DebugAnnotation::name_iid, iid(annotation_names(), annotation.name));
        entry.add_int64(pf::DebugAnnotation::int_value, annotation.value);
      }
      add_flows(event, id, false);
    });
  }

  // Ends the open slices that have ended by `time_ns`, innermost first.
  void end_slices(std::uint32_t track, std::int64_t time_ns) {
    while (!open_.empty() && dependencies_.event(open_.back()).end_ns <= time_ns) {
      const EventId id = open_.back();
      open_.pop_back();
      packets_.event(dependencies_.event(id).end_ns, track_uuids_[track], pf::kSliceEnd,
                     [&](auto& event) { add_flows(event, id, true); });
    }
  }

  void add_flows(protozero::pbf_builder<pf::TrackEvent>& event, EventId id, bool at_end) const {
    const std::uint64_t point = std::uint64_t{id} * 2 + at_end;
    auto mark = std::lower_bound(
        flows_.begin(), flows_.end(), point,
        [](const FlowMark& each, std::uint64_t wanted) { return each.point < wanted; });
    for (; mark != flows_.end() && mark->point == point; ++mark) {
      event.add_fixed64(
          mark->last ? pf::TrackEvent::terminating_flow_ids : pf::TrackEvent::flow_ids, mark->flow);
    }
  }

  void write_counters() {
    for (const Counter& counter : timeline_.counters) {
      const std::uint64_t uuid = next_uuid_++;
      descriptor(uuid, 0, [&](auto& track) {
        track.add_uint64(pf::TrackDescriptor::parent_uuid, process_uuid(counter.rank));
        track.add_string(pf::TrackDescriptor::name, counter.name);
        protozero::pbf_builder<pf::CounterDescriptor> unit(track, pf::TrackDescriptor::counter);
        unit.add_string(pf::CounterDescriptor::unit_name, counter.unit);
      });
      for (std::size_t i = 0; i < counter.time_ns.size(); ++i) {
        const double value = counter.value[i];
        packets_.event(counter.time_ns[i], uuid, pf::kCounter, [&](auto& event) {
          constexpr double kExactIntegers = 9.0e15;
          if (std::abs(value) < kExactIntegers && std::trunc(value) == value) {
            event.add_int64(pf::TrackEvent::counter_value, static_cast<std::int64_t>(value));
          } else {
            event.add_double(pf::TrackEvent::double_counter_value, value);
          }
        });
      }
    }
  }

  const Timeline& timeline_;
  Dependencies dependencies_;
  std::vector<FlowMark> flows_;
  PerfettoPackets packets_;
  std::vector<std::uint64_t> track_uuids_;
  std::uint64_t next_uuid_ = 1 << 16;  // after the processes
  std::vector<std::string_view> categories_;
  std::vector<EventId> open_;
};

}  // namespace

void write_perfetto(const Timeline& timeline, std::ostream& out) {
  PerfettoWriter(timeline, out).write();
}

}  // namespace fusescope::timeline
