// A timeline as a file of `nsys export --type sqlite`, for the tools that read those.
//
//   a rank            a process; its device, a GPU of the system
//   a stream phase    a kernel of the rank's stream, named by its step, and an NVTX range of the same
//                     name on the process's first thread, within a range for the iteration. It begins
//                     where the step before ended: the launch gap is the step's
//   a block's lane    a thread, whose events are NVTX ranges with their arguments as JSON payload
//   a counter         a GPU metric of its rank's device, in whole units as the schema has it: MB/s for GB/s
//
// What was not recorded is not made up: sizes of grids and blocks that are not known are 0. Kernels hang on
// ranges by the call that launched them; a timeline has no calls, so that each kernel has one of no length
// a nanosecond into its range, whose name says so: within that range alone, and before the gap.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/version.hpp"
#include "timeline/labels.hpp"
#include "timeline/nsys_schema.hpp"
#include "timeline/sqlite_image.hpp"
#include "timeline/writers.hpp"

namespace fusescope::timeline {
namespace {

using Rows = SqliteImage::Rows;

constexpr std::int64_t kDomain = 1;
constexpr std::int64_t kIteration = 1;  // categories of the domain
constexpr std::int64_t kStep = 2;
constexpr std::int64_t kFirstRecordCategory = 3;
constexpr std::int64_t kContext = 1;
constexpr std::int64_t kFirstStream = 7;  // the first that a CUDA process makes
constexpr std::int64_t kCudaRuntimeClass = 0;

constexpr std::array<std::string_view, 6> kRecordCategories = {"phase", "communication", "compute",
                                                               "wait",  "combine",       "reduce"};

// A serialised global id, as the exports have it: process in bits 24 to 47, thread below.
std::int64_t global_pid(int rank) {
  return (std::int64_t{1} << 48) | (static_cast<std::int64_t>(rank + 1) << 24);
}
std::int64_t global_tid(int rank, std::int64_t thread) {
  return global_pid(rank) | thread;
}

class NsysWriter {
 public:
  explicit NsysWriter(const Timeline& timeline)
      : timeline_(timeline), dependencies_(timeline), origin_(origin_ns(timeline)) {
    if (!timeline.counters.empty()) {
      image_.run(nsys::kMetricTables);
    }
  }

  std::string write() {
    metadata();
    devices();
    ranges_of_domain();
    std::vector<std::int64_t> threads(timeline_.tracks.size());
    std::map<int, std::int64_t> last;  // thread of a rank; the first is the stream's
    for (const std::uint32_t track : reading_order(timeline_)) {
      const Track& what = timeline_.tracks[track];
      const bool stream = what.stage == Stage::stream;
      threads[track] = stream ? 1 : 1 + ++last[what.rank];
      thread_names_.add({string(stream ? "steps" : thread_name(what)),
                         {},
                         global_tid(what.rank, threads[track])});
    }
    for (int rank = 0; rank < timeline_.wiring.ranks; ++rank) {
      range(timeline_.begin_ns, timeline_.end_ns, kIteration, iteration_name(), global_tid(rank, 1),
            {});
    }
    for (Dependencies::EventId id = 0; id < timeline_.events.size(); ++id) {
      const Event& event = timeline_.events[id];
      if (dependencies_.track_of(id).stage == Stage::stream) {
        kernel(id);
      } else {
        record(id, threads[event.track]);
      }
    }
    if (!timeline_.counters.empty()) {
      metrics();
    }
    for (const auto& [text, number] : strings_) {
      string_rows_.add({number, std::string_view(text)});
    }
    return image_.bytes();
  }

 private:
  std::int64_t string(std::string_view text) {
    return strings_.try_emplace(std::string(text), static_cast<std::int64_t>(strings_.size()))
        .first->second;
  }

  std::string iteration_name() const {
    return timeline_.meta.chosen.empty() ? "iteration" : "iteration: " + timeline_.meta.chosen;
  }

  std::string device_name() const {
    return timeline_.meta.device + " (" + std::string(name(timeline_.meta.provenance)) + ")";
  }

  void metadata() {
    Rows rows(image_, "META_DATA_EXPORT", "name, value");
    rows.add({std::string_view("EXPORT_PRODUCT_NAME"), std::string_view("fusescope")});
    rows.add({std::string_view("EXPORT_PRODUCT_VERSION"), std::string_view(version())});
    rows.add({std::string_view("EXPORT_SCHEMA_VERSION"), std::string_view(nsys::kSchemaVersion)});
    rows.add({std::string_view("EXPORT_SCHEMA_VERSION_MAJOR"), std::string_view("3")});
    rows.add({std::string_view("EXPORT_SCHEMA_VERSION_MINOR"), std::string_view("25")});
    rows.add({std::string_view("EXPORT_SCHEMA_VERSION_MICRO"), std::string_view("0")});
    for (const auto& [key, text] : provenance_of(timeline_)) {
      rows.add({std::string_view("FUSESCOPE_" + key), std::string_view(text)});
    }
    Rows(image_, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs").add({std::int64_t{0}});
    Rows types(image_, "ENUM_NSYS_EVENT_TYPE", "id, name, label");
    for (const auto& [id, text] : {std::pair(nsys::kNvtxCategory, "NvtxCategory"),
                                   std::pair(nsys::kNvtxPushPopRange, "NvtxPushPopRange"),
                                   std::pair(nsys::kNvtxDomainCreate, "NvtxDomainCreate")}) {
      types.add({std::int64_t{id}, std::string_view(text), std::string_view(text)});
    }
    Rows(image_, "ENUM_CUDA_MEMCPY_OPER", "id, name, label")
        .add({std::int64_t{10}, std::string_view("CUDA_MEMCPY_KIND_PTOP"),
              std::string_view("Peer-to-Peer")});
  }

  void devices() {
    Rows processes(image_, "PROCESSES", "globalPid, pid, name");
    Rows of_process(image_, "TARGET_INFO_CUDA_DEVICE",
                    "gpuId, cudaId, pid, uuid, numMultiprocessors");
    std::set<std::pair<int, int>> pairs;  // (rank, device)
    for (const Track& track : timeline_.tracks) {
      pairs.insert({track.rank, track.device});
    }
    std::set<int> gpus;
    for (const auto& [rank, device] : pairs) {
      of_process.add({std::int64_t{device},
                      std::int64_t{device},
                      std::int64_t{rank + 1},
                      {},
                      std::int64_t{timeline_.meta.sms}});
      gpus.insert(device);
    }
    Rows gpu_rows(image_, "TARGET_INFO_GPU",
                  "vmId, id, name, busLocation, smCount, totalMemory, memoryBandwidth, chipName, "
                  "cuDevice");
    const std::string device = device_name();
    for (const int gpu : gpus) {
      gpu_rows.add({std::int64_t{0},
                    std::int64_t{gpu},
                    std::string_view(device),
                    std::string_view(""),
                    std::int64_t{timeline_.meta.sms},
                    {},
                    {},
                    std::string_view(""),
                    std::int64_t{gpu}});
    }
    for (int rank = 0; rank < timeline_.wiring.ranks; ++rank) {
      const std::string text = process_name(timeline_, rank);
      processes.add({global_pid(rank), std::int64_t{rank + 1}, std::string_view(text)});
    }
  }

  int device_of(int rank) const {
    const auto track = std::find_if(timeline_.tracks.begin(), timeline_.tracks.end(),
                                    [&](const Track& one) { return one.rank == rank; });
    return track == timeline_.tracks.end() ? 0 : track->device;
  }

  void metrics() {
    Rows info(image_, "TARGET_INFO_GPU_METRICS",
              "typeId, sourceId, typeName, metricId, metricName");
    Rows rows(image_, "GPU_METRICS", "timestamp, typeId, metricId, value");
    std::map<int, std::int64_t> metrics_of;  // by device
    for (const Counter& counter : timeline_.counters) {
      const bool giga = counter.unit == "GB/s";
      // The low half of a type's id is the GPU's.
      const std::int64_t gpu = device_of(counter.rank);
      const std::int64_t metric = metrics_of[static_cast<int>(gpu)]++;
      const std::string text = fmt::format("{} [{}]", counter.name, giga ? "MB/s" : counter.unit);
      info.add(
          {gpu, std::int64_t{0}, std::string_view("fusescope"), metric, std::string_view(text)});
      for (std::size_t i = 0; i < counter.time_ns.size(); ++i) {
        rows.add({counter.time_ns[i] - origin_, gpu, metric,
                  std::int64_t{std::llround(counter.value[i] * (giga ? 1e3 : 1))}});
      }
    }
  }

  // The domain and its categories, in every process.
  void ranges_of_domain() {
    Rows rows(image_, "NVTX_EVENTS", "start, eventType, category, text, globalTid, domainId");
    for (int rank = 0; rank < timeline_.wiring.ranks; ++rank) {
      const auto name_it = [&](int type, SqlValue category, std::string_view text) {
        rows.add(
            {std::int64_t{0}, std::int64_t{type}, category, text, global_tid(rank, 1), kDomain});
      };
      name_it(nsys::kNvtxDomainCreate, {}, "fusescope");
      name_it(nsys::kNvtxCategory, kIteration, "iteration");
      name_it(nsys::kNvtxCategory, kStep, "step");
      for (std::size_t i = 0; i < kRecordCategories.size(); ++i) {
        name_it(nsys::kNvtxCategory, kFirstRecordCategory + static_cast<std::int64_t>(i),
                kRecordCategories[i]);
      }
    }
  }

  void range(std::int64_t begin_ns, std::int64_t end_ns, std::int64_t category,
             std::string_view text, std::int64_t thread, SqlValue json) {
    range_rows_.add({begin_ns - origin_, end_ns - origin_, std::int64_t{nsys::kNvtxPushPopRange},
                     category, text, thread, kDomain, json});
  }

  std::string step_name(const Event& event) const {
    return event.index < 0 ? std::string(name(event.kind))
                           : fmt::format("{} {}", name(event.kind), event.index);
  }

  // Blocks of a kernel with block tracks; 0: not known.
  std::int64_t blocks_of(int rank, Kind kind) const {
    std::set<std::pair<Role, int>> blocks;
    for (const Track& track : timeline_.tracks) {
      if (track.rank == rank && track.stage != Stage::stream &&
          phase_of(track.stage, timeline_.meta.serial) == kind) {
        blocks.insert({track.role, track.block});
      }
    }
    return static_cast<std::int64_t>(blocks.size());
  }

  void kernel(Dependencies::EventId id) {
    const Event& event = timeline_.events[id];
    const Track& track = timeline_.tracks[event.track];
    const Dependencies::EventId previous = dependencies_.previous_on_track(id);
    const std::int64_t from_ns =
        previous == Dependencies::kNone ? event.begin_ns : timeline_.events[previous].end_ns;
    const std::string text = step_name(event);
    const std::int64_t name_id = string(text);
    const std::int64_t correlation = ++correlation_;
    const std::int64_t grid = blocks_of(track.rank, event.kind);
    const std::int64_t one = grid > 0 ? 1 : 0;
    const std::int64_t zero = 0;
    kernel_rows_.add({event.begin_ns - origin_,
                      event.end_ns - origin_,
                      std::int64_t{track.device},
                      kContext,
                      kFirstStream + track.rank,
                      correlation,
                      global_pid(track.rank),
                      name_id,
                      name_id,
                      zero,
                      grid,
                      one,
                      one,
                      zero,
                      zero,
                      zero,
                      zero,
                      zero,
                      zero,
                      zero,
                      correlation});
    const std::int64_t call_ns = from_ns - origin_ + (previous == Dependencies::kNone ? 0 : 1);
    call_rows_.add({call_ns, call_ns, kCudaRuntimeClass, global_tid(track.rank, 1), correlation,
                    string("launch (call not recorded)"), zero});
    range(from_ns, event.end_ns, kStep, text, global_tid(track.rank, 1), {});
  }

  void record(Dependencies::EventId id, std::int64_t thread) {
    const Event& event = timeline_.events[id];
    std::string json = "{";
    for (const Annotation& annotation : annotate(dependencies_, id)) {
      json +=
          fmt::format("{}\"{}\":{}", json.size() > 1 ? "," : "", annotation.name, annotation.value);
    }
    json += "}";
    const auto found =
        std::find(kRecordCategories.begin(), kRecordCategories.end(), category(event.kind));
    range(event.begin_ns, event.end_ns, kFirstRecordCategory + (found - kRecordCategories.begin()),
          name(event.kind), global_tid(dependencies_.rank_of(id), thread), std::string_view(json));
  }

  const Timeline& timeline_;
  Dependencies dependencies_;
  std::int64_t origin_;
  SqliteImage image_{nsys::kTables};
  Rows string_rows_{image_, "StringIds", "id, value"};
  Rows thread_names_{image_, "ThreadNames", "nameId, priority, globalTid"};
  Rows kernel_rows_{image_, "CUPTI_ACTIVITY_KIND_KERNEL",
                    "start, end, deviceId, contextId, streamId, correlationId, globalPid, "
                    "demangledName, shortName, registersPerThread, gridX, gridY, gridZ, blockX, "
                    "blockY, blockZ, staticSharedMemory, dynamicSharedMemory, "
                    "localMemoryPerThread, localMemoryTotal, gridId"};
  Rows call_rows_{image_, "CUPTI_ACTIVITY_KIND_RUNTIME",
                  "start, end, eventClass, globalTid, correlationId, nameId, returnValue"};
  Rows range_rows_{image_, "NVTX_EVENTS",
                   "start, end, eventType, category, text, globalTid, domainId, jsonText"};
  std::map<std::string, std::int64_t, std::less<>> strings_;
  std::int64_t correlation_ = 0;
};

}  // namespace

void write_nsys_sqlite(const Timeline& timeline, std::ostream& out) {
  out << NsysWriter(timeline).write();
}

}  // namespace fusescope::timeline
