#include "sweep/strategy.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

const DeviceLimits kDevice{"test", 110, 101376};

std::vector<Config> all(Strategy& strategy) {
  std::vector<Config> configs;
  while (std::optional<Proposal> proposal = strategy.next()) {
    configs.push_back(proposal->config);
  }
  return configs;
}

std::set<std::uint64_t> hashes(const std::vector<Config>& configs) {
  std::set<std::uint64_t> found;
  for (const Config& config : configs) {
    found.insert(hash(config));
  }
  return found;
}

TEST(Grid, EnumeratesTheSpaceInOrder) {
  const SweepConfig sweep = test::small_sweep();
  const SearchSpace space(sweep, kDevice);
  EXPECT_EQ(space.size(), 24);
  const std::vector<Config> configs = all(*make_grid(space));
  ASSERT_EQ(configs.size(), 24u);
  EXPECT_EQ(hashes(configs).size(), 24u);
  EXPECT_EQ(describe(configs[0], sweep.base), "dispatch_comm_sms=8 tokens_per_block=4");
  EXPECT_EQ(describe(configs[1], sweep.base),
            "dispatch_comm_sms=8 tokens_per_block=4 all_hands=false");
  EXPECT_EQ(describe(configs[2], sweep.base), "dispatch_comm_sms=8 tokens_per_block=8");
  EXPECT_EQ(describe(configs[23], sweep.base), "dispatch_comm_sms=32 all_hands=false");
}

TEST(Grid, LeavesOutWhatConstraintsExclude) {
  Json document = test::small_sweep_document();
  document["constraints"] = {"dispatch_comm_sms <= 16", "all_hands or tokens_per_block > 4"};
  const SweepConfig sweep = parse_sweep_config(document, "f");
  const SearchSpace space(sweep, kDevice);
  const std::vector<Config> configs = all(*make_grid(space));
  EXPECT_EQ(configs.size(), 10u);
  for (const Config& config : configs) {
    EXPECT_LE(config.dispatch_comm_sms, 16);
    EXPECT_TRUE(config.all_hands || config.tokens_per_block > 4);
  }
  const ConstraintCount count = count_constraints(space, sweep, kDevice);
  EXPECT_EQ(count.allowed, 10);
  EXPECT_EQ(count.excluded, (std::vector<long long>{12, 4}));
}

// Two knobs that a constraint ties are turned together; what a third would have to repair is no neighbour.
TEST(Neighbours, TurnASecondKnobWhereAConstraintForbidsTheFirstAlone) {
  Json document = test::small_sweep_document();
  document["axes"] = {{"combine", {"dispenser", "block_per_job"}},
                      {"all_hands", {true, false}},
                      {"tokens_per_block", {4, 8, 12}}};
  document["constraints"] = {"combine == 'dispenser' or not all_hands"};
  const SweepConfig sweep = parse_sweep_config(document, "f");
  const SearchSpace space(sweep, kDevice);
  std::set<std::string> near;
  for (const long long index : space.neighbours(0)) {
    const Config config = space.at(index);
    EXPECT_TRUE(space.allowed(config));
    near.insert(describe(config, space.at(0)));
  }
  EXPECT_EQ(near, (std::set<std::string>{"all_hands=false", "tokens_per_block=8",
                                         "combine=block_per_job all_hands=false"}));
}

TEST(Random, DrawsEachConfigOnceAndRepeatsItself) {
  const SweepConfig sweep = test::small_sweep();
  const SearchSpace space(sweep, kDevice);
  const std::vector<Config> first = all(*make_random(space, 3));
  EXPECT_EQ(hashes(first), hashes(all(*make_grid(space))));
  EXPECT_EQ(first.size(), 24u);
  EXPECT_EQ(first, all(*make_random(space, 3)));
  EXPECT_NE(first, all(*make_random(space, 4)));
  EXPECT_NE(first, all(*make_grid(space)));
}

TEST(Random, FavoursNoConfig) {
  const SweepConfig sweep = test::small_sweep();
  const SearchSpace space(sweep, kDevice);
  std::map<std::uint64_t, int> first_drawn;
  constexpr int kSeeds = 4800;
  for (int seed = 0; seed < kSeeds; ++seed) {
    ++first_drawn[hash(make_random(space, static_cast<std::uint64_t>(seed))->next()->config)];
  }
  EXPECT_EQ(first_drawn.size(), 24u);
  for (const auto& [config, count] : first_drawn) {
    EXPECT_NEAR(count, kSeeds / 24, 70);  // five standard deviations
  }
}

}  // namespace
}  // namespace fusescope::sweep
