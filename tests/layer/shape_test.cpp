#include "layer/shape.hpp"

#include <cstdlib>

#include "layer_test_support.hpp"

namespace fusescope {
namespace {

using test::contains;
using test::refusal;
using ShapeFile = test::FolderTest;

const char* const kValid = R"({"name": "s", "ranks": 2, "tokens_per_rank": 4, "hidden": 64,
  "experts": 4, "topk": 2, "intermediate": 32, "source": "a test"})";

std::string with(const std::string& key, const std::string& value) {
  std::string text = kValid;
  const std::size_t begin = text.find("\"" + key + "\": ") + key.size() + 4;
  const std::size_t end = text.find_first_of(",}", begin);
  return text.replace(begin, end - begin, value);
}

TEST(Shape, TheSeedsShapesAreTheSeeds) {
  const Shape four = load_shape("seed-tp4");
  EXPECT_EQ(four.ranks, 4);
  EXPECT_EQ(four.tokens_per_rank, 512);
  EXPECT_EQ(four.hidden, 4096);
  EXPECT_EQ(four.experts, 64);
  EXPECT_EQ(four.topk, 8);
  EXPECT_EQ(four.intermediate, 768);
  EXPECT_EQ(four.hits(), 16384);
  const Shape two = load_shape("seed-tp2");
  EXPECT_EQ(two.ranks, 2);
  EXPECT_EQ(two.tokens(), four.tokens());
  EXPECT_EQ(two.intermediate, four.intermediate);
}

TEST(Shape, EveryShippedShapeLoadsAndNamesItsSource) {
  const std::vector<Shape> shapes = list_shapes();
  EXPECT_GE(shapes.size(), 8u);
  for (const Shape& shape : shapes) {
    EXPECT_GE(shape.source.size(), 40u) << shape.name;
    EXPECT_EQ(load_shape(shape.name), shape) << "the file's name is the shape's";
  }
}

TEST(Shape, AnUnknownNameIsRefusedWithASuggestion) {
  const auto parts = refusal([] { load_shape("sed-tp4"); });
  EXPECT_TRUE(contains(parts.problem, "did you mean \"seed-tp4\"")) << parts.problem;
  EXPECT_TRUE(contains(parts.accepted, "deepseek-v3")) << parts.accepted;
}

TEST_F(ShapeFile, LoadsByPath) {
  const Shape shape = load_shape(write("s.json", kValid));
  EXPECT_EQ(shape.name, "s");
  EXPECT_EQ(shape.tokens(), 8);
  EXPECT_EQ(shape.source_rank(3), 0);
  EXPECT_EQ(shape.source_rank(4), 1);
}

TEST_F(ShapeFile, TheFolderCanBeChosen) {
  std::filesystem::create_directories(folder_ / "shapes");
  write("shapes/mine.json", kValid);
  setenv("FUSESCOPE_SWEEPS_DIR", folder_.c_str(), 1);
  const std::vector<Shape> shapes = list_shapes();
  const Shape mine = load_shape("mine");
  unsetenv("FUSESCOPE_SWEEPS_DIR");
  ASSERT_EQ(shapes.size(), 1u);
  EXPECT_EQ(shapes.front(), mine);
}

TEST_F(ShapeFile, RefusesAnUnknownKey) {
  std::string text = kValid;
  text.replace(text.find("topk"), 4, "top_k");
  const std::string path = write("s.json", text);
  const auto parts = refusal([&] { load_shape(path); });
  EXPECT_EQ(parts.file, path);
  EXPECT_EQ(parts.place, "/top_k");
  EXPECT_TRUE(contains(parts.problem, "did you mean \"topk\"")) << parts.problem;
}

TEST_F(ShapeFile, RefusesWhatNoLayerCanBe) {
  const struct {
    const char* key;
    const char* value;
    const char* why;
  } kCases[] = {
      {"topk", "5", "more than the 4 experts"},      {"ranks", "0", "out of range"},
      {"hidden", "60", "not a multiple of 8"},       {"intermediate", "4", "out of range"},
      {"intermediate", "33", "not a multiple of 8"}, {"tokens_per_rank", "-1", "out of range"},
      {"experts", "\"four\"", "not an integer"},     {"experts", "2.5", "not an integer"},
      {"experts", "5000", "out of range"},
  };
  for (const auto& c : kCases) {
    const std::string path = write("s.json", with(c.key, c.value));
    const auto parts = refusal([&] { load_shape(path); });
    EXPECT_EQ(parts.file, path);
    EXPECT_EQ(parts.place, std::string("/") + c.key);
    EXPECT_TRUE(contains(parts.problem, c.why)) << parts.problem;
    EXPECT_FALSE(parts.accepted.empty());
  }
}

TEST(Shape, RefusesMoreRowsThanSlotsCanCount) {
  Shape shape = test::small_shape(64, 1 << 20, 64, 32);
  EXPECT_TRUE(contains(refusal([&] { validate(shape, "f"); }).problem, "32-bit"));
}

}  // namespace
}  // namespace fusescope
