#include "layer/check.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "layer/dataflow.hpp"
#include "layer/reference.hpp"
#include "layer/table_checks.hpp"

namespace fusescope {
namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

std::string name_of(SlotOrder slot_order) {
  Config config;
  config.slot_order = slot_order;
  return knob_text(config, "slot_order");
}

// "" or the first disagreement or broken invariant, with the builder that it was found in.
std::string fault_of_tables(const Problem& problem, SlotOrder slot_order, int rank,
                            const ScheduleTables& golden) {
  if (const auto fault = check_tables(golden, problem.shape, problem.routing)) {
    return fmt::format("rank {}, golden: {}", rank, to_string(*fault));
  }
  for (const ThrustSystem system : {ThrustSystem::cpp, ThrustSystem::omp}) {
    const ScheduleTables found =
        build_tables_thrust(problem.shape, problem.routing, slot_order, rank, system);
    if (const auto fault = compare_tables(golden, found)) {
      return fmt::format("rank {}, Thrust {} against golden: {}", rank,
                         system == ThrustSystem::cpp ? "C++" : "OpenMP", to_string(*fault));
    }
  }
  return "";
}

CheckResult check_all_tables(const Problem& problem, SlotOrder slot_order,
                             std::vector<ScheduleTables>& tables) {
  const Stopwatch stopwatch;
  CheckResult result{"tables, slot_order " + name_of(slot_order), true, "", 0};
  for (int rank = 0; rank < problem.shape.ranks; ++rank) {
    tables.push_back(build_tables_golden(problem.shape, problem.routing, slot_order, rank));
    if (result.passed) {
      result.detail = fault_of_tables(problem, slot_order, rank, tables.back());
      result.passed = result.detail.empty();
    }
  }
  if (result.passed) {
    result.detail = fmt::format(
        "golden = Thrust C++ = Thrust OpenMP on {} ranks, invariants hold: {} rows in {} row "
        "blocks for {} hits",
        problem.shape.ranks, tables.front().rows(), tables.front().row_blocks(),
        problem.shape.hits());
  }
  result.seconds = stopwatch.seconds();
  return result;
}

CheckResult check_one_dataflow(const Problem& problem, const Config& config,
                               const std::vector<ScheduleTables>& tables,
                               const std::vector<double>& reference, DataflowSize size) {
  const Stopwatch stopwatch;
  const DataflowResult flow = check_dataflow(problem, config, tables, reference, size);
  CheckResult result{"dataflow, slot_order " + name_of(config.slot_order), flow.passed(),
                     flow.fault, 0};
  if (flow.passed()) {
    result.detail = fmt::format(
        "fp32 against the naive layer: relative error {:.1e} (largest) {:.1e} (Frobenius), with {} "
        "of H={} and {} of I={} columns",
        flow.max_error, flow.frobenius_error, size.hidden, problem.shape.hidden, size.intermediate,
        problem.shape.intermediate);
  }
  result.seconds = stopwatch.seconds();
  return result;
}

}  // namespace

std::vector<CheckResult> check_layer(const Problem& problem, const Config& config) {
  constexpr SlotOrder kOrders[] = {SlotOrder::by_token, SlotOrder::interleave_sources,
                                   SlotOrder::rotate_from_self};
  std::vector<CheckResult> results;
  std::vector<std::vector<ScheduleTables>> tables(std::size(kOrders));
  for (std::size_t i = 0; i < std::size(kOrders); ++i) {
    results.push_back(check_all_tables(problem, kOrders[i], tables[i]));
  }

  DataflowSize size;
  size.hidden = std::min(size.hidden, problem.shape.hidden);
  size.intermediate = std::min(size.intermediate, problem.shape.intermediate);
  const Stopwatch stopwatch;
  const std::vector<double> reference = reference_layer(problem, dataflow_values(problem, size));
  const double reference_seconds = stopwatch.seconds();
  for (std::size_t i = 0; i < std::size(kOrders); ++i) {
    Config ordered = config;
    ordered.slot_order = kOrders[i];
    results.push_back(check_one_dataflow(problem, ordered, tables[i], reference, size));
  }
  results[std::size(kOrders)].seconds += reference_seconds;  // shared; counted once
  return results;
}

}  // namespace fusescope
