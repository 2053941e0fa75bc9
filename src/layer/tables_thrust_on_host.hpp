#pragma once
// The body that the two host translation units share: vectors around tables_thrust::build.

#include <thrust/sort.h>

#include <vector>

#include "layer/tables_thrust.hpp"
#include "layer/tables_thrust_host.hpp"

namespace fusescope::tables_thrust {

template <typename Policy>
ScheduleTables build_on_host(const Policy& policy, const Shape& shape, const Routing& routing,
                             SlotOrder slot_order, int rank) {
  const TableSizes sizes(shape);
  ScheduleTables tables;
  tables.expert_rows.resize(sizes.experts + 1);
  tables.slots.resize(sizes.hits());
  tables.pull_order.resize(sizes.tokens());
  tables.job_order.resize(sizes.tokens());
  tables.slack.resize(sizes.max_row_blocks());
  tables.token_of_slot.resize(sizes.max_rows());

  Arrays measured{sizes, slot_order, rank, nullptr, {}, nullptr, nullptr, nullptr, nullptr};
  std::vector<std::uint64_t> workspace(carve(measured, nullptr) / sizeof(std::uint64_t));
  const TablePointers out{tables.expert_rows.data(),
                          tables.slots.data(),
                          tables.pull_order.data(),
                          tables.job_order.data(),
                          tables.slack.data(),
                          tables.token_of_slot.data(),
                          nullptr};
  build(policy, sizes, routing.experts.data(), slot_order, rank, out, workspace.data(),
        [&](Arrays& a) {
          thrust::stable_sort_by_key(policy, a.key, a.key + sizes.hits(), a.sorted);
        });
  tables.slack.resize(tables.rows() / kRowBlock);
  tables.token_of_slot.resize(tables.rows());
  return tables;
}

}  // namespace fusescope::tables_thrust
