// Foreign traces as Chrome trace event JSON.

#include <fmt/format.h>

#include "timeline/import/trace_writers.hpp"
#include "timeline/json_entries.hpp"

namespace fusescope::timeline {
namespace {

std::string_view category(GpuKind kind) {
  switch (kind) {
    case GpuKind::memcpy:
      return "gpu_memcpy";
    case GpuKind::memset:
      return "gpu_memset";
    case GpuKind::sync:
      return "cuda_sync";
    default:
      return "kernel";
  }
}

std::string_view category(HostKind kind) {
  switch (kind) {
    case HostKind::call:
      return "cuda_runtime";
    case HostKind::range:
      return "user_annotation";
    default:
      return "cpu_op";
  }
}

std::string us(std::int64_t ns) {
  const std::uint64_t size =
      ns < 0 ? -static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

class TraceChromeWriter {
 public:
  TraceChromeWriter(const Trace& trace, std::ostream& out) : trace_(trace), json_(out) {}

  void write() {
    for (std::uint32_t i = 0; i < trace_.names.size(); ++i) {
      names_.push_back(quoted_json(trace_.names[i]));
    }
    json_.add(
        "{{\"displayTimeUnit\":\"ns\",\"traceName\":{},\"deviceProperties\":[{{\"name\":{}}}],",
        quoted_json(trace_.name), quoted_json(trace_.device_name));
    if (trace_.rank >= 0) {
      json_.add("\"distributedInfo\":{{\"rank\":{},\"world_size\":{}}},", trace_.rank,
                trace_.world_size);
    }
    json_.text("\n\"traceEvents\":[");
    int tid = 0;
    for (const TraceRow& row : rows_of(trace_)) {
      write_row(row, tid++);
    }
    json_.text("\n]}\n");
    json_.flush();
  }

 private:
  void write_row(const TraceRow& row, int order) {
    const std::int64_t pid = row.gpu ? row.number : row.process;
    // Lanes of a row and rows of equal numbers in two processes need ids of their own.
    const std::string tid = row.gpu ? fmt::format("\"gpu {}\"", order) : fmt::format("{}", order);
    json_.next();
    json_.add(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", pid,
              tid, quoted_json(row.name));
    json_.next();
    json_.add(
        R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
        pid, tid, order);
    for (const std::uint32_t index : row.slices) {
      json_.next();
      if (row.gpu) {
        const GpuSlice& slice = trace_.gpu[index];
        json_.add(
            R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"device":{},"stream":{})",
            category(slice.kind), names_[slice.name], pid, tid, us(slice.begin_ns),
            us(slice.end_ns - slice.begin_ns), row.number, row.stream);
        add_optional("correlation", slice.correlation, kNoCorrelation, ",");
        add_optional("bytes", slice.bytes, -1, ",");
      } else {
        const HostSlice& slice = trace_.host[index];
        json_.add(R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{)",
                  category(slice.kind), names_[slice.name], pid, tid, us(slice.begin_ns),
                  us(slice.end_ns - slice.begin_ns));
        add_optional("correlation", slice.correlation, kNoCorrelation, "");
      }
      json_.text("}}");
    }
  }

  void add_optional(std::string_view key, std::int64_t value, std::int64_t none,
                    std::string_view comma) {
    if (value != none) {
      json_.add("{}\"{}\":{}", comma, key, value);
    }
  }

  const Trace& trace_;
  JsonEntries json_;
  std::vector<std::string> names_;
};

}  // namespace

void write_trace_chrome(const Trace& trace, std::ostream& out) {
  TraceChromeWriter(trace, out).write();
}

}  // namespace fusescope::timeline
