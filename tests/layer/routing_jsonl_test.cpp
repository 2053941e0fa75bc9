#include "layer_test_support.hpp"

namespace fusescope {
namespace {

using test::contains;
using test::refusal;

class JsonlRouting : public test::FolderTest {
 protected:
  static Shape shape() { return test::small_shape(2, 2, 8, 2); }  // 4 tokens, top-2

  Routing read(const std::string& text, const std::string& options = "") const {
    return make_routing(parse_routing("file:" + write("r.jsonl", text) + options), shape());
  }
  InputError::Parts refused(const std::string& text, const std::string& options = "") const {
    return refusal([&] { read(text, options); });
  }
};

std::string trace(int layer, const std::string& rows, int tokens,
                  const std::string& stage = "pre_dispatch") {
  return R"({"step":0,"stage":")" + stage + R"(","block":"decoder","layer":)" +
         std::to_string(layer) + R"(,"rank":0,"num_tokens":)" + std::to_string(tokens) +
         R"(,"topk":2,"top_indices":)" + rows + "}\n";
}

std::string token(int layer, const std::string& ids, const std::string& weights = "[0.75, 0.25]") {
  return R"({"type": "route", "req_id": "r1", "token_idx": 0, "layer": )" + std::to_string(layer) +
         R"(, "topk_ids": )" + ids + R"(, "topk_weights": )" + weights + "}\n";
}

const char* const kMeta = "{\"type\": \"meta\", \"model_id\": \"m\", \"top_k\": 2}\n";

TEST_F(JsonlRouting, ConcatenatesARouterTracesRecordsOfTheLayer) {
  const Routing routing = read(trace(0, "[[7,6],[5,4]]", 2) + trace(3, "[[0,1],[2,3]]", 2) + "\n" +
                                   trace(3, "[[4,5]]", 1) + trace(3, "[[6,7]]", 1),
                               "#layer=3");
  EXPECT_EQ(routing.experts, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(contains(routing.description, "router trace, layer 3; 4 tokens"))
      << routing.description;
}

TEST_F(JsonlRouting, TakesEachTokenOfATraceOnce) {
  const Routing routing =
      read(trace(0, "[[0,1],[2,3]]", 2) + trace(0, "[[0,1],[2,3]]", 2, "post_dispatch") +
           trace(0, "[[4,5],[6,7]]", 2));
  EXPECT_EQ(routing.experts, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(contains(routing.description, "1 records of other stages")) << routing.description;
}

TEST_F(JsonlRouting, ReadsPerTokenRecordsWithTheirWeights) {
  const Routing routing =
      read(kMeta + token(0, "[0, 1]") + token(1, "[7, 6]") + token(0, "[2, 3]", "[0.5, 0.125]"));
  EXPECT_EQ(routing.experts, (std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(routing.weights,
            (std::vector<float>{0.75f, 0.25f, 0.5f, 0.125f, 0.75f, 0.25f, 0.5f, 0.125f}));
  EXPECT_TRUE(contains(routing.description, "tiled 2.00 times")) << routing.description;
}

TEST_F(JsonlRouting, AcceptsTheLastLineWithoutItsNewline) {
  std::string text = token(0, "[0, 1]");
  text.pop_back();
  EXPECT_EQ(read(text).experts[1], 1);
}

TEST_F(JsonlRouting, NamesTheLineOfBadIds) {
  const auto beyond = refused(kMeta + token(0, "[0, 1]") + token(0, "[0, 8]"));
  EXPECT_TRUE(contains(beyond.file, "r.jsonl"));
  EXPECT_EQ(beyond.place, "line 3");
  EXPECT_TRUE(contains(beyond.problem, "id 8"));
  EXPECT_EQ(refused(trace(0, "[[0,1],[2,2]]", 2)).place, "line 1 token 1");
  EXPECT_TRUE(contains(refused(token(0, "[0, -1]")).problem, "id -1"));
  EXPECT_EQ(refused(token(0, "[0, 1.5]")).place, "line 1 /topk_ids/1");
  EXPECT_TRUE(contains(refused(token(0, "[0, 1]") + token(0, "[0]")).problem, "1 ids"));
  EXPECT_TRUE(contains(refused(token(0, "[0, 1, 2]", "[1, 1, 1]")).problem, "top-3"));
  EXPECT_TRUE(contains(refused(token(0, "[]")).problem, "0 ids"));
  EXPECT_TRUE(contains(refused(token(0, "[0, 99999999999]")).problem, "99999999999"));
}

TEST_F(JsonlRouting, NamesTheLineOfBadWeights) {
  const auto negative = refused(token(0, "[0, 1]") + token(0, "[0, 1]", "[0.5, -0.5]"));
  EXPECT_EQ(negative.place, "line 2 /topk_weights/1");
  EXPECT_TRUE(contains(negative.problem, "-0.5"));
  const auto nan = refused(token(0, "[0, 1]") + token(0, "[0, 1]", "[0.5, NaN]"));
  EXPECT_EQ(nan.place, "line 2");
  EXPECT_TRUE(contains(nan.problem, "NaN"));
  EXPECT_TRUE(contains(refused(token(0, "[0, 1]", "[Infinity, 1]")).problem, "Infinity"));
  EXPECT_TRUE(contains(refused(token(0, "[0, 1]", "[1e300, 1]")).problem, "out of range"));
  EXPECT_TRUE(contains(refused(token(0, "[0, 1]", "[1]")).problem, "1 weights for 2 ids"));
  const std::string bare = "{\"layer\": 0, \"topk_ids\": [0, 1]}\n";
  EXPECT_TRUE(contains(refused(token(0, "[0, 1]") + bare).problem, "no \"topk_weights\""));
  EXPECT_TRUE(contains(refused(bare + token(0, "[0, 1]")).problem, "has weights"));
}

TEST_F(JsonlRouting, RefusesWhatIsNoRouting) {
  const auto cut = refused(token(0, "[0, 1]") + token(0, "[2, 3]").substr(0, 40));
  EXPECT_EQ(cut.place, "line 2");
  EXPECT_TRUE(contains(cut.problem, "not valid JSON"));
  EXPECT_TRUE(contains(refused("tokens\n").problem, "not valid JSON"));
  EXPECT_TRUE(contains(refused("[1, 2]\n").problem, "not a JSON object"));
  EXPECT_TRUE(contains(refused("{\"a\": 1}\n").accepted, "top_indices"));
  EXPECT_TRUE(contains(refused(kMeta).problem, "no routing record"));
  EXPECT_TRUE(contains(refused("\n\n").problem, "no routing record"));
  EXPECT_TRUE(contains(refused(token(2, "[0, 1]") + token(5, "[0, 1]")).accepted, "layer=2, 5"));
  EXPECT_EQ(refused(trace(0, "[[0,1],[2,3]]", 3)).place, "line 1 /num_tokens");
  EXPECT_EQ(refused(trace(0, "[[0,1,2],[2,3,4]]", 2)).place, "line 1 /topk");
  EXPECT_TRUE(contains(refused(token(0, "[0, 1]") + trace(0, "[[0,1]]", 1)).problem, "other form"));
  EXPECT_TRUE(contains(refused(token(0, "[0, 1]"), "#weights=w.npy").problem, "weights="));
}

}  // namespace
}  // namespace fusescope
