#include "timeline/import/kineto.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "timeline/import/decimal.hpp"
#include "timeline/import/event_parser.hpp"
#include "timeline/import/event_scanner.hpp"

namespace fusescope::timeline {
namespace {

using Json = nlohmann::json;

enum class EventClass : std::uint8_t {
  unseen,
  kernel,
  memcpy,
  memset,
  sync,
  gpu_annotation,
  call,
  range,
  op,
  span,  // the profiler's own
};

struct ClassName {
  std::string_view category;  // lower case
  EventClass meaning;
};

// Categories of PyTorch 1.8 to 2.x, on NVIDIA and on AMD.
constexpr std::array kClasses = {
    ClassName{"kernel", EventClass::kernel},
    ClassName{"gpu_memcpy", EventClass::memcpy},
    ClassName{"memcpy", EventClass::memcpy},
    ClassName{"gpu_memset", EventClass::memset},
    ClassName{"memset", EventClass::memset},
    ClassName{"cuda_sync", EventClass::sync},
    ClassName{"gpu_user_annotation", EventClass::gpu_annotation},
    ClassName{"cuda_runtime", EventClass::call},
    ClassName{"cuda_driver", EventClass::call},
    ClassName{"hip_runtime", EventClass::call},
    ClassName{"hip_driver", EventClass::call},
    ClassName{"runtime", EventClass::call},
    ClassName{"user_annotation", EventClass::range},
    ClassName{"trace", EventClass::span},
};

EventClass classify(std::string_view category) {
  std::string lower(category);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto found = std::find_if(kClasses.begin(), kClasses.end(),
                                  [&](const ClassName& each) { return each.category == lower; });
  return found == kClasses.end() ? EventClass::op : found->meaning;
}

GpuKind gpu_kind(EventClass what) {
  switch (what) {
    case EventClass::memcpy:
      return GpuKind::memcpy;
    case EventClass::memset:
      return GpuKind::memset;
    case EventClass::sync:
      return GpuKind::sync;
    default:
      return GpuKind::kernel;
  }
}

// How often something went wrong, and where first.
struct Tally {
  std::uint64_t count = 0;
  std::uint64_t first = 0;
  void add(std::uint64_t offset) {
    if (count++ == 0) {
      first = offset;
    }
  }
};

class KinetoReader {
 public:
  KinetoReader(ByteSource& source, const std::string& file) : scanner_(source, file) {
    trace_.file = file;
    trace_.source = "PyTorch profiler";
    trace_.unit_ns = 1000;
  }

  Trace read() {
    const Json head = Json::parse(scanner_.rest(), nullptr, false);
    if (head.is_object() && head.contains("otherData")) {
      const Json& other = head["otherData"];
      own_ = other.is_object() && other.contains("provenance") && other.contains("wall_ns");
    }
    EventFields fields;
    for (std::string_view event = scanner_.next(); !event.empty(); event = scanner_.next()) {
      ++events_;
      if (!parser_.parse(event, fields)) {
        malformed_.add(scanner_.event_offset());
      } else if (fields.phase == "\"X\"") {
        slice(fields);
      } else if (fields.phase == "\"M\"") {
        metadata(fields);
      } else if (fields.phase == "\"B\"" || fields.phase == "\"E\"") {
        pairs_.add(scanner_.event_offset());
      }
    }
    trace_.bytes = scanner_.bytes();
    describe_file();
    describe_losses();
    if (trace_.gpu.empty() && trace_.host.empty()) {
      throw InputError({trace_.file, "",
                        fmt::format("has {} events, and none of them is a slice with a time{}",
                                    events_, scanner_.loss().empty() ? "" : ": " + scanner_.loss()),
                        "a trace with complete events (\"ph\": \"X\")"});
    }
    sort_slices(trace_);
    return std::move(trace_);
  }

 private:
  static std::string_view inner(std::string_view token) {
    return token.size() >= 2 && token.front() == '"' && token.back() == '"'
               ? token.substr(1, token.size() - 2)
               : token;
  }

  std::uint32_t name(std::string_view token) {
    if (token.find('\\') == std::string_view::npos) {
      return trace_.names.add(inner(token));
    }
    return trace_.names.add(unquoted(token));
  }

  EventClass class_of(std::uint32_t category) {
    if (category >= classes_.size()) {
      classes_.resize(category + 1, EventClass::unseen);
    }
    if (classes_[category] == EventClass::unseen) {
      classes_[category] = classify(trace_.names[category]);
    }
    return classes_[category];
  }

  // Begin and end in ns; nullopt and counted where there is no begin.
  std::optional<std::pair<std::int64_t, std::int64_t>> times(const EventFields& fields) {
    constexpr int kMicroToNano = 3;
    const auto begin = scaled_decimal(fields.ts, kMicroToNano);
    if (!begin) {
      no_time_.add(scanner_.event_offset());
      return std::nullopt;
    }
    const auto duration = scaled_decimal(fields.dur, kMicroToNano);
    std::int64_t end = *begin;
    if (!duration) {
      no_duration_.add(scanner_.event_offset());
    } else if (*duration < 0) {
      negative_.add(scanner_.event_offset());
    } else if (__builtin_add_overflow(*begin, *duration, &end)) {
      end = INT64_MAX;
    }
    if (!is_plausible(*begin, end)) {
      no_time_.add(scanner_.event_offset());
      return std::nullopt;
    }
    return std::pair(*begin, end);
  }

  void slice(const EventFields& fields) {
    const std::uint32_t category = name(fields.category);
    const EventClass what = class_of(category);
    if (what == EventClass::gpu_annotation || what == EventClass::span) {
      return;
    }
    const auto time = times(fields);
    if (!time) {
      return;
    }
    const std::int64_t correlation = whole_number(fields.correlation).value_or(kNoCorrelation);
    if (own_ || what <= EventClass::sync) {
      GpuSlice slice;
      slice.begin_ns = time->first;
      slice.end_ns = time->second;
      slice.correlation = correlation;
      slice.bytes = whole_number(fields.bytes).value_or(-1);
      slice.name = name(fields.name);
      slice.category = category;
      slice.queue = queue(fields);
      slice.kind = own_ ? GpuKind::record : gpu_kind(what);
      trace_.gpu.push_back(slice);
      return;
    }
    HostSlice slice;
    slice.begin_ns = time->first;
    slice.end_ns = time->second;
    slice.correlation = correlation;
    slice.name = name(fields.name);
    slice.thread = thread(fields);
    slice.kind = what == EventClass::call    ? HostKind::call
                 : what == EventClass::range ? HostKind::range
                                             : HostKind::op;
    trace_.host.push_back(slice);
  }

  std::uint32_t queue(const EventFields& fields) {
    // `args` says it; pid and tid say the same where it does not.
    const std::string_view device = fields.device.empty() ? fields.pid : fields.device;
    const std::string_view stream = fields.stream.empty() ? fields.tid : fields.stream;
    key_.assign(device).append("|").append(stream);
    const std::uint32_t number = queue_keys_.add(key_);
    if (number == trace_.queues.size()) {
      trace_.queues.push_back(
          {0, whole_number(device).value_or(-1), whole_number(stream).value_or(-1)});
    }
    return number;
  }

  std::uint32_t thread(const EventFields& fields) {
    key_.assign(fields.pid).append("|").append(fields.tid);
    const std::uint32_t number = thread_keys_.add(key_);
    if (number == trace_.threads.size()) {
      trace_.threads.push_back(
          {whole_number(fields.pid).value_or(-1), whole_number(fields.tid).value_or(-1), ""});
    }
    return number;
  }

  void metadata(const EventFields& fields) {
    if (fields.name == "\"thread_name\"" && !fields.args_name.empty()) {
      thread_names_.emplace_back(std::string(fields.pid) + "|" + std::string(fields.tid),
                                 unquoted(fields.args_name));
    }
  }

  void describe_file() {
    for (const auto& [key, text] : thread_names_) {
      const std::uint32_t number = thread_keys_.add(key);
      if (number < trace_.threads.size()) {
        trace_.threads[number].name = text;
      }
    }
    const Json rest = Json::parse(scanner_.rest(), nullptr, false);
    if (!rest.is_object()) {
      if (scanner_.loss().empty()) {
        trace_.notes.emplace_back("what stands around the list of events is not valid JSON");
      }
      return;
    }
    const auto number = [](const Json& object, const char* key) {
      const auto found = object.find(key);
      return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
    };
    const auto text = [](const Json& object, const char* key) {
      const auto found = object.find(key);
      return found != object.end() && found->is_string() ? found->get<std::string>() : "";
    };
    if (own_) {
      trace_.simulated = text(rest["otherData"], "provenance") != "measured";
      trace_.source = trace_.simulated ? "fusescope (simulated)" : "fusescope (measured)";
      trace_.in_kernel_records = true;
      trace_.unit_ns = 1;  // microseconds with three decimals
      trace_.device_name = text(rest["otherData"], "device");
      trace_.name = text(rest["otherData"], "problem");
      return;
    }
    trace_.name = text(rest, "traceName");
    if (rest.contains("distributedInfo") && rest["distributedInfo"].is_object()) {
      trace_.rank = static_cast<int>(number(rest["distributedInfo"], "rank"));
      trace_.world_size = static_cast<int>(number(rest["distributedInfo"], "world_size"));
    }
    if (rest.contains("deviceProperties") && rest["deviceProperties"].is_array()) {
      for (const Json& device : rest["deviceProperties"]) {
        if (device.is_object() && trace_.device_name.empty()) {
          trace_.device_name = text(device, "name");
        }
      }
    }
  }

  void note(const Tally& tally, std::string_view what) {
    if (tally.count > 0) {
      trace_.notes.push_back(fmt::format("{} event{} {} (the first at byte {})", tally.count,
                                         tally.count == 1 ? "" : "s", what, tally.first));
    }
  }

  void describe_losses() {
    if (!scanner_.loss().empty()) {
      trace_.notes.push_back(scanner_.loss());
    }
    note(malformed_, "could not be read as JSON and are lost");
    note(no_time_, "without a usable time are lost");
    note(no_duration_, "without a duration count as zero long");
    note(negative_, "with a negative duration count as zero long");
    note(pairs_, "are begins or ends of pairs, which are not read");
  }

  EventScanner scanner_;
  EventParser parser_;
  Trace trace_;
  bool own_ = false;
  std::uint64_t events_ = 0;
  std::vector<EventClass> classes_;  // by category's number in trace_.names
  Names queue_keys_;
  Names thread_keys_;
  std::vector<std::pair<std::string, std::string>> thread_names_;
  std::string key_;
  Tally malformed_, no_time_, no_duration_, negative_, pairs_;
};

}  // namespace

Trace read_kineto(ByteSource& source, const std::string& file) {
  return KinetoReader(source, file).read();
}

}  // namespace fusescope::timeline
