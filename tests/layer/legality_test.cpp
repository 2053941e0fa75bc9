// Every legality rule, with the numbers that its sentence must hold.
#include "layer_test_support.hpp"

namespace fusescope {
namespace {

const DeviceLimits kDevice{"a device", 132, 227 * 1024};

std::string why(const std::function<void(Config&)>& change) {
  const Problem problem{load_shape("seed-tp4"), {}, {}};
  Config config;
  change(config);
  return why_illegal(problem, config, kDevice);
}

void expect_all(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_TRUE(test::contains(text, part)) << "\"" << text << "\" lacks \"" << part << "\"";
  }
}

TEST(Legality, TheDefaultsAreLegal) {
  EXPECT_EQ(why([](Config&) {}), "");
}

TEST(Legality, DispatchSplit) {
  EXPECT_EQ(why([](Config& c) { c.dispatch_comm_sms = 140; }),
            "dispatch_comm_sms 140 leaves no compute SM on a 132-SM device");
  EXPECT_NE(why([](Config& c) { c.dispatch_comm_sms = 132; }), "");
  EXPECT_EQ(why([](Config& c) { c.dispatch_comm_sms = 131; }), "");
  expect_all(why([](Config& c) { c.dispatch_comm_sms = 0; }), {"dispatch_comm_sms 0", "no SM"});
}

TEST(Legality, CombineSplit) {
  expect_all(why([](Config& c) { c.combine_comm_sms = 132; }), {"combine_comm_sms 132", "132-SM"});
  EXPECT_EQ(why([](Config& c) { c.combine_comm_sms = 0; }), "");  // all hands take the jobs
  expect_all(why([](Config& c) {
               c.combine_comm_sms = 0;
               c.all_hands = false;
             }),
             {"combine_comm_sms 0", "no SM to run combine jobs"});
  expect_all(why([](Config& c) { c.combine_comm_sms = -1; }), {"-1"});
}

TEST(Legality, ProgrammaticLaunchesHaveNothingBetweenTheKernels) {
  const auto programmatic = [](Config& c) {
    c.launch = LaunchOrder::programmatic;
    c.activation = Activation::fused;
  };
  EXPECT_EQ(why(programmatic), "");
  expect_all(why([&](Config& c) {
               programmatic(c);
               c.activation = Activation::separate;
             }),
             {"launch programmatic", "activation is separate", "set activation to fused"});
  expect_all(why([&](Config& c) {
               programmatic(c);
               c.combine = Combine::block_per_job;
               c.all_hands = false;
             }),
             {"launch programmatic", "block_per_job", "set combine to dispenser"});
  EXPECT_EQ(why([](Config& c) {
              c.form = LayerForm::serial;
              c.launch = LaunchOrder::programmatic;
            }),
            "");
}

TEST(Legality, AllHandsNeedsTheDispenser) {
  expect_all(why([](Config& c) { c.combine = Combine::block_per_job; }),
             {"all_hands true", "block_per_job"});
  EXPECT_EQ(why([](Config& c) {
              c.combine = Combine::block_per_job;
              c.all_hands = false;
            }),
            "");
  expect_all(why([](Config& c) {
               c.combine = Combine::block_per_job;
               c.all_hands = false;
               c.combine_comm_sms = 0;
             }),
             {"combine_comm_sms 0"});
}

TEST(Legality, TokenSlotsFitSharedMemory) {
  // 8192 bytes of row + 8 of barrier per slot: 28 fit 232448.
  EXPECT_EQ(why([](Config& c) { c.tokens_per_block = 28; }), "");
  expect_all(why([](Config& c) { c.tokens_per_block = 29; }),
             {"tokens_per_block 29", "237800", "8200", "H=4096", "232448", "at most 28"});
  expect_all(why([](Config& c) { c.tokens_per_block = 0; }), {"tokens_per_block 0"});
}

TEST(Legality, TokensAreFetchedBesideTilesThatLeaveRoom) {
  DeviceLimits device = kDevice;
  device.fetches_first = true;
  const auto refusal = [&](const std::function<void(Config&)>& change) {
    Config config;
    config.dispatch_comm_sms = 0;
    config.dispatch_head = 50;
    config.activation = Activation::fused;
    config.tile = TileShape::m160n256;
    change(config);
    return why_illegal({load_shape("seed-tp4"), {}, {}}, config, device);
  };
  for (const int head : {0, 1, 99, 100}) {
    EXPECT_EQ(refusal([=](Config& c) { c.dispatch_head = head; }), "") << head;
  }
  EXPECT_EQ(refusal([](Config& c) { c.tile = TileShape::m288n128; }), "");
  EXPECT_EQ(refusal([](Config& c) { c.dispatch_head = 101; }),
            "dispatch_head 101 is not a percentage: from 0 to 100");
  EXPECT_EQ(refusal([](Config& c) { c.dispatch_head = -1; }),
            "dispatch_head -1 is not a percentage: from 0 to 100");
  expect_all(refusal([](Config& c) { c.dispatch_comm_sms = 16; }),
             {"dispatch_head 50", "dispatch_comm_sms 16", "set dispatch_head to 100"});
  for (const TileShape tile : {TileShape::automatic, TileShape::m128n128, TileShape::m128n256}) {
    expect_all(refusal([=](Config& c) { c.tile = tile; }),
               {"dispatch_head 50", "160x256 and 288x128", "dispatch_head to 100"});
  }
  expect_all(refusal([](Config& c) { c.activation = Activation::separate; }),
             {"dispatch_head 50", "activation fused", "dispatch_head to 100"});
  for (const Dispatch dispatch : {Dispatch::gather, Dispatch::push}) {
    expect_all(refusal([=](Config& c) { c.dispatch = dispatch; }),
               {"dispatch_head 50", "dispatch to scatter", "dispatch_head to 100"});
  }
  EXPECT_EQ(refusal([](Config& c) { c.form = LayerForm::serial; }), "");
}

TEST(Legality, TokensArePushedByThePrologueToOtherRanks) {
  const auto refusal = [](auto change, const char* shape = "seed-tp4") {
    Config config;
    config.dispatch = Dispatch::push;
    config.schedule = ScheduleSite::fused;
    change(config);
    DeviceLimits device = kDevice;
    device.wgmma = true;
    return why_illegal({load_shape(shape), {}, {}}, config, device);
  };
  EXPECT_EQ(refusal([](Config&) {}), "");
  expect_all(refusal([](Config&) {}, "seed-tp1"),
             {"dispatch push", "one rank", "set dispatch to gather"});
  for (const ScheduleSite site : {ScheduleSite::device, ScheduleSite::host}) {
    expect_all(refusal([=](Config& c) { c.schedule = site; }),
               {"dispatch push", "set schedule to fused", "dispatch to gather"});
  }
  expect_all(refusal([](Config& c) { c.link_gbps = 50; }),
             {"dispatch push", "link_gbps 50", "set link_gbps to 0"});
  expect_all(refusal([](Config& c) {
               c.inject = {InjectPoint::scatter, 1000, -1, -1};
             }),
             {"inject delays kernel 1's stores", "dispatch push", "dispatch to scatter"});
  EXPECT_EQ(refusal([](Config& c) { c.form = LayerForm::serial; }, "seed-tp1"), "");
}

TEST(Legality, RowsAreGatheredForTilesThatAreBuiltForIt) {
  DeviceLimits device = kDevice;
  device.wgmma = true;
  const auto refusal = [&](TileShape tile, Activation activation) {
    Config config;
    config.dispatch = Dispatch::gather;
    config.tile = tile;
    config.activation = activation;
    return why_illegal({load_shape("seed-tp4"), {}, {}}, config, device);
  };
  EXPECT_EQ(refusal(TileShape::automatic, Activation::separate), "");
  EXPECT_EQ(refusal(TileShape::m128n256, Activation::fused), "");
  EXPECT_EQ(refusal(TileShape::m160n256, Activation::fused), "");
  expect_all(refusal(TileShape::m160n256, Activation::separate),
             {"dispatch gather", "tile is 160x256", "set dispatch to scatter"});
  expect_all(refusal(TileShape::m288n128, Activation::fused),
             {"dispatch gather", "tile is 288x128", "set dispatch to scatter"});
}

TEST(Legality, WatermarkChunks) {
  EXPECT_EQ(why([](Config& c) { c.watermark_chunks = 512; }), "");
  expect_all(why([](Config& c) { c.watermark_chunks = 513; }),
             {"watermark_chunks 513", "1 to 512"});
  expect_all(why([](Config& c) { c.watermark_chunks = 0; }), {"watermark_chunks 0"});
}

TEST(Legality, LinkCap) {
  EXPECT_EQ(why([](Config& c) { c.link_gbps = 25.5; }), "");
  expect_all(why([](Config& c) { c.link_gbps = -1; }), {"link_gbps -1"});
  EXPECT_EQ(why([](Config& c) { c.link_gbps = 0.001; }), "");
  expect_all(why([](Config& c) { c.link_gbps = 1e-4; }), {"link_gbps 0.0001", "0.001 or more"});
}

TEST(Legality, InjectionPointsExist) {
  const auto inject = [](InjectPoint point, int rank, int token, int delay = 100) {
    return why([=](Config& c) { c.inject = {point, delay, rank, token}; });
  };
  EXPECT_EQ(inject(InjectPoint::pull, -1, -1), "");
  EXPECT_EQ(inject(InjectPoint::source_rank, 3, -1), "");
  expect_all(inject(InjectPoint::source_rank, 4, -1), {"source rank 4", "0 to 3"});
  EXPECT_EQ(inject(InjectPoint::token, -1, 2047), "");
  expect_all(inject(InjectPoint::token, -1, 2048), {"token 2048", "0 to 2047"});
  expect_all(inject(InjectPoint::job, -1, -1, -5), {"-5 ns"});
  const auto expert = [](int id) {
    return why([=](Config& c) { c.inject = {InjectPoint::expert, 100, -1, -1, id}; });
  };
  EXPECT_EQ(expert(63), "");
  expect_all(expert(64), {"expert 64", "0 to 63"});
}

TEST(Legality, DelaysThatNothingRunsThroughAreRefused) {
  const auto inject = [](InjectPoint point, LayerForm form, Study study) {
    return why([=](Config& c) {
      c.form = form;
      c.study = study;
      c.inject = {point, 100, -1, -1};
    });
  };
  for (const InjectPoint point : {InjectPoint::pull, InjectPoint::scatter, InjectPoint::job,
                                  InjectPoint::push, InjectPoint::watermark}) {
    expect_all(inject(point, LayerForm::serial, Study::full), {"form is serial"});
    expect_all(inject(point, LayerForm::fused, Study::compute_all), {"computes only"});
    expect_all(inject(point, LayerForm::fused, Study::compute_split), {"computes only"});
    EXPECT_EQ(inject(point, LayerForm::fused, Study::ideal_order), "");
  }
  EXPECT_EQ(inject(InjectPoint::none, LayerForm::serial, Study::full), "");
  EXPECT_EQ(inject(InjectPoint::none, LayerForm::fused, Study::compute_all), "");
}

TEST(Legality, TheSerialLayerIgnoresTheFusedKnobs) {
  EXPECT_EQ(why([](Config& c) {
              c.form = LayerForm::serial;
              c.dispatch_comm_sms = 500;
              c.tokens_per_block = 500;
              c.watermark_chunks = 0;
              c.combine = Combine::block_per_job;
            }),
            "");
  EXPECT_EQ(why([](Config& c) {
              c.study = Study::compute_all;
              c.dispatch_comm_sms = 0;
            }),
            "");
  EXPECT_NE(why([](Config& c) {
              c.form = LayerForm::serial;
              c.link_gbps = -1;
            }),
            "");
}

}  // namespace
}  // namespace fusescope
