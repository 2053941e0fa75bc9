// The written form of a routing spec, both ways: "zipf:1.2@7", "file:trace.npy#layer=3".
#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "layer/routing.hpp"

namespace fusescope {
namespace {

constexpr const char* kForms =
    "balanced, uniform, zipf:ALPHA, hot:EXPERTS,SHARE (each with @SEED behind it if wanted) or "
    "file:PATH#layer=N,skip=N,weights=PATH (options if wanted)";

const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> names = {"balanced", "uniform", "zipf", "hot", "file"};
  return names;
}

[[noreturn]] void refuse(const std::string& text, const std::string& problem) {
  throw InputError({"", "routing", fmt::format("\"{}\": {}", text, problem), kForms});
}

template <typename Number>
Number number(std::string_view part, const std::string& text, const char* what) {
  Number value{};
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (error != std::errc{} || end != part.data() + part.size()) {
    refuse(text, fmt::format("\"{}\" is not {}", part, what));
  }
  return value;
}

void read_file_form(std::string_view rest, const std::string& text, RoutingSpec& spec) {
  const std::size_t hash = rest.rfind('#');
  spec.path = rest.substr(0, hash);
  if (spec.path.empty()) {
    refuse(text, "the path is missing");
  }
  if (hash == std::string_view::npos) {
    return;
  }
  std::string_view options = rest.substr(hash + 1);
  while (!options.empty()) {
    constexpr std::string_view kWeights = "weights=";
    if (options.starts_with(kWeights)) {  // the rest is a path, commas and all
      spec.weights_path = options.substr(kWeights.size());
      return;
    }
    const std::size_t comma = options.find(',');
    const std::string_view option = options.substr(0, comma);
    options = comma == std::string_view::npos ? "" : options.substr(comma + 1);
    const std::size_t equals = option.find('=');
    const std::string_view key = option.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? "" : option.substr(equals + 1);
    if (key == "layer") {
      spec.layer = number<int>(value, text, "a layer's number");
    } else if (key == "skip") {
      spec.skip_tokens = number<int>(value, text, "a number of tokens");
    } else {
      refuse(text, fmt::format("unknown option \"{}\"", key));
    }
  }
}

void read_parameters(std::string_view parameters, bool given, const std::string& text,
                     RoutingSpec& spec) {
  switch (spec.kind) {
    case RoutingKind::zipf:
      if (given) {
        spec.alpha = number<double>(parameters, text, "an exponent");
      }
      return;
    case RoutingKind::hot: {
      const std::size_t comma = parameters.find(',');
      if (comma == std::string_view::npos) {
        refuse(text, "hot needs a number of experts and a share");
      }
      spec.hot_experts = number<int>(parameters.substr(0, comma), text, "a number of experts");
      spec.hot_share = number<double>(parameters.substr(comma + 1), text, "a share");
      return;
    }
    default:
      if (given) {
        refuse(text, fmt::format("{} takes no parameters",
                                 kind_names()[static_cast<std::size_t>(spec.kind)]));
      }
  }
}

}  // namespace

RoutingSpec parse_routing(const std::string& text) {
  RoutingSpec spec;
  const std::string_view whole = text;
  constexpr std::string_view kFile = "file:";
  if (whole.starts_with(kFile)) {
    spec.kind = RoutingKind::file;
    read_file_form(whole.substr(kFile.size()), text, spec);
    return spec;
  }
  const std::size_t at = whole.rfind('@');
  if (at != std::string_view::npos) {
    spec.seed = number<std::uint64_t>(whole.substr(at + 1), text, "a seed (0 to 2^64 - 1)");
  }
  const std::string_view body = whole.substr(0, at);
  const std::size_t colon = body.find(':');
  const std::string name(body.substr(0, colon));
  const std::vector<std::string>& names = kind_names();
  std::size_t kind = 0;
  while (kind < names.size() && names[kind] != name) {
    ++kind;
  }
  if (kind == names.size()) {
    const std::string nearest = nearest_name(name, names);
    refuse(text, "unknown routing" +
                     (nearest.empty() ? std::string() : ", did you mean \"" + nearest + "\"?"));
  }
  spec.kind = static_cast<RoutingKind>(kind);
  if (spec.kind == RoutingKind::file) {
    refuse(text, "the path is missing");
  }
  const bool given = colon != std::string_view::npos;
  read_parameters(given ? body.substr(colon + 1) : "", given, text, spec);
  return spec;
}

std::string form(const RoutingSpec& spec) {
  switch (spec.kind) {
    case RoutingKind::balanced:
      return "balanced";
    case RoutingKind::uniform:
      return "uniform";
    case RoutingKind::zipf:
      return fmt::format("zipf:{}", spec.alpha);
    case RoutingKind::hot:
      return fmt::format("hot:{},{}", spec.hot_experts, spec.hot_share);
    case RoutingKind::file:
      break;
  }
  std::string options;
  const auto add = [&](const std::string& option) {
    options += (options.empty() ? "" : ",") + option;
  };
  if (spec.layer != 0) {
    add(fmt::format("layer={}", spec.layer));
  }
  if (spec.skip_tokens != 0) {
    add(fmt::format("skip={}", spec.skip_tokens));
  }
  if (!spec.weights_path.empty()) {
    add("weights=" + spec.weights_path);
  }
  const bool needs_mark = !options.empty() || spec.path.find('#') != std::string::npos;
  return "file:" + spec.path + (needs_mark ? "#" + options : "");
}

std::string to_string(const RoutingSpec& spec) {
  const bool seeded = spec.kind != RoutingKind::file && spec.seed != RoutingSpec{}.seed;
  return form(spec) + (seeded ? fmt::format("@{}", spec.seed) : "");
}

}  // namespace fusescope
