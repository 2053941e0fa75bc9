#include <algorithm>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "layer/problem.hpp"
#include "layer/routing_source.hpp"
#include "memory_file.hpp"
#include "targets.hpp"

namespace fusescope::fuzz {
namespace {

constexpr std::string_view kWeightsFollow = "\n--weights--\n";

void check_recorded(const RecordedRouting& recorded) {
  require(recorded.tokens >= 1 && recorded.topk >= 1, "a recorded routing has tokens and experts");
  const auto tokens = static_cast<std::size_t>(recorded.tokens);
  const std::size_t hits = tokens * static_cast<std::size_t>(recorded.topk);
  require(recorded.experts.size() == hits, "every token has its experts");
  require(recorded.weights.empty() || recorded.weights.size() == hits, "a weight for each hit");
  require(recorded.places.empty() || recorded.places.size() == tokens, "a place for each token");
}

// A small shape that the file fits, as far as one does.
Shape shape_for(const RecordedRouting& recorded) {
  const std::int32_t most = *std::max_element(recorded.experts.begin(), recorded.experts.end());
  Shape shape{"fitting", 2, 1, 64, 1, 1, 64, "fuzzer"};
  shape.tokens_per_rank = std::clamp(recorded.tokens, 1, 48);
  shape.topk = std::clamp(recorded.topk, 1, 64);
  shape.experts = std::clamp(most, shape.topk, 4095) + 1;
  return shape;
}

bool read_layer(const RoutingSpec& spec) {
  try {
    const RecordedRouting recorded = read_recorded_routing(spec);
    check_recorded(recorded);
    const Shape shape = shape_for(recorded);
    validate(shape, spec.path);
    const Problem problem = make_problem(shape, spec);
    require(hash(problem) == hash(make_problem(shape, spec)), "a file is one problem");
    require(!describe(problem).empty(), "a problem has a description");
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

bool routing_file(std::string_view input) {
  const std::size_t mark = input.find(kWeightsFollow);
  const MemoryFile ids(input.substr(0, mark));
  std::optional<MemoryFile> weights;
  RoutingSpec spec;
  spec.kind = RoutingKind::file;
  spec.path = ids.path();
  if (mark != std::string_view::npos) {
    spec.weights_path = weights.emplace(input.substr(mark + kWeightsFollow.size())).path();
  }
  bool accepted = false;
  for (const int layer : {0, 1}) {
    spec.layer = layer;
    accepted |= read_layer(spec);
  }
  spec.skip_tokens = 1;
  return accepted | read_layer(spec);
}

}  // namespace fusescope::fuzz
