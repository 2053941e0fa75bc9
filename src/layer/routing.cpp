// A routing spec becomes the table a layer runs on: generated, or read from a file and cut or tiled
// to the shape; either way checked row by row.
#include "layer/routing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "layer/routing_source.hpp"

namespace fusescope {
namespace {

// One token's ids and weights. `seen` marks the experts of this row with `mark`.
void check_row(std::span<const std::int32_t> ids, std::span<const float> weights, int experts,
               std::vector<int>& seen, int mark, const std::string& file,
               const std::string& place) {
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= experts) {
      throw InputError({file, place, fmt::format("expert id {} is out of range", id),
                        fmt::format("0 to {} (the shape has {} experts)", experts - 1, experts)});
    }
    if (seen[id] == mark) {
      throw InputError({file, place, fmt::format("expert id {} occurs twice in one token", id),
                        "distinct ids within a token"});
    }
    seen[id] = mark;
  }
  for (const float weight : weights) {
    if (!std::isfinite(weight) || weight < 0) {
      throw InputError({file, place,
                        fmt::format("weight {} is not a finite number of at least 0", weight),
                        "finite weights of at least 0"});
    }
  }
}

void check_recorded(const RecordedRouting& recorded, const Shape& shape, const std::string& file) {
  if (recorded.topk != shape.topk) {
    throw InputError({file, "",
                      fmt::format("has top-{} routing, and the shape \"{}\" is top-{}",
                                  recorded.topk, shape.name, shape.topk),
                      "routing with exactly the shape's K; choose a shape with topk " +
                          std::to_string(recorded.topk)});
  }
  std::vector<int> seen(shape.experts, -1);
  const std::size_t topk = shape.topk;
  for (int token = 0; token < recorded.tokens; ++token) {
    const std::size_t first = token * topk;
    const std::span<const float> weights = recorded.weights.empty()
                                               ? std::span<const float>()
                                               : std::span(recorded.weights).subspan(first, topk);
    check_row(std::span(recorded.experts).subspan(first, topk), weights, shape.experts, seen, token,
              file, recorded.place(token));
  }
}

std::string fitting(int available, int skipped, int wanted) {
  std::string text = fmt::format("{} tokens", available);
  if (skipped > 0) {
    text += fmt::format(" after {} skipped", skipped);
  }
  if (available > wanted) {
    text += fmt::format(", cut to the first {}", wanted);
  } else if (available < wanted) {
    text +=
        fmt::format(", tiled {:.2f} times to {}", static_cast<double>(wanted) / available, wanted);
  }
  return text;
}

Routing routing_of_file(const RoutingSpec& spec, const Shape& shape) {
  const RecordedRouting recorded = read_recorded_routing(spec);
  check_recorded(recorded, shape, spec.path);
  const int available = recorded.tokens - spec.skip_tokens;
  if (available <= 0) {
    throw InputError(
        {spec.path, "",
         fmt::format("holds {} tokens, and skip={} leaves none", recorded.tokens, spec.skip_tokens),
         fmt::format("skip below {}", recorded.tokens)});
  }
  Routing routing;
  routing.tokens = shape.tokens();
  routing.topk = shape.topk;
  routing.experts.reserve(shape.hits());
  routing.weights.reserve(shape.hits());
  for (int token = 0; token < routing.tokens; ++token) {
    const std::ptrdiff_t first =
        static_cast<std::ptrdiff_t>(spec.skip_tokens + token % available) * shape.topk;
    const auto ids = recorded.experts.begin() + first;
    routing.experts.insert(routing.experts.end(), ids, ids + shape.topk);
    if (recorded.weights.empty()) {
      routing.weights.insert(routing.weights.end(), shape.topk,
                             1.0f / static_cast<float>(shape.topk));
    } else {
      const auto weights = recorded.weights.begin() + first;
      routing.weights.insert(routing.weights.end(), weights, weights + shape.topk);
    }
  }
  routing.description = fmt::format("{} ({}; {}{})", form(spec), recorded.form,
                                    fitting(available, spec.skip_tokens, routing.tokens),
                                    recorded.weights.empty() ? "; equal weights" : "");
  return routing;
}

void check_spec(const RoutingSpec& spec, const Shape& shape) {
  const auto refuse = [](const std::string& problem, const std::string& accepted) {
    throw InputError({"", "routing", problem, accepted});
  };
  if (spec.kind == RoutingKind::zipf && !(spec.alpha >= 0 && spec.alpha <= 16)) {
    refuse(fmt::format("zipf exponent {} is out of range", spec.alpha), "0 to 16");
  }
  if (spec.kind == RoutingKind::hot) {
    if (spec.hot_experts < 1 || spec.hot_experts > shape.experts) {
      refuse(fmt::format("{} hot experts of {}", spec.hot_experts, shape.experts),
             fmt::format("1 to {} hot experts", shape.experts));
    }
    if (!(spec.hot_share >= 0 && spec.hot_share <= 1)) {
      refuse(fmt::format("hot share {} is out of range", spec.hot_share), "0 to 1");
    }
  }
  if (spec.kind == RoutingKind::file) {
    if (spec.path.empty()) {
      refuse("file without a path", "file:PATH");
    }
    if (spec.layer < 0 || spec.skip_tokens < 0) {
      refuse(fmt::format("layer={} skip={} must not be negative", spec.layer, spec.skip_tokens),
             "integers of at least 0");
    }
  }
}

}  // namespace

Routing make_routing(const RoutingSpec& spec, const Shape& shape) {
  check_spec(spec, shape);
  Routing routing =
      spec.kind == RoutingKind::file ? routing_of_file(spec, shape) : generate_routing(spec, shape);
  validate(routing, shape, spec.path);
  return routing;
}

void validate(const Routing& routing, const Shape& shape, const std::string& file) {
  const std::size_t hits = static_cast<std::size_t>(shape.hits());
  if (routing.tokens != shape.tokens() || routing.topk != shape.topk ||
      routing.experts.size() != hits || routing.weights.size() != hits) {
    throw InputError(
        {file, "",
         fmt::format("routing of [{}, {}] with {} ids and {} weights", routing.tokens, routing.topk,
                     routing.experts.size(), routing.weights.size()),
         fmt::format("[{}, {}] for the shape \"{}\"", shape.tokens(), shape.topk, shape.name)});
  }
  std::vector<int> seen(shape.experts, -1);
  const std::size_t topk = shape.topk;
  for (int token = 0; token < routing.tokens; ++token) {
    check_row(std::span(routing.experts).subspan(token * topk, topk),
              std::span(routing.weights).subspan(token * topk, topk), shape.experts, seen, token,
              file, fmt::format("token {}", token));
  }
}

}  // namespace fusescope
