// The projection's rules and row orders, without a GPU.
#include "engine/cuda/projection/problem.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"

namespace fusescope::engine::cuda::projection {
namespace {

using kernels::destination_of;
using kernels::remote_segment;
using kernels::segment_of;

TEST(RowOrders, SegmentsAreThePermutationOfDestinations) {
  for (const RowOrder order : {RowOrder::rotate_from_self, RowOrder::by_rank}) {
    for (int ranks = 1; ranks <= kernels::kMaxRanks; ++ranks) {
      for (int rank = 0; rank < ranks; ++rank) {
        std::set<int> segments;
        for (int destination = 0; destination < ranks; ++destination) {
          const int segment = segment_of(order, rank, ranks, destination);
          segments.insert(segment);
          EXPECT_EQ(destination_of(order, rank, ranks, segment), destination);
        }
        EXPECT_EQ(static_cast<int>(segments.size()), ranks);
        EXPECT_EQ(*segments.begin(), 0);
        EXPECT_EQ(*segments.rbegin(), ranks - 1);
      }
    }
  }
}

TEST(RowOrders, RemoteSegmentsLeaveOutTheRanksOwn) {
  for (const RowOrder order : {RowOrder::rotate_from_self, RowOrder::by_rank}) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (int rank = 0; rank < ranks; ++rank) {
        std::set<int> destinations;
        int before = -1;
        for (int i = 0; i < ranks - 1; ++i) {
          const int segment = remote_segment(order, rank, i);
          EXPECT_GT(segment, before);  // slot order
          before = segment;
          destinations.insert(destination_of(order, rank, ranks, segment));
        }
        EXPECT_EQ(static_cast<int>(destinations.size()), ranks - 1);
        EXPECT_FALSE(destinations.contains(rank));
      }
    }
  }
}

TEST(RowOrders, RotatedRanksStartWithDifferentReceiversAndEndWithThemselves) {
  constexpr int kRanks = 8;
  for (int segment = 0; segment < kRanks; ++segment) {
    std::set<int> receivers;
    for (int rank = 0; rank < kRanks; ++rank) {
      receivers.insert(destination_of(RowOrder::rotate_from_self, rank, kRanks, segment));
    }
    EXPECT_EQ(receivers.size(), 8u);
  }
  EXPECT_EQ(segment_of(RowOrder::rotate_from_self, 3, kRanks, 3), kRanks - 1);
}

const DeviceLimits kDevice = {"test", 132, 227 * 1024, true};

std::string why(const Shape& shape, const std::vector<std::string>& knobs) {
  Config config;
  for (const std::string& knob : knobs) {
    set_knob_text(config, knob, "--case");
  }
  return why_illegal(shape, config, kDevice);
}

TEST(ProjectionRules, TheDefaultRunsAtTheUsualSizes) {
  for (const int hidden : {2048, 4096, 7168}) {
    for (const int ranks : {1, 2, 4, 8}) {
      EXPECT_EQ(why({ranks, 1000, hidden, 4096}, {}), "");
      EXPECT_EQ(why({ranks, 1000, hidden, 4096}, {"form=serial"}), "");
    }
  }
}

TEST(ProjectionRules, SayWhatIsWrong) {
  const Shape shape;
  EXPECT_EQ(why(shape, {"push_sms=132"}), "push_sms 132 leaves no compute SM on a 132-SM device");
  EXPECT_EQ(why(shape, {"push_sms=0", "all_hands=false"}),
            "push_sms 0 without all_hands: nobody would push");
  EXPECT_EQ(why({1, 8, 4096, 4096}, {"push_sms=0", "all_hands=false"}), "");
  EXPECT_EQ(why(shape, {"pushers=0"}), "pushers 0: from 1 to the 384 threads of a block");
  EXPECT_EQ(why(shape, {"rows_per_push=129"}),
            "rows_per_push 129: from 1 to 128, or 0 for as many as fit");
  EXPECT_EQ(why(shape, {"watermark_chunks=65"}),
            "watermark_chunks 65: from 1 to the 64 flags that a plane has");
  EXPECT_EQ(why(shape, {"pushers=28"}),
            "28 pushers of 1 rows need 229600 bytes of shared memory at H=4096, and the GEMM "
            "leaves 229376");
  EXPECT_EQ(why({3, 8, 4096, 4096}, {}), "K=4096 does not divide into 3 ranks");
  EXPECT_EQ(why({17, 8, 4096, 17 * 64}, {}), "17 ranks: from 1 to 16");
  EXPECT_EQ(why({2, 0, 4096, 4096}, {}), "T=0 H=4096 K=4096: each must be 1 or more");
  EXPECT_NE(why({2, 8, 4100, 4096}, {}), "");
  EXPECT_NE(why({2, 8, 4096, 2 * 60}, {}), "");
}

TEST(ProjectionRules, PushesFillSharedMemory) {
  Config config;
  EXPECT_EQ(rows_of_push({2, 1024, 7168, 4096}, config), 1);
  EXPECT_EQ(rows_of_push({2, 1024, 4096, 4096}, config), 2);
  EXPECT_EQ(rows_of_push({2, 1024, 2048, 4096}, config), 4);
  EXPECT_EQ(rows_of_push({2, 1024, 512, 4096}, config), 8);
  config.pushers = 27;
  EXPECT_EQ(rows_of_push({2, 1024, 4096, 4096}, config), 1);
  config.rows_per_push = 3;
  EXPECT_EQ(rows_of_push({2, 1024, 4096, 4096}, config), 3);
}

TEST(ProjectionRules, WithoutWgmmaDefaultsRunToo) {
  const DeviceLimits workstation{"an sm_120", 110, 101376, true, false};
  const Shape shape{2, 1024, 4096, 4096};
  EXPECT_EQ(why_illegal(shape, {}, workstation), "");
  EXPECT_EQ(rows_of_push(shape, with_gemm_chosen({}, workstation)), 1);
  Config config;
  config.gemm = GemmPath::wgmma;
  EXPECT_NE(why_illegal(shape, config, workstation), "");
  config = {};
  config.gemm = GemmPath::mma;
  EXPECT_EQ(why_illegal(shape, config, kDevice), "");
  config.tile = TileShape::m128n256;
  EXPECT_NE(why_illegal(shape, config, kDevice), "");
}

TEST(ProjectionRules, TilesByRowStepsAreTheLayersAlone) {
  Config config;
  config.tile = TileShape::m160n256;
  EXPECT_EQ(why_illegal({2, 1024, 4096, 4096}, config, kDevice),
            "tile 160x256 is built for the layer's kernels alone (auto, m128n128 or m128n256)");
}

TEST(ProjectionKnobs, AreSetByNameAndDescribed) {
  Config config;
  EXPECT_EQ(describe(config), "");
  for (const char* text : {"form=serial", "row_order=by_rank", "push_sms=8", "pushers=3",
                           "rows_per_push=2", "all_hands=false", "watermark_chunks=4",
                           "tile=m128n128", "gemm=mma", "collectives=nccl", "graph=false"}) {
    set_knob_text(config, text, "--case");
  }
  EXPECT_EQ(describe(config),
            "form=serial row_order=by_rank push_sms=8 pushers=3 rows_per_push=2 all_hands=false "
            "watermark_chunks=4 tile=m128n128 gemm=mma collectives=nccl graph=false");
  EXPECT_EQ(knob_help().size(), 11u);
}

TEST(ProjectionKnobs, RefuseWhatTheyDoNotKnow) {
  Config config;
  const auto refusal = [&](const char* text) -> std::string {
    try {
      set_knob_text(config, text, "--case");
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal("push_sm=8"), "--case: there is no knob \"push_sm\"; accepted: push_sms");
  EXPECT_EQ(refusal("push_sms=many"), "--case: push_sms: \"many\"; accepted: a number");
  EXPECT_EQ(refusal("push_sms=8x"), "--case: push_sms: \"8x\"; accepted: a number");
  EXPECT_EQ(refusal("graph=on"), "--case: graph: \"on\"; accepted: true or false");
  EXPECT_EQ(refusal("fused"),
            "--case: \"fused\" is not an assignment; accepted: KNOB=VALUE, such as push_sms=8");
  EXPECT_EQ(config, Config{});
}

}  // namespace
}  // namespace fusescope::engine::cuda::projection
