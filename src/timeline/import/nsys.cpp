#include "timeline/import/nsys.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <unordered_map>

#include "base/error.hpp"

namespace fusescope::timeline {
namespace {

// CUpti_ActivityMemcpyKind, with the names that the PyTorch profiler gives.
constexpr std::array<std::string_view, 14> kCopyNames = {
    "Memcpy (unknown kind)", "Memcpy HtoD",        "Memcpy DtoH", "Memcpy HtoA",
    "Memcpy AtoH",           "Memcpy AtoA",        "Memcpy AtoD", "Memcpy DtoA",
    "Memcpy DtoD",           "Memcpy HtoH",        "Memcpy PtoP", "Memcpy Unified HtoD",
    "Memcpy Unified DtoH",   "Memcpy Unified DtoD"};

// A serialised global id: process in bits 24 to 47, thread below.
std::int64_t process_of(std::int64_t global_id) {
  return (global_id >> 24) & 0xffffff;
}
std::int64_t thread_of(std::int64_t global_id) {
  return global_id & 0xffffff;
}

class NsysReader {
 public:
  explicit NsysReader(SqliteFile& database) : database_(database) {
    trace_.file = database.file();
    trace_.source = "Nsight Systems";
    trace_.bytes = database.bytes();
  }

  Trace read() {
    if (database_.has_table("StringIds")) {
      strings();
    }
    metadata();
    bool any = gpu("CUPTI_ACTIVITY_KIND_KERNEL", GpuKind::kernel);
    any = gpu("CUPTI_ACTIVITY_KIND_MEMCPY", GpuKind::memcpy) || any;
    any = gpu("CUPTI_ACTIVITY_KIND_MEMSET", GpuKind::memset) || any;
    any = gpu("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", GpuKind::kernel) || any;
    any = calls() || any;
    any = ranges() || any;
    if (!any) {
      throw InputError({trace_.file, "", "has none of the tables of CUDA activity and NVTX ranges",
                        "a file of `nsys export --type sqlite`, of a profile with CUDA tracing"});
    }
    if (bad_rows_ > 0) {
      trace_.notes.push_back(fmt::format("{} rows without a usable time are lost (the first: {})",
                                         bad_rows_, first_bad_));
    }
    if (nameless_ > 0) {
      trace_.notes.push_back(
          fmt::format("{} rows name strings that the file does not hold", nameless_));
    }
    if (endless_ > 0) {
      trace_.notes.push_back(fmt::format("{} NVTX ranges have no end and are left out", endless_));
    }
    sort_slices(trace_);
    return std::move(trace_);
  }

 private:
  void strings() {
    SqliteRows rows(database_, "StringIds");
    const int id = rows.column("id");
    const int value = rows.column("value");
    while (rows.next()) {
      const auto number = rows.integer(id);
      const auto text = rows.text(value);
      if (number && text) {
        string_ids_[*number] = trace_.names.add(*text);
      }
    }
  }

  void metadata() {
    if (database_.has_table("META_DATA_EXPORT")) {
      SqliteRows rows(database_, "META_DATA_EXPORT");
      const int name = rows.column("name");
      const int value = rows.column("value");
      std::string product = trace_.source;
      std::string version;
      while (rows.next()) {
        const auto key = rows.text(name);
        const auto text = rows.text(value);
        if (key && text && *key == "EXPORT_PRODUCT_VERSION") {
          version = " " + std::string(*text);
        } else if (key && text && *key == "EXPORT_PRODUCT_NAME" && *text == "fusescope") {
          product = *text;  // nsys_writer.cpp's
        } else if (key && text && *key == "FUSESCOPE_provenance") {
          trace_.simulated = *text == "simulated";
        } else if (key && text && *key == "EXPORT_PARAM_INPUT_FILE") {
          trace_.name = *text;
        }
      }
      trace_.source = product + version;
    }
    if (database_.has_table("TARGET_INFO_GPU")) {
      SqliteRows rows(database_, "TARGET_INFO_GPU");
      const int name = rows.column("name");
      if (rows.next()) {
        trace_.device_name = rows.text(name).value_or("");
      }
    }
  }

  std::uint32_t string(std::optional<std::int64_t> id) {
    const auto found = id ? string_ids_.find(*id) : string_ids_.end();
    if (found != string_ids_.end()) {
      return found->second;
    }
    ++nameless_;
    return trace_.names.add(id ? fmt::format("string {}", *id) : "(no name)");
  }

  // Begin and end; nullopt and counted where one is missing or they are swapped.
  std::optional<std::pair<std::int64_t, std::int64_t>> times(const SqliteRows& rows, int start,
                                                             int end, std::string_view table) {
    const auto begin_ns = rows.integer(start);
    const auto end_ns = rows.integer(end);
    if (!begin_ns || !end_ns || !is_plausible(*begin_ns, *end_ns)) {
      if (bad_rows_++ == 0) {
        first_bad_ = fmt::format("table {}, row {}", table, rows.row());
      }
      return std::nullopt;
    }
    return std::pair(*begin_ns, *end_ns);
  }

  std::uint32_t queue(std::int64_t process, std::int64_t device, std::int64_t stream) {
    const auto [found, fresh] = queues_.try_emplace(
        {process, device, stream}, static_cast<std::uint32_t>(trace_.queues.size()));
    if (fresh) {
      trace_.queues.push_back({process, device, stream});
    }
    return found->second;
  }

  std::uint32_t thread(std::int64_t global_tid) {
    const auto [found, fresh] =
        threads_.try_emplace(global_tid, static_cast<std::uint32_t>(trace_.threads.size()));
    if (fresh) {
      trace_.threads.push_back({process_of(global_tid), thread_of(global_tid), ""});
    }
    return found->second;
  }

  bool gpu(const std::string& table, GpuKind kind) {
    if (!database_.has_table(table)) {
      return false;
    }
    SqliteRows rows(database_, table);
    const int start = rows.column("start");
    const int end = rows.column("end");
    const int device = rows.column("deviceId");
    const int stream = rows.column("streamId");
    const int correlation = rows.column("correlationId");
    const int pid = rows.column("globalPid");
    const int bytes = rows.column("bytes");
    const int demangled = rows.column("demangledName");
    const int name = demangled >= 0 ? demangled : rows.column("shortName");
    const int copy_kind = rows.column("copyKind");
    const int graph = rows.column("graphId");
    const bool whole_graphs = table.ends_with("GRAPH_TRACE");
    const std::uint32_t category = trace_.names.add(table);
    while (rows.next()) {
      const auto time = times(rows, start, end, table);
      if (!time) {
        continue;
      }
      GpuSlice slice;
      slice.begin_ns = time->first;
      slice.end_ns = time->second;
      slice.correlation = rows.integer(correlation).value_or(kNoCorrelation);
      slice.bytes = rows.integer(bytes).value_or(-1);
      slice.queue = queue(process_of(rows.integer(pid).value_or(0)),
                          rows.integer(device).value_or(-1), rows.integer(stream).value_or(-1));
      slice.category = category;
      slice.kind = kind;
      if (kind == GpuKind::memcpy) {
        const auto number = static_cast<std::uint64_t>(rows.integer(copy_kind).value_or(0));
        slice.name = trace_.names.add(kCopyNames[number < kCopyNames.size() ? number : 0]);
      } else if (kind == GpuKind::memset) {
        slice.name = trace_.names.add("Memset");
      } else if (whole_graphs) {
        slice.name = trace_.names.add(
            fmt::format("CUDA graph {} (recorded as a whole)", rows.integer(graph).value_or(0)));
      } else {
        slice.name = string(rows.integer(name));
      }
      trace_.gpu.push_back(slice);
    }
    return true;
  }

  bool calls() {
    static const std::string kTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
    if (!database_.has_table(kTable)) {
      return false;
    }
    SqliteRows rows(database_, kTable);
    const int start = rows.column("start");
    const int end = rows.column("end");
    const int tid = rows.column("globalTid");
    const int correlation = rows.column("correlationId");
    const int name = rows.column("nameId");
    while (rows.next()) {
      if (const auto time = times(rows, start, end, kTable)) {
        HostSlice slice;
        slice.begin_ns = time->first;
        slice.end_ns = time->second;
        slice.correlation = rows.integer(correlation).value_or(kNoCorrelation);
        slice.thread = thread(rows.integer(tid).value_or(0));
        slice.name = string(rows.integer(name));
        slice.kind = HostKind::call;
        trace_.host.push_back(slice);
      }
    }
    return true;
  }

  bool ranges() {
    static const std::string kTable = "NVTX_EVENTS";
    if (!database_.has_table(kTable)) {
      return false;
    }
    // ENUM_NSYS_EVENT_TYPE: push-pop and start-end ranges; marks, names and categories are others.
    constexpr std::int64_t kPushPop = 59;
    constexpr std::int64_t kStartEnd = 60;
    SqliteRows rows(database_, kTable);
    const int start = rows.column("start");
    const int end = rows.column("end");
    const int type = rows.column("eventType");
    const int text = rows.column("text");
    const int text_id = rows.column("textId");
    const int tid = rows.column("globalTid");
    while (rows.next()) {
      const auto event_type = rows.integer(type);
      if (event_type && *event_type != kPushPop && *event_type != kStartEnd) {
        continue;
      }
      if (!rows.integer(end)) {
        endless_ += event_type.has_value() ? 1 : 0;
        continue;
      }
      if (const auto time = times(rows, start, end, kTable)) {
        HostSlice slice;
        slice.begin_ns = time->first;
        slice.end_ns = time->second;
        slice.thread = thread(rows.integer(tid).value_or(0));
        const auto own = rows.text(text);
        slice.name = own ? trace_.names.add(*own) : string(rows.integer(text_id));
        slice.kind = HostKind::range;
        trace_.host.push_back(slice);
      }
    }
    return true;
  }

  SqliteFile& database_;
  Trace trace_;
  std::unordered_map<std::int64_t, std::uint32_t> string_ids_;
  std::map<std::array<std::int64_t, 3>, std::uint32_t> queues_;
  std::unordered_map<std::int64_t, std::uint32_t> threads_;
  std::uint64_t bad_rows_ = 0;
  std::string first_bad_;
  std::uint64_t nameless_ = 0;
  std::uint64_t endless_ = 0;
};

}  // namespace

Trace read_nsys(SqliteFile& database) {
  return NsysReader(database).read();
}

}  // namespace fusescope::timeline
