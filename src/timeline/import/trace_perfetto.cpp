// Foreign traces as Perfetto protobuf: names interned, then per row its slices as begin and end packets
// in nesting order.

#include <initializer_list>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "timeline/atomic_file.hpp"
#include "timeline/import/trace_writers.hpp"
#include "timeline/perfetto_packets.hpp"

namespace fusescope::timeline {
namespace {

namespace pf = perfetto;
using Packet = PerfettoPackets::Packet;

constexpr std::size_t kNamesPerPacket = 1000;

class TracePerfettoWriter {
 public:
  TracePerfettoWriter(const Trace& trace, std::ostream& out)
      : trace_(trace), packets_(out, origin_ns(trace)) {}

  void write() {
    write_names();
    std::int32_t tid = 1;
    for (const TraceRow& row : rows_of(trace_)) {
      write_row(row, tid++);
    }
  }

 private:
  static std::int64_t origin_ns(const Trace& trace) {
    std::int64_t origin = trace.gpu.empty() ? 0 : trace.gpu.front().begin_ns;
    if (!trace.host.empty() && (trace.gpu.empty() || trace.host.front().begin_ns < origin)) {
      origin = trace.host.front().begin_ns;
    }
    return origin;
  }

  void write_names() {
    std::uint32_t next = 0;
    std::uint32_t flags = pf::kIncrementalStateCleared;
    do {
      packets_.packet(
          [&](Packet& packet) {
            protozero::pbf_builder<pf::InternedData> data(packet, pf::TracePacket::interned_data);
            for (std::size_t i = 0; i < kNamesPerPacket && next < trace_.names.size();
                 ++i, ++next) {
              add_name(data, pf::InternedData::event_names, std::uint64_t{next} + 1,
                       std::string(trace_.names[next]));
            }
          },
          flags);
      flags = pf::kNeedsIncrementalState;
    } while (next < trace_.names.size());
  }

  // Devices and host processes are processes of the viewer; ids of its own, from 1.
  std::int32_t process(const TraceRow& row) {
    const auto [found, fresh] =
        processes_.try_emplace({row.gpu, row.gpu ? row.number : row.process, row.process},
                               static_cast<std::int32_t>(processes_.size()) + 1);
    const std::int32_t pid = found->second;
    if (fresh) {
      const std::string rank = trace_.rank >= 0 ? "rank " + std::to_string(trace_.rank) + " " : "";
      const std::string title =
          row.gpu ? rank + "device " + std::to_string(row.number) +
                        (trace_.device_name.empty() ? "" : " (" + trace_.device_name + ")")
                  : rank + "process " + std::to_string(row.process);
      descriptor(static_cast<std::uint64_t>(pid), [&](auto& track) {
        protozero::pbf_builder<pf::ProcessDescriptor> message(track, pf::TrackDescriptor::process);
        message.add_int32(pf::ProcessDescriptor::pid, pid);
        message.add_string(pf::ProcessDescriptor::process_name, title);
      });
    }
    return pid;
  }

  template <typename Fill>
  void descriptor(std::uint64_t uuid, Fill fill) {
    packets_.packet([&](Packet& packet) {
      protozero::pbf_builder<pf::TrackDescriptor> track(packet, pf::TracePacket::track_descriptor);
      track.add_uint64(pf::TrackDescriptor::uuid, uuid);
      fill(track);
    });
  }

  void write_row(const TraceRow& row, std::int32_t tid) {
    const std::int32_t pid = process(row);
    const std::uint64_t uuid = (std::uint64_t{1} << 32) + static_cast<std::uint32_t>(tid);
    descriptor(uuid, [&](auto& track) {
      protozero::pbf_builder<pf::ThreadDescriptor> thread(track, pf::TrackDescriptor::thread);
      thread.add_int32(pf::ThreadDescriptor::pid, pid);
      thread.add_int64(pf::ThreadDescriptor::tid, tid);
      thread.add_string(pf::ThreadDescriptor::thread_name, row.name);
    });
    open_.clear();
    for (const std::uint32_t index : row.slices) {
      if (row.gpu) {
        const GpuSlice& slice = trace_.gpu[index];
        write_slice(uuid, slice.name, slice.begin_ns, slice.end_ns,
                    {{"correlation", slice.correlation}, {"bytes", slice.bytes}});
      } else {
        const HostSlice& slice = trace_.host[index];
        write_slice(uuid, slice.name, slice.begin_ns, slice.end_ns,
                    {{"correlation", slice.correlation}});
      }
    }
    end_slices(uuid, INT64_MAX);
  }

  using Argument = std::pair<const char*, std::int64_t>;  // negative: not known

  void write_slice(std::uint64_t track, std::uint32_t name, std::int64_t begin_ns,
                   std::int64_t end_ns, std::initializer_list<Argument> arguments) {
    end_slices(track, begin_ns);
    packets_.event(begin_ns, track, pf::kSliceBegin, [&](auto& message) {
      message.add_uint64(pf::TrackEvent::name_iid, std::uint64_t{name} + 1);
      for (const auto& [key, value] : arguments) {
        if (value >= 0) {
          protozero::pbf_builder<pf::DebugAnnotation> entry(message,
                                                            pf::TrackEvent::debug_annotations);
          entry.add_string(pf::DebugAnnotation::name, key);
          entry.add_int64(pf::DebugAnnotation::int_value, value);
        }
      }
    });
    open_.push_back(end_ns);
  }

  void end_slices(std::uint64_t track, std::int64_t time_ns) {
    while (!open_.empty() && open_.back() <= time_ns) {
      packets_.event(open_.back(), track, pf::kSliceEnd, [](auto&) {});
      open_.pop_back();
    }
  }

  const Trace& trace_;
  PerfettoPackets packets_;
  std::map<std::tuple<bool, std::int64_t, std::int64_t>, std::int32_t> processes_;
  std::vector<std::int64_t> open_;
};

}  // namespace

void write_trace_perfetto(const Trace& trace, std::ostream& out) {
  TracePerfettoWriter(trace, out).write();
}

void write_trace(const Trace& trace, const std::string& path, std::string_view format) {
  if (format != "perfetto" && format != "chrome") {
    throw InputError({"--format", std::string(format),
                      "holds one iteration of the layer, and this is another tool's trace",
                      "perfetto or chrome"});
  }
  AtomicFile file(path);
  if (format == "perfetto") {
    write_trace_perfetto(trace, file.stream());
  } else {
    write_trace_chrome(trace, file.stream());
  }
  file.commit();
}

}  // namespace fusescope::timeline
