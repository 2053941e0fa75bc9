#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "sweep/constraint.hpp"
#include "sweep/search_space.hpp"
#include "sweep/sweep_config.hpp"
#include "targets.hpp"

namespace fusescope::fuzz {
namespace {

const DeviceLimits kDevice{"a device", 132, 232448, false};

void evaluate(std::string_view text) {
  const sweep::Constraint constraint(std::string(text), "input", "/constraints/0");
  const Shape shape{"a shape", 4, 512, 4096, 64, 8, 768, ""};
  const bool holds = constraint.holds(Config{}, kDevice, shape);
  require(holds == constraint.holds(Config{}, kDevice, shape), "a constraint has one value");
}

void walk(const sweep::SweepConfig& config) {
  const sweep::SearchSpace space(config, kDevice);
  require(space.size() >= 1, "a search space has a config");
  constexpr long long kVisited = 32;
  const long long stride = std::max(space.size() / kVisited, 1LL);
  for (long long index = 0; index < space.size(); index += stride) {
    const Config candidate = space.at(index);
    require(candidate == space.at(index), "an index is one config");
    for (const long long near : space.neighbours(index)) {
      require(near >= 0 && near < space.size() && near != index, "neighbours lie in the space");
    }
    space.allowed(candidate);
  }
}

}  // namespace

bool sweep_json(std::string_view input) {
  try {
    if (!input.starts_with('{')) {
      evaluate(input);
      return true;
    }
    const std::optional<Json> document = parse_json(input);
    if (!document) {
      return false;
    }
    const sweep::SweepConfig config = sweep::parse_sweep_config(*document, "input");
    const sweep::SweepConfig again = sweep::parse_sweep_config(config.document, "sweep.json");
    require(sweep::identity(config) == sweep::identity(again), "sweep.json is the same sweep");
    require(config.shape == again.shape, "sweep.json has the same shape");
    walk(config);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace fusescope::fuzz
