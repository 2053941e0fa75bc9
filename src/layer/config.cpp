#include "layer/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/suggest.hpp"

namespace fusescope {
namespace {

// ---- How each type of field is read and written; one overload set serves every row of the
// registry.

KnobValue to_value(bool field) {
  return field;
}
KnobValue to_value(int field) {
  return static_cast<long long>(field);
}
KnobValue to_value(double field) {
  return field;
}

std::string from_value(bool& field, const KnobValue& value) {
  if (const bool* given = std::get_if<bool>(&value)) {
    field = *given;
    return "";
  }
  return "true or false";
}

std::string from_value(int& field, const KnobValue& value) {
  constexpr long long kMost = 1'000'000'000;
  const long long* given = std::get_if<long long>(&value);
  if (given != nullptr && *given >= 0 && *given <= kMost) {
    field = static_cast<int>(*given);
    return "";
  }
  return fmt::format("an integer from 0 to {}", kMost);
}

std::string from_value(double& field, const KnobValue& value) {
  std::optional<double> given;
  if (const double* real = std::get_if<double>(&value)) {
    given = *real;
  } else if (const long long* integer = std::get_if<long long>(&value)) {
    given = static_cast<double>(*integer);
  }
  if (given && std::isfinite(*given) && *given >= 0) {
    field = *given;
    return "";
  }
  return "a number, 0 or more";
}

template <typename Enum>
struct Names;  // the spelling of each enumerator, in its order
template <>
struct Names<LayerForm> {
  static constexpr std::array<std::string_view, 2> kList = {"fused", "serial"};
};
template <>
struct Names<Dispatch> {
  static constexpr std::array<std::string_view, 3> kList = {"scatter", "gather", "push"};
};
template <>
struct Names<PullOrder> {
  static constexpr std::array<std::string_view, 2> kList = {"by_slot", "by_token"};
};
template <>
struct Names<JobOrder> {
  static constexpr std::array<std::string_view, 2> kList = {"by_ready", "by_token"};
};
template <>
struct Names<SlotOrder> {
  static constexpr std::array<std::string_view, 3> kList = {"by_token", "interleave_sources",
                                                            "rotate_from_self"};
};
template <>
struct Names<Combine> {
  static constexpr std::array<std::string_view, 2> kList = {"dispenser", "block_per_job"};
};
template <>
struct Names<Activation> {
  static constexpr std::array<std::string_view, 2> kList = {"separate", "fused"};
};
template <>
struct Names<ScheduleSite> {
  static constexpr std::array<std::string_view, 3> kList = {"device", "host", "fused"};
};
template <>
struct Names<LaunchOrder> {
  static constexpr std::array<std::string_view, 2> kList = {"stream", "programmatic"};
};
template <>
struct Names<TileCounter> {
  static constexpr std::array<std::string_view, 3> kList = {"none", "kernel_2", "both"};
};
template <>
struct Names<TileShape> {
  static constexpr std::array<std::string_view, 5> kList = {"auto", "128x128", "128x256", "160x256",
                                                            "288x128"};
};
template <>
struct Names<GemmPath> {
  static constexpr std::array<std::string_view, 4> kList = {"auto", "wgmma", "mma", "mma_small"};
};
template <>
struct Names<Collectives> {
  static constexpr std::array<std::string_view, 3> kList = {"auto", "nccl", "peer_copies"};
};
template <>
struct Names<Study> {
  static constexpr std::array<std::string_view, 6> kList = {
      "full", "compute_all", "compute_split", "gates_open", "ideal_order", "real_order"};
};

template <typename Enum>
std::vector<std::string> choices() {
  return {Names<Enum>::kList.begin(), Names<Enum>::kList.end()};
}

template <typename Enum>
requires std::is_enum_v<Enum> KnobValue to_value(Enum field) {
  return std::string(Names<Enum>::kList[static_cast<std::size_t>(field)]);
}

template <typename Enum>
requires std::is_enum_v<Enum> std::string from_value(Enum& field, const KnobValue& value) {
  const std::vector<std::string> names = choices<Enum>();
  if (const std::string* given = std::get_if<std::string>(&value)) {
    const auto found = std::find(names.begin(), names.end(), *given);
    if (found != names.end()) {
      field = static_cast<Enum>(found - names.begin());
      return "";
    }
  }
  return spoken_list(names);
}

// ---- inject travels as text: "none", "pull:2000", "source_rank:2000@1", "token:50000@777",
// "expert:20000@5".

constexpr std::array<std::string_view, 9> kInjectPoints = {
    "none", "pull", "scatter", "job", "push", "watermark", "source_rank", "token", "expert"};
constexpr std::string_view kInjectForm =
    "none, or POINT:NANOSECONDS with POINT pull, scatter, job, push or watermark, "
    "or source_rank:NANOSECONDS@RANK, or token:NANOSECONDS@TOKEN, or expert:NANOSECONDS@EXPERT";

// Whom a point is aimed at; null where it is aimed at nobody.
template <class AnInject>
auto target_of(AnInject& inject) -> decltype(&inject.rank) {
  switch (inject.point) {
    case InjectPoint::source_rank:
      return &inject.rank;
    case InjectPoint::token:
      return &inject.token;
    case InjectPoint::expert:
      return &inject.expert;
    default:
      return nullptr;
  }
}

KnobValue to_value(const Inject& inject) {
  std::string text(kInjectPoints[static_cast<std::size_t>(inject.point)]);
  if (inject.point == InjectPoint::none) {
    return text;
  }
  text += fmt::format(":{}", inject.delay_ns);
  if (const int* target = target_of(inject); target != nullptr) {
    text += fmt::format("@{}", *target);
  }
  return text;
}

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) {
    return std::nullopt;
  }
  return number;
}

std::string from_value(Inject& inject, const KnobValue& value) {
  const std::string* given = std::get_if<std::string>(&value);
  if (given == nullptr) {
    return std::string(kInjectForm);
  }
  const std::string_view text = *given;
  const std::size_t colon = text.find(':');
  const auto point = std::find(kInjectPoints.begin(), kInjectPoints.end(), text.substr(0, colon));
  if (point == kInjectPoints.end()) {
    return std::string(kInjectForm);
  }
  Inject parsed;
  parsed.point = static_cast<InjectPoint>(point - kInjectPoints.begin());
  int* const aimed_at = target_of(parsed);
  if (parsed.point != InjectPoint::none) {
    if (colon == std::string_view::npos) {
      return std::string(kInjectForm);
    }
    const std::string_view rest = text.substr(colon + 1);
    const std::size_t at = rest.find('@');
    const std::optional<int> delay = whole_number(rest.substr(0, at));
    const std::optional<int> target =
        at == std::string_view::npos ? std::nullopt : whole_number(rest.substr(at + 1));
    if (!delay || (aimed_at != nullptr) != target.has_value()) {
      return std::string(kInjectForm);
    }
    parsed.delay_ns = *delay;
    if (aimed_at != nullptr) {
      *aimed_at = *target;
    }
  } else if (colon != std::string_view::npos) {
    return std::string(kInjectForm);
  }
  inject = parsed;
  return "";
}

template <auto Field>
Knob knob(std::string_view name, std::string_view meaning) {
  using Type = std::remove_cvref_t<decltype(Config{}.*Field)>;
  std::vector<std::string> names;
  if constexpr (std::is_enum_v<Type>) {
    names = choices<Type>();
  }
  return {name, meaning, std::move(names),
          [](const Config& config) { return to_value(config.*Field); },
          [](Config& config, const KnobValue& value) { return from_value(config.*Field, value); }};
}

}  // namespace

std::span<const Knob> knobs() {
  static const std::vector<Knob> kRegistry = {
      knob<&Config::form>("form", "the two fused kernels, or the serial layer: the baseline"),
      knob<&Config::dispatch>(
          "dispatch",
          "kernel 1's rows: each token is copied to its slots, or lands once, "
          "and the GEMM gathers its rows (wgmma, tiles of 128x128, 128x256 and, "
          "with activation fused, 160x256); push: the prologue has stored it to all ranks before"),
      knob<&Config::dispatch_comm_sms>("dispatch_comm_sms",
                                       "SMs of kernel 1 that communicate; the rest compute"),
      knob<&Config::combine_comm_sms>("combine_comm_sms",
                                      "SMs of kernel 2 that run combine jobs from the start"),
      knob<&Config::tokens_per_block>("tokens_per_block",
                                      "token slots in a communication block's shared memory"),
      knob<&Config::dispatch_head>(
          "dispatch_head",
          "with dispatch_comm_sms 0: percent of the tokens, in pull order, that all blocks fetch "
          "before they compute; each fetches its share of the rest beside its tiles"),
      knob<&Config::pull_order>("pull_order", "order in which tokens are fetched"),
      knob<&Config::job_order>("job_order", "order in which combine jobs are claimed"),
      knob<&Config::slot_order>("slot_order", "order of the hits within an expert's rows"),
      knob<&Config::combine>("combine", "who runs the combine jobs"),
      knob<&Config::all_hands>("all_hands",
                               "compute blocks join the dispenser once their tiles are done"),
      knob<&Config::watermark_chunks>("watermark_chunks",
                                      "parts of a staging plane that are announced one by one"),
      knob<&Config::activation>("activation",
                                "silu(gate) * up: own kernel, or kernel 1's epilogue"),
      knob<&Config::tile>(
          "tile",
          "the GEMM's tile, rows x columns; auto is 128x256 where that runs, else 128x128. 160x256 "
          "and 288x128 (wgmma): rows in steps of 16, an expert's last 32 with those before"),
      knob<&Config::gemm>(
          "gemm",
          "instructions of the GEMMs: wgmma where the GPU has it (sm_90), mma (mma.sync) on "
          "every other; mma_small is mma in the shared memory of sm_120"),
      knob<&Config::tile_counter>(
          "tile_counter",
          "kernels that deal out their tiles by a counter; the others do it round robin"),
      knob<&Config::schedule>("schedule",
                              "who builds the schedule tables: Thrust on the device, the host, or "
                              "one kernel that is fused "
                              "with the ids exchange and the copy-in"),
      knob<&Config::launch>("launch",
                            "how the kernels follow each other: when the one before has ended, or "
                            "block by block as it leaves "
                            "the SMs (programmatic dependent launch)"),
      knob<&Config::graph>("graph", "replay the iteration as one CUDA graph per rank"),
      knob<&Config::collectives>(
          "collectives",
          "form serial on GPUs: who gathers and reduces; auto is NCCL where it is found and every "
          "rank has a GPU of its own"),
      knob<&Config::link_gbps>(
          "link_gbps", "pacing cap in GB/s per direction, to emulate a slower link; 0 = off"),
      knob<&Config::study>("study", "a counterfactual form of the layer, for the rungs"),
      knob<&Config::inject>("inject", "a known delay at a named point, for the truth test"),
  };
  return kRegistry;
}

const Knob* find_knob(std::string_view name) {
  const std::span<const Knob> all = knobs();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Knob& knob) { return knob.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string to_string(const KnobValue& value) {
  struct Printer {
    std::string operator()(bool given) const { return given ? "true" : "false"; }
    std::string operator()(long long given) const { return fmt::format("{}", given); }
    std::string operator()(double given) const { return fmt::format("{}", given); }
    std::string operator()(const std::string& given) const { return given; }
  };
  return std::visit(Printer{}, value);
}

void set_knob(Config& config, std::string_view name, const KnobValue& value,
              const std::string& file, const std::string& place) {
  const Knob* knob = find_knob(name);
  if (knob == nullptr) {
    std::vector<std::string> known;
    for (const Knob& each : knobs()) {
      known.emplace_back(each.name);
    }
    const std::string nearest = nearest_name(name, known);
    throw InputError(
        {file, place,
         fmt::format("unknown knob \"{}\"{}", name,
                     nearest.empty() ? "" : fmt::format(", did you mean \"{}\"?", nearest)),
         spoken_list(known)});
  }
  const std::string accepted = knob->set(config, value);
  if (!accepted.empty()) {
    throw InputError(
        {file, place, fmt::format("{} cannot be \"{}\"", name, to_string(value)), accepted});
  }
}

std::string knob_text(const Config& config, std::string_view knob) {
  return to_string(find_knob(knob)->get(config));
}

void set_knob_text(Config& config, const std::string& assignment, const std::string& option) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos) {
    throw InputError({option, "", fmt::format("\"{}\" is not an assignment", assignment),
                      "KNOB=VALUE, such as dispatch_comm_sms=8"});
  }
  const std::string name = assignment.substr(0, equals);
  const std::string text = assignment.substr(equals + 1);
  const Knob* knob = find_knob(name);
  // The text takes the type of the knob's present value; what does not parse stays text and is
  // refused.
  KnobValue value = text;
  if (knob != nullptr) {
    const KnobValue present = knob->get(config);
    const char* end = text.data() + text.size();
    if (std::holds_alternative<bool>(present)) {
      if (text == "true" || text == "false") {
        value = text == "true";
      }
    } else if (std::holds_alternative<long long>(present)) {
      long long number = 0;
      const auto parsed = std::from_chars(text.data(), end, number);
      if (parsed.ec == std::errc{} && parsed.ptr == end) {
        value = number;
      }
    } else if (std::holds_alternative<double>(present)) {
      double number = 0;
      const auto parsed = std::from_chars(text.data(), end, number);
      if (parsed.ec == std::errc{} && parsed.ptr == end) {
        value = number;
      }
    }
  }
  set_knob(config, name, value, option, "");
}

std::string describe(const Config& config, const Config& base) {
  std::string text;
  for (const Knob& knob : knobs()) {
    const KnobValue value = knob.get(config);
    if (value != knob.get(base)) {
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", knob.name, to_string(value));
    }
  }
  return text.empty() ? "defaults" : text;
}

std::string why_no_rungs(const Config& config) {
  if (config.form == LayerForm::serial) {
    return "the serial layer has no cost that a study takes away";
  }
  if (config.study != Study::full) {
    return "the config is itself a study";
  }
  if (config.inject.point != InjectPoint::none) {
    return "the lower rungs only compute, and the config delays communication";
  }
  return "";
}

std::uint64_t hash(const Config& config) {
  // Over the printed knobs: a new knob changes every hash, as it must.
  StableHash state;
  for (const Knob& knob : knobs()) {
    state.add(fmt::format("{}={}", knob.name, to_string(knob.get(config))));
  }
  return state.value();
}

}  // namespace fusescope
