// A problem from its shape and routing spec; its printed form and its hash.
#include "layer/problem.hpp"

#include <fmt/format.h>

#include <bit>

#include "base/hash.hpp"

namespace fusescope {

Problem make_problem(const Shape& shape, const RoutingSpec& routing) {
  validate(shape, shape.name);
  return {shape, routing, make_routing(routing, shape)};
}

std::string describe(const Problem& problem) {
  const Shape& s = problem.shape;
  return fmt::format("{} (R={} T={} H={} E={} K={} I={}), {}", s.name, s.ranks, s.tokens_per_rank,
                     s.hidden, s.experts, s.topk, s.intermediate, problem.routing.description);
}

std::uint64_t hash(const Problem& problem) {
  StableHash state;
  const Shape& s = problem.shape;
  // Not the names: two names of one problem are one problem.
  for (const int value :
       {s.ranks, s.tokens_per_rank, s.hidden, s.experts, s.topk, s.intermediate}) {
    state.add(static_cast<std::uint64_t>(value));
  }
  for (const std::int32_t expert : problem.routing.experts) {
    state.add(static_cast<std::uint64_t>(expert));
  }
  for (const float weight : problem.routing.weights) {
    state.add(static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(weight)));
  }
  return state.value();
}

}  // namespace fusescope
