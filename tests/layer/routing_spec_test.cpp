#include "layer_test_support.hpp"

namespace fusescope {
namespace {

using test::contains;
using test::refusal;

TEST(RoutingSpec, EveryFormSurvivesPrintingAndParsing) {
  for (const char* text :
       {"balanced", "uniform", "zipf:1.2", "zipf:0", "hot:2,0.5", "balanced@7", "zipf:1.2@7",
        "hot:3,0.125@18446744073709551615", "file:trace.npy", "file:trace.npy#layer=3",
        "file:a@b.jsonl.gz#layer=3,skip=16384", "file:ids.npy#weights=w.npy",
        "file:ids.npy#layer=1,skip=2,weights=a,b.npy", "file:odd#name.npy#",
        "file:odd#name.npy#layer=2"}) {
    const RoutingSpec spec = parse_routing(text);
    EXPECT_EQ(to_string(spec), text);
    EXPECT_EQ(parse_routing(to_string(spec)), spec);
  }
}

TEST(RoutingSpec, ReadsItsParts) {
  EXPECT_EQ(parse_routing("zipf").alpha, 1.0);
  EXPECT_EQ(parse_routing("zipf:1.25@9").alpha, 1.25);
  EXPECT_EQ(parse_routing("zipf:1.25@9").seed, 9u);
  EXPECT_EQ(parse_routing("hot:3,0.25").hot_experts, 3);
  EXPECT_EQ(parse_routing("hot:3,0.25").hot_share, 0.25);
  const RoutingSpec file = parse_routing("file:dir/a.npy#skip=5,layer=2,weights=w.npy");
  EXPECT_EQ(file.path, "dir/a.npy");
  EXPECT_EQ(file.layer, 2);
  EXPECT_EQ(file.skip_tokens, 5);
  EXPECT_EQ(file.weights_path, "w.npy");
}

TEST(RoutingSpec, TheFormLeavesTheSeedOut) {
  EXPECT_EQ(form(parse_routing("zipf:1.2@7")), "zipf:1.2");
}

TEST(RoutingSpec, RefusesWithTheTextAndTheForms) {
  const struct {
    const char* text;
    const char* why;
  } kCases[] = {
      {"", "unknown routing"},
      {"zip:1", "did you mean \"zipf\""},
      {"zipf:x", "\"x\" is not an exponent"},
      {"zipf:", "not an exponent"},
      {"zipf:1.2@", "not a seed"},
      {"zipf:1.2@-1", "not a seed"},
      {"balanced:3", "takes no parameters"},
      {"hot:2", "a number of experts and a share"},
      {"hot", "a number of experts and a share"},
      {"hot:2.5,0.5", "\"2.5\" is not a number of experts"},
      {"file:", "path is missing"},
      {"file", "path is missing"},
      {"file:a.npy#layer=x", "\"x\" is not a layer's number"},
      {"file:a.npy#lair=1", "unknown option \"lair\""},
  };
  for (const auto& c : kCases) {
    const auto parts = refusal([&] { parse_routing(c.text); });
    EXPECT_TRUE(contains(parts.problem, c.why)) << c.text << " -> " << parts.problem;
    EXPECT_TRUE(contains(parts.accepted, "zipf:ALPHA"));
  }
}

TEST(RoutingSpec, RefusesValuesOutOfRangeForTheShape) {
  const Shape shape = test::small_shape(2, 8, 4, 2);
  for (const char* text : {"zipf:-1", "zipf:17", "zipf:nan", "hot:0,0.5", "hot:5,0.5", "hot:1,1.5",
                           "hot:1,-0.1", "file:a.npy#layer=-1", "file:a.npy#skip=-1"}) {
    EXPECT_THROW(make_routing(parse_routing(text), shape), InputError) << text;
  }
}

}  // namespace
}  // namespace fusescope
