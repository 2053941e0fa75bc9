// Routing from JSON lines, in the two forms in which people record it:
//   router trace  {"step":0,"stage":"pre_dispatch","block":"decoder","layer":3,"rank":0,"num_tokens":2,
//                  "topk":2,"top_indices":[[12,45],[3,7]]}         one record per step, layer and rank
//   per token     {"type":"route","req_id":"r1","token_idx":0,"layer":0,"topk_ids":[4,1],
//                  "topk_weights":[0.7,0.3]}                       after {"type":"meta",...}
// Records of the chosen layer concatenate in the file's order.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "layer/routing_source.hpp"

namespace fusescope {
namespace {

constexpr const char* kRecordForms =
    "router-trace records with \"layer\" and \"top_indices\", or per-token records with \"layer\" "
    "and \"topk_ids\"";

class Collector {
 public:
  explicit Collector(const RoutingSpec& spec) : spec_(spec) {}

  void add_line(std::string_view text, long long line) {
    const Json record = parse(text, line);
    const JsonReader reader(spec_.path, record, fmt::format("line {} ", line));
    if (!record.is_object()) {
      reader.refuse("is not a JSON object", kRecordForms);
    }
    if (reader.has("type") && record["type"] == "meta") {
      return;
    }
    const bool trace = reader.has("top_indices");
    if (!trace && !reader.has("topk_ids")) {
      reader.refuse("is neither form of routing record", kRecordForms);
    }
    if (is_trace_ && *is_trace_ != trace) {
      reader.refuse("is a record of another form than the lines before it", "one form per file");
    }
    is_trace_ = trace;
    const long long layer =
        reader.at("layer").as_integer(0, std::numeric_limits<std::int32_t>::max());
    layers_.insert(layer);
    if (layer != spec_.layer) {
      return;
    }
    trace ? add_trace(reader, line) : add_token(reader, line);
  }

  RecordedRouting finish() {
    if (layers_.empty()) {
      throw InputError({spec_.path, "", "holds no routing record", kRecordForms});
    }
    if (recorded_.tokens == 0) {
      throw InputError({spec_.path, "", fmt::format("holds no token of layer {}", spec_.layer),
                        fmt::format("layer={}", fmt::join(layers_, ", "))});
    }
    recorded_.form =
        fmt::format("{}, layer {}", *is_trace_ ? "router trace" : "per-token records", spec_.layer);
    if (other_stages_ > 0) {
      recorded_.form +=
          fmt::format(", {} records of other stages or blocks left out", other_stages_);
    }
    return std::move(recorded_);
  }

 private:
  Json parse(std::string_view text, long long line) const {
    std::optional<Json> record = parse_json(text);
    if (!record) {
      // Python writes these; JSON has no such numbers.
      const char* number = "";
      for (const char* name : {"NaN", "Infinity"}) {
        if (text.find(name) != std::string_view::npos) {
          number = name;
        }
      }
      throw InputError({spec_.path, fmt::format("line {}", line),
                        *number ? fmt::format("holds {}, which is not a finite number", number)
                                : "is not valid JSON",
                        "one JSON object a line"});
    }
    return *std::move(record);
  }

  void add_trace(const JsonReader& reader, long long line) {
    const std::string stage = text_or_none(reader, "stage") + "/" + text_or_none(reader, "block");
    if (!stage_) {
      stage_ = stage;
    }
    if (*stage_ != stage) {  // the same tokens again, at another point of the layer
      ++other_stages_;
      return;
    }
    const JsonReader rows = reader.at("top_indices");
    if (reader.has("num_tokens")) {
      const auto count = static_cast<long long>(rows.size());
      reader.at("num_tokens").as_integer(count, count);
    }
    for (std::size_t index = 0; index < rows.size(); ++index) {
      add_ids(rows.element(index), {line, static_cast<int>(index)});
    }
    if (reader.has("topk") && rows.size() > 0) {
      reader.at("topk").as_integer(recorded_.topk, recorded_.topk);
    }
  }

  void add_token(const JsonReader& reader, long long line) {
    add_ids(reader.at("topk_ids"), {line, -1});
    const bool weighted = reader.has("topk_weights");
    if (recorded_.tokens > 1 && weighted == recorded_.weights.empty()) {
      reader.refuse(weighted ? "has weights, and records before it have none"
                             : "has no \"topk_weights\", and records before it have them",
                    "weights in every record or in none");
    }
    if (!weighted) {
      return;
    }
    const JsonReader weights = reader.at("topk_weights");
    if (weights.size() != static_cast<std::size_t>(recorded_.topk)) {
      weights.refuse(fmt::format("{} weights for {} ids", weights.size(), recorded_.topk),
                     "one weight per id");
    }
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const double most = std::numeric_limits<float>::max();
      recorded_.weights.push_back(static_cast<float>(weights.element(k).as_number(0, most)));
    }
  }

  void add_ids(const JsonReader& ids, RecordedRouting::Place place) {
    const auto count = static_cast<int>(ids.size());
    if (recorded_.tokens == 0) {
      recorded_.topk = count;
    }
    if (count == 0 || count != recorded_.topk) {
      ids.refuse(fmt::format("{} ids", count),
                 count == 0 ? "at least one id"
                            : fmt::format("{} ids, as the records before it have", recorded_.topk));
    }
    for (int k = 0; k < count; ++k) {
      recorded_.experts.push_back(static_cast<std::int32_t>(ids.element(k).as_integer(
          std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max())));
    }
    recorded_.places.push_back(place);
    ++recorded_.tokens;
  }

  static std::string text_or_none(const JsonReader& reader, const std::string& key) {
    return reader.has(key) ? reader.at(key).as_string() : "";
  }

  const RoutingSpec& spec_;
  RecordedRouting recorded_;
  std::optional<bool> is_trace_;
  std::optional<std::string> stage_;
  std::set<long long> layers_;
  long long other_stages_ = 0;
};

}  // namespace

RecordedRouting read_jsonl_routing(const RoutingSpec& spec, std::string_view bytes) {
  Collector collector(spec);
  long long line = 0;
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    const std::string_view text = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    ++line;
    if (text.find_first_not_of(" \t\r") != std::string_view::npos) {
      collector.add_line(text, line);
    }
  }
  return collector.finish();
}

}  // namespace fusescope
