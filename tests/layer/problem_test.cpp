#include "layer_test_support.hpp"

namespace fusescope {
namespace {

TEST(Problem, DescribesItself) {
  const Problem problem = make_problem(load_shape("seed-tp4"), parse_routing("zipf:1.2"));
  EXPECT_EQ(describe(problem), "seed-tp4 (R=4 T=512 H=4096 E=64 K=8 I=768), zipf:1.2 seed 1");
}

TEST(Problem, TheHashCoversShapeIdsAndWeights) {
  const Shape shape = test::small_shape(2, 16, 8, 2);
  const Problem problem = make_problem(shape, parse_routing("uniform"));
  const std::uint64_t first = hash(problem);
  EXPECT_EQ(hash(make_problem(shape, parse_routing("uniform"))), first);

  Problem other = problem;
  other.shape.name = "renamed";  // the same problem under another name
  EXPECT_EQ(hash(other), first);
  other.shape.intermediate += 8;
  EXPECT_NE(hash(other), first);
  other = problem;
  std::swap(other.routing.experts[0], other.routing.experts[1]);
  EXPECT_NE(hash(other), first);
  other = problem;
  other.routing.weights[3] += 0.125f;
  EXPECT_NE(hash(other), first);
}

TEST(Problem, RefusesAnImpossibleShape) {
  Shape shape = test::small_shape(2, 16, 8, 2);
  shape.topk = 9;
  EXPECT_THROW(make_problem(shape, RoutingSpec{}), InputError);
}

}  // namespace
}  // namespace fusescope
