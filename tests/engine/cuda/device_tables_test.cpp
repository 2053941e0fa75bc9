// The tables that an iteration builds on the device equal the golden ones, element by element.
#include <array>

#include "engine/cuda/cuda_test_support.hpp"
#include "layer/table_checks.hpp"

namespace fusescope::engine::cuda::test {
namespace {

void expect_golden(LayerRunner& runner, const Problem& problem, SlotOrder order) {
  for (int r = 0; r < problem.shape.ranks; ++r) {
    const ScheduleTables found = runner.memory().read_tables(r);
    const ScheduleTables golden = build_tables_golden(problem.shape, problem.routing, order, r);
    const auto difference = compare_tables(golden, found);
    EXPECT_FALSE(difference.has_value()) << "rank " << r << ": " << to_string(*difference) << "\n"
                                         << describe(problem);
    EXPECT_FALSE(check_tables(found, problem.shape, problem.routing).has_value());
  }
}

TEST(DeviceTables, EqualGolden) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  int number = 0;
  for (const int experts : {4, 8, 60, 64, 256}) {
    for (const std::string& routing : matrix_routings()) {
      for (const SlotOrder order :
           {SlotOrder::by_token, SlotOrder::interleave_sources, SlotOrder::rotate_from_self}) {
        ++number;
        constexpr std::array kTopk = {1, 2, 3, 4, 6, 8, 10, 40};
        const int topk = std::min(experts, kTopk[static_cast<std::size_t>(number) % kTopk.size()]);
        const Shape shape = make_shape(2, 101 + number, 64, experts, topk, 64);
        const Problem problem =
            make_test_problem(shape, routing, static_cast<std::uint64_t>(number));
        LayerRunner runner(problem, devices, {.seed = 1, .deadline_ns = kTestDeadlineNs});
        Config config;
        config.slot_order = order;
        config.schedule = number % 4 == 0 ? ScheduleSite::host : ScheduleSite::device;
        runner.configure(config);
        runner.run_once();
        expect_golden(runner, problem, order);
      }
    }
  }
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
