#include "sweep/sweep_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "engine/engine.hpp"
#include "sweep/knob_json.hpp"

namespace fusescope::sweep {
namespace {

constexpr std::array<std::string_view, 5> kSearchNames = {"grid", "random", "local", "racing",
                                                          "sim_guided"};
constexpr long long kMostTrials = 1'000'000;  // a sweep beyond that is a mistake in its axes
constexpr int kMostShards = 10'000;

// Runs `read`; an error of it that names another place is told to come from here.
template <typename Read>
auto at_place(const JsonReader& reader, Read read) {
  try {
    return read();
  } catch (const InputError& error) {
    const InputError::Parts& parts = error.parts();
    const bool own_file = !parts.file.empty() && parts.file != reader.file();
    throw InputError(
        {reader.file(), reader.path(),
         own_file ? parts.file + ": " + parts.place + ": " + parts.problem : parts.problem,
         parts.accepted});
  }
}

Shape read_inline_shape(const JsonReader& reader) {
  struct Field {
    const char* key;
    int Shape::*member;
  };
  constexpr std::array<Field, 6> kFields = {{{"ranks", &Shape::ranks},
                                             {"tokens_per_rank", &Shape::tokens_per_rank},
                                             {"hidden", &Shape::hidden},
                                             {"experts", &Shape::experts},
                                             {"topk", &Shape::topk},
                                             {"intermediate", &Shape::intermediate}}};
  std::vector<std::string> known = {"name", "source"};
  for (const Field& field : kFields) {
    known.emplace_back(field.key);
  }
  reader.only(known);
  Shape shape;
  shape.name = reader.has("name") ? reader.at("name").as_string() : "inline";
  shape.source = reader.has("source") ? reader.at("source").as_string() : "written in the sweep";
  for (const Field& field : kFields) {
    shape.*field.member =
        static_cast<int>(reader.at(field.key).as_integer(1, std::numeric_limits<int>::max()));
  }
  try {
    validate(shape, reader.file());
  } catch (const InputError& error) {
    InputError::Parts parts = error.parts();
    parts.place = reader.path() + parts.place;
    throw InputError(parts);
  }
  return shape;
}

Shape read_shape(const JsonReader& reader) {
  if (reader.value().is_object()) {
    return read_inline_shape(reader);
  }
  if (!reader.value().is_string()) {
    reader.refuse(reader.value().dump() + " is not a shape",
                  "a name, a path, or an object with ranks, tokens_per_rank, hidden, ...");
  }
  return at_place(reader, [&] { return load_shape(reader.as_string()); });
}

Json shape_document(const Shape& shape) {
  return {{"name", shape.name},     {"source", shape.source},
          {"ranks", shape.ranks},   {"tokens_per_rank", shape.tokens_per_rank},
          {"hidden", shape.hidden}, {"experts", shape.experts},
          {"topk", shape.topk},     {"intermediate", shape.intermediate}};
}

RoutingSpec read_routing(const JsonReader& reader) {
  if (!reader.value().is_object()) {
    return at_place(reader, [&] { return parse_routing(reader.as_string()); });
  }
  static const std::vector<std::string> kKinds = {"balanced", "uniform", "zipf", "hot", "file"};
  RoutingSpec spec;
  spec.kind = static_cast<RoutingKind>(reader.at("kind").as_choice(kKinds));
  // Only what the kind uses is accepted, so that a parameter without effect is noticed.
  std::vector<std::string> known = {"kind"};
  constexpr int kMost = std::numeric_limits<int>::max();
  switch (spec.kind) {
    case RoutingKind::balanced:
    case RoutingKind::uniform:
      known.insert(known.end(), {"seed"});
      break;
    case RoutingKind::zipf:
      known.insert(known.end(), {"alpha", "seed"});
      break;
    case RoutingKind::hot:
      known.insert(known.end(), {"experts", "share", "seed"});
      break;
    case RoutingKind::file:
      known.insert(known.end(), {"path", "layer", "skip_tokens", "weights"});
      break;
  }
  reader.only(known);
  if (reader.has("alpha")) {
    spec.alpha = reader.at("alpha").as_number(0, 100);
  }
  if (reader.has("experts")) {
    spec.hot_experts = static_cast<int>(reader.at("experts").as_integer(1, kMost));
  }
  if (reader.has("share")) {
    spec.hot_share = reader.at("share").as_number(0, 1);
  }
  if (reader.has("seed")) {
    spec.seed = static_cast<std::uint64_t>(
        reader.at("seed").as_integer(0, std::numeric_limits<long long>::max()));
  }
  if (spec.kind == RoutingKind::file) {
    spec.path = reader.at("path").as_string();
  }
  if (reader.has("layer")) {
    spec.layer = static_cast<int>(reader.at("layer").as_integer(0, kMost));
  }
  if (reader.has("skip_tokens")) {
    spec.skip_tokens = static_cast<int>(reader.at("skip_tokens").as_integer(0, kMost));
  }
  if (reader.has("weights")) {
    spec.weights_path = reader.at("weights").as_string();
  }
  return spec;
}

Axis read_axis(const std::string& knob_name, const JsonReader& reader) {
  Axis axis;
  axis.knob = knob_name;
  Config scratch;
  if (find_knob(knob_name) == nullptr) {
    set_knob(scratch, knob_name, KnobValue{false}, reader.file(), reader.path());  // says so
  }
  const Knob& knob = *find_knob(knob_name);
  if (reader.size() == 0) {
    reader.refuse("the axis is empty",
                  "at least one value; to leave the knob at its base value, leave the axis out");
  }
  for (std::size_t i = 0; i < reader.size(); ++i) {
    const JsonReader element = reader.element(i);
    set_knob(scratch, knob_name, knob_value(element), element.file(), element.path());
    // The knob's own form of the value: 4 and 4.0 are one.
    const KnobValue value = knob.get(scratch);
    const auto earlier = std::find(axis.values.begin(), axis.values.end(), value);
    if (earlier != axis.values.end()) {
      element.refuse(
          fmt::format(
              "{} stands twice on this axis, first at {}", to_string(value),
              reader.element(static_cast<std::size_t>(earlier - axis.values.begin())).path()),
          "each value once");
    }
    axis.values.push_back(value);
  }
  return axis;
}

std::vector<Axis> read_axes(const JsonReader& reader) {
  std::vector<Axis> axes;
  for (const std::string& knob : reader.keys()) {
    axes.push_back(read_axis(knob, reader.at(knob)));
  }
  if (axes.empty()) {
    reader.refuse("there is no axis", "an object with at least one knob and its values");
  }
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    return find_knob(a.knob) < find_knob(b.knob);  // rows of one registry
  });
  long long configs = 1;
  for (const Axis& axis : axes) {
    configs *= static_cast<long long>(axis.values.size());
    if (configs > kMostTrials) {
      reader.refuse(fmt::format("the axes span more than {} configs", kMostTrials),
                    "fewer or shorter axes");
    }
  }
  return axes;
}

void read_budget(const JsonReader& budget, Search& search) {
  budget.only({"trials", "seconds", "improvement"});
  if (budget.has("trials")) {
    search.trials = budget.at("trials").as_integer(1, kMostTrials);
  }
  if (budget.has("seconds")) {
    search.seconds = budget.at("seconds").as_number(0.001, 1e9);
  }
  if (budget.has("improvement")) {
    const JsonReader improvement = budget.at("improvement");
    improvement.only({"at_least", "trials"});
    search.improvement.at_least = improvement.at("at_least").as_number(0, 1);
    search.improvement.trials = improvement.at("trials").as_integer(1, kMostTrials);
  }
}

Search read_search(const JsonReader& reader) {
  reader.only({"strategy", "budget", "seed", "profile"});
  Search search;
  search.kind = static_cast<SearchKind>(
      reader.at("strategy").as_choice({kSearchNames.begin(), kSearchNames.end()}));
  if (reader.has("budget")) {
    read_budget(reader.at("budget"), search);
  }
  if (reader.has("seed")) {
    search.seed = static_cast<std::uint64_t>(
        reader.at("seed").as_integer(0, std::numeric_limits<long long>::max()));
  }
  if (reader.has("profile")) {
    if (search.kind != SearchKind::sim_guided) {
      reader.at("profile").refuse("only sim_guided has a profile to rank by",
                                  "no profile here; the simulator's own stands beside \"engine\"");
    }
    search.profile = reader.at("profile").as_string();
  }
  return search;
}

Measure read_measure(const JsonReader& reader) {
  reader.only({"warmup", "min_samples", "target_rel_ci", "max_seconds", "rest_ms", "seed", "l2",
               "throttle_below", "base_every", "deadline_seconds"});
  Measure measure;
  if (reader.has("warmup")) {
    measure.warmup = static_cast<int>(reader.at("warmup").as_integer(0, 100'000));
  }
  if (reader.has("min_samples")) {
    measure.min_samples = static_cast<int>(reader.at("min_samples").as_integer(1, 1'000'000));
  }
  if (reader.has("target_rel_ci")) {
    measure.target_rel_ci = reader.at("target_rel_ci").as_number(1e-6, 1);
  }
  if (reader.has("max_seconds")) {
    measure.max_seconds = reader.at("max_seconds").as_number(0.001, 1e6);
  }
  if (reader.has("rest_ms")) {
    measure.rest_ms = static_cast<int>(reader.at("rest_ms").as_integer(0, engine::kMostRestMs));
  }
  if (reader.has("seed")) {
    measure.seed = static_cast<std::uint64_t>(
        reader.at("seed").as_integer(0, std::numeric_limits<long long>::max()));
  }
  if (reader.has("l2") && reader.at("l2").as_string() != "warm") {
    reader.at("l2").refuse(
        "no engine can start an iteration on a cold L2",
        "\"warm\": an iteration finds what the one before it left in the L2, and "
        "streams weights many times its size through it");
  }
  if (reader.has("throttle_below")) {
    measure.throttle_below = reader.at("throttle_below").as_number(0, 1);
  }
  if (reader.has("base_every")) {
    measure.base_every = static_cast<int>(reader.at("base_every").as_integer(0, kMostTrials));
  }
  if (reader.has("deadline_seconds")) {
    measure.deadline_seconds = reader.at("deadline_seconds").as_number(0.001, 1e6);
  }
  return measure;
}

Finalists read_finalists(const JsonReader& reader) {
  reader.only({"configs", "rounds", "samples"});
  Finalists finalists;
  if (reader.has("configs")) {
    finalists.configs = static_cast<int>(reader.at("configs").as_integer(0, 1000));
  }
  if (reader.has("rounds")) {
    finalists.rounds = static_cast<int>(reader.at("rounds").as_integer(2, 1000));
  }
  if (reader.has("samples")) {
    finalists.samples = static_cast<int>(reader.at("samples").as_integer(1, 100'000));
  }
  return finalists;
}

}  // namespace

std::string_view name(SearchKind kind) {
  return kSearchNames[static_cast<std::size_t>(kind)];
}

SweepConfig read_sweep_config(const std::string& path) {
  return parse_sweep_config(read_json_file(path), path);
}

SweepConfig parse_sweep_config(const Json& document, const std::string& file) {
  const JsonReader reader(file, document);
  reader.only({"name", "why", "shape", "routing", "engine", "profile", "base", "axes",
               "constraints", "search", "measure", "finalists", "ladder"});
  SweepConfig config;
  config.file = file;
  config.name = reader.at("name").as_string();
  if (config.name.empty()) {
    reader.at("name").refuse("the name is empty", "a name for reports and tables");
  }
  if (reader.has("why")) {
    config.why = reader.at("why").as_string();
  }
  config.shape = read_shape(reader.at("shape"));
  config.routing = reader.has("routing") ? read_routing(reader.at("routing")) : RoutingSpec{};
  if (reader.has("engine")) {
    static const std::vector<std::string> kEngines = {"auto", "sim", "cuda"};
    config.engine = kEngines[reader.at("engine").as_choice(kEngines)];
  }
  if (reader.has("profile")) {
    config.profile = reader.at("profile").as_string();
  }
  if (reader.has("base")) {
    set_knobs(config.base, reader.at("base"));
  }
  config.axes = read_axes(reader.at("axes"));
  if (reader.has("constraints")) {
    const JsonReader constraints = reader.at("constraints");
    for (std::size_t i = 0; i < constraints.size(); ++i) {
      const JsonReader text = constraints.element(i);
      config.constraints.emplace_back(text.as_string(), file, text.path());
    }
  }
  if (reader.has("search")) {
    config.search = read_search(reader.at("search"));
  }
  if (reader.has("measure")) {
    config.measure = read_measure(reader.at("measure"));
  }
  if (reader.has("finalists")) {
    config.finalists = read_finalists(reader.at("finalists"));
  }
  if (reader.has("ladder")) {
    config.ladder = reader.at("ladder").as_bool();
  }
  config.document = document;
  config.document["shape"] = shape_document(config.shape);
  return config;
}

Json identity(const SweepConfig& config) {
  Json axes = Json::object();
  for (const Axis& axis : config.axes) {
    for (const KnobValue& value : axis.values) {
      axes[axis.knob].push_back(to_json(value));
    }
  }
  Json constraints = Json::array();
  for (const Constraint& constraint : config.constraints) {
    constraints.push_back(constraint.text());
  }
  Json search = {{"strategy", name(config.search.kind)}};
  if (config.search.kind == SearchKind::sim_guided) {
    search["profile"] = config.search.profile;
  } else if (config.search.kind != SearchKind::grid) {
    search["seed"] = config.search.seed;
  }
  Json measure = {{"warmup", config.measure.warmup},
                  {"min_samples", config.measure.min_samples},
                  {"target_rel_ci", config.measure.target_rel_ci},
                  {"max_seconds", config.measure.max_seconds},
                  {"throttle_below", config.measure.throttle_below},
                  {"seed", config.measure.seed}};
  if (config.measure.rest_ms > 0) {  // logs from before there were rests are of none, and go on
    measure["rest_ms"] = config.measure.rest_ms;
  }
  return {{"base", Json::parse(to_json(config.base).dump())},
          {"axes", axes},
          {"constraints", constraints},
          {"search", search},
          {"shard", shard_text(config.shard)},
          {"measure", measure}};
}

Shard parse_shard(const std::string& text, const std::string& option) {
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  const bool slash = index.ec == std::errc{} && index.ptr != end && *index.ptr == '/';
  const auto count = slash ? std::from_chars(index.ptr + 1, end, shard.count) : index;
  if (!slash || count.ec != std::errc{} || count.ptr != end || shard.count < 1 ||
      shard.count > kMostShards || shard.index < 1 || shard.index > shard.count) {
    throw InputError(
        {option, "", "\"" + text + "\" is not a shard",
         fmt::format("I/N with I from 1 to N and N up to {}, such as 2/8", kMostShards)});
  }
  return shard;
}

std::string shard_text(const Shard& shard) {
  return fmt::format("{}/{}", shard.index, shard.count);
}

std::string hex(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

}  // namespace fusescope::sweep
