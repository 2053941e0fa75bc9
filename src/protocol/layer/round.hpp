#pragma once
// One iteration's data: a routing, the real schedule tables that it gives on each rank, and the values that
// rows must hold. Values are integers, and sums wrap: equal or not, never nearly.

#include <cstdint>
#include <vector>

#include "layer/routing.hpp"
#include "layer/tables.hpp"
#include "protocol/bugs.hpp"
#include "protocol/scenario.hpp"

namespace fusescope::protocol {

struct Round {
  std::int32_t stamp = 0;  // of every row that belongs to this iteration
  Routing routing;
  std::vector<ScheduleTables> tables;  // by rank
  std::vector<std::uint64_t> outputs;  // [token]

  std::uint64_t input(int token) const;
  // What stands for the weights of (expert, n tile, k step) of GEMM `which` on a rank.
  static std::uint64_t weights(int which, int rank, int expert, int n_tile, int k_step);
  static std::uint64_t multiply(std::uint64_t row, std::uint64_t weights);
  static std::uint64_t activate(std::uint64_t value);
  // What column `column` of a job's row adds for a hit, from the hit's partial row in that column's N tile.
  static std::uint64_t weighted(std::uint64_t partial, std::uint64_t weight, int column) {
    return partial * weight * static_cast<std::uint64_t>(column + 1);
  }
  std::uint64_t hit_weight(int token, int k) const {
    return static_cast<std::uint64_t>(
        routing.weights[static_cast<std::size_t>(token) * routing.topk + k]);
  }
  int slot(int rank, int token, int k) const {
    return tables[rank].slots[static_cast<std::size_t>(token) * routing.topk + k];
  }
};

// The rounds of a scenario, each with a routing of its own, and one more for the launch after a fault.
std::vector<Round> make_rounds(const Scenario& scenario, Bug bug);

}  // namespace fusescope::protocol
