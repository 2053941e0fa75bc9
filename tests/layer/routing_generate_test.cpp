#include <algorithm>
#include <cmath>

#include "layer_test_support.hpp"

namespace fusescope {
namespace {

std::vector<int> hits_per_expert(const Routing& routing, int experts) {
  std::vector<int> hits(experts, 0);
  for (const std::int32_t expert : routing.experts) {
    ++hits.at(expert);
  }
  return hits;
}

Routing routing_of(const std::string& spec, const Shape& shape) {
  return make_routing(parse_routing(spec), shape);  // make_routing validates
}

TEST(GeneratedRouting, IsAFunctionOfTheSeed) {
  const Shape shape = test::small_shape(2, 64, 16, 4);
  for (const std::string spec : {"balanced", "uniform", "zipf:1.2", "hot:2,0.25"}) {
    EXPECT_EQ(routing_of(spec, shape).experts, routing_of(spec, shape).experts);
    EXPECT_EQ(routing_of(spec, shape).weights, routing_of(spec, shape).weights);
    EXPECT_NE(routing_of(spec, shape).experts, routing_of(spec + "@2", shape).experts);
    EXPECT_NE(routing_of(spec, shape).weights, routing_of(spec + "@2", shape).weights);
  }
}

// Recorded once: stored results of a seed must mean the same routing on every machine and in every
// version.
TEST(GeneratedRouting, IsTheSameOnEveryMachine) {
  const Shape shape = load_shape("seed-tp4");
  const auto hash_of = [&](const char* spec) {
    return hash(make_problem(shape, parse_routing(spec)));
  };
  EXPECT_EQ(hash_of("balanced"), 1744178424105894955ull);
  EXPECT_EQ(hash_of("uniform"), 7504345915221218552ull);
  EXPECT_EQ(hash_of("zipf:1.2"), 16973760078816487628ull);
  EXPECT_EQ(hash_of("hot:2,0.2@5"), 15689808680552700772ull);
}

TEST(GeneratedRouting, BalancedIsExact) {
  for (const auto& [ranks, tokens, experts, topk] : {std::tuple{4, 512, 64, 8},
                                                     {1, 7, 7, 3},
                                                     {3, 35, 7, 3},
                                                     {2, 5, 5, 4},
                                                     {1, 6, 3, 3},
                                                     {2, 8, 16, 1}}) {
    const Shape shape = test::small_shape(ranks, tokens, experts, topk);
    ASSERT_EQ(shape.hits() % experts, 0);
    for (const int hits : hits_per_expert(routing_of("balanced", shape), experts)) {
      EXPECT_EQ(hits, shape.hits() / experts);
    }
  }
}

TEST(GeneratedRouting, BalancedIsWithinOneWhereItCannotBeExact) {
  const Shape shape = test::small_shape(3, 11, 7, 3);  // 99 hits on 7 experts
  const std::vector<int> hits = hits_per_expert(routing_of("balanced", shape), 7);
  const auto [low, high] = std::minmax_element(hits.begin(), hits.end());
  EXPECT_EQ(*high - *low, 1);
}

TEST(GeneratedRouting, UniformIsEven) {
  const Shape shape = test::small_shape(4, 4096, 16, 4);
  for (const int hits : hits_per_expert(routing_of("uniform", shape), 16)) {
    EXPECT_NEAR(hits, 4096, 300);  // 5 standard deviations
  }
}

TEST(GeneratedRouting, ZipfFollowsItsExponent) {
  const Shape shape = test::small_shape(4, 16384, 16, 1);  // K = 1: no crowding out
  std::vector<int> hits = hits_per_expert(routing_of("zipf:1", shape), 16);
  std::sort(hits.rbegin(), hits.rend());
  double sum = 0;
  for (int i = 1; i <= 16; ++i) {
    sum += 1.0 / i;
  }
  for (int i = 1; i <= 16; ++i) {
    const double expected = 65536 / (i * sum);
    EXPECT_NEAR(hits[i - 1], expected, 6 * std::sqrt(expected)) << i;
  }
  std::vector<int> flat = hits_per_expert(routing_of("zipf:0", shape), 16);
  EXPECT_NEAR(*std::max_element(flat.begin(), flat.end()), 4096, 400);
}

TEST(GeneratedRouting, HotExpertsReceiveTheirShare) {
  const Shape shape = test::small_shape(4, 2048, 64, 8);
  std::vector<int> hits = hits_per_expert(routing_of("hot:2,0.2", shape), 64);
  std::sort(hits.rbegin(), hits.rend());
  EXPECT_NEAR((hits[0] + hits[1]) / static_cast<double>(shape.hits()), 0.2, 0.01);
  EXPECT_LT(hits[2], 1.2 * 0.8 * static_cast<double>(shape.hits()) / 62);
}

TEST(GeneratedRouting, AnImpossibleShareIsCutAndSaid) {
  const Shape shape = test::small_shape(2, 256, 64, 8);
  const Routing routing = routing_of("hot:2,0.5", shape);
  std::vector<int> hits = hits_per_expert(routing, 64);
  std::sort(hits.rbegin(), hits.rend());
  EXPECT_EQ(hits[0], shape.tokens());
  EXPECT_EQ(hits[1], shape.tokens());
  EXPECT_TRUE(test::contains(routing.description, "cut to a share of 0.25")) << routing.description;
}

TEST(GeneratedRouting, HotFillsUpWhereThereAreTooFewOthers) {
  const Shape shape = test::small_shape(2, 16, 6, 4);
  EXPECT_NO_THROW(routing_of("hot:5,0", shape));
  EXPECT_NO_THROW(routing_of("hot:6,0.3", shape));
}

TEST(GeneratedRouting, WeightsArePositiveNormalisedAndDiffer) {
  const Shape shape = test::small_shape(2, 64, 16, 4);
  const Routing routing = routing_of("uniform", shape);
  for (int token = 0; token < shape.tokens(); ++token) {
    const auto row = routing.weights.begin() + token * shape.topk;
    float sum = 0;
    for (int k = 0; k < shape.topk; ++k) {
      EXPECT_GT(row[k], 0.0f);
      sum += row[k];
    }
    EXPECT_NEAR(sum, 1.0f, 1e-6f);
    EXPECT_NE(row[0], row[1]);
  }
}

TEST(GeneratedRouting, KEqualToEWorks) {
  const Shape shape = test::small_shape(2, 5, 4, 4);
  for (const char* spec : {"balanced", "uniform", "zipf:2", "hot:1,0.25", "hot:4,1"}) {
    EXPECT_NO_THROW(routing_of(spec, shape)) << spec;
  }
}

TEST(Routing, ValidateRefusesWhatTheTablesCannotTake) {
  const Shape shape = test::small_shape(2, 4, 4, 2);
  const Routing good = routing_of("uniform", shape);
  const auto refused = [&](const std::function<void(Routing&)>& spoil) {
    Routing routing = good;
    spoil(routing);
    return test::refusal([&] { validate(routing, shape, "r.npy"); });
  };
  const auto duplicate = refused([](Routing& r) { r.experts[7] = r.experts[6]; });
  EXPECT_EQ(duplicate.file, "r.npy");
  EXPECT_EQ(duplicate.place, "token 3");
  EXPECT_TRUE(test::contains(duplicate.problem, "twice"));
  EXPECT_TRUE(test::contains(refused([](Routing& r) { r.experts[0] = 4; }).problem, "id 4"));
  EXPECT_TRUE(test::contains(refused([](Routing& r) { r.experts[0] = -2; }).problem, "id -2"));
  EXPECT_TRUE(
      test::contains(refused([](Routing& r) { r.weights[3] = std::nanf(""); }).problem, "nan"));
  EXPECT_TRUE(
      test::contains(refused([](Routing& r) { r.weights[3] = -0.5f; }).problem, "weight -0.5"));
  EXPECT_TRUE(test::contains(refused([](Routing& r) { r.weights[3] = INFINITY; }).problem, "inf"));
  refused([](Routing& r) { r.experts.pop_back(); });
  refused([](Routing& r) { r.tokens = 9; });
}

}  // namespace
}  // namespace fusescope
