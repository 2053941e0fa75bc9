#pragma once
// The invariants of schedule tables, checked on any table from any builder.

#include <optional>
#include <string>

#include "layer/tables.hpp"

namespace fusescope {

struct TableFault {
  std::string table;  // "slots", "slack", ...
  long long index = -1;
  std::string expected;
  std::string found;
};
std::string to_string(const TableFault& fault);

// The first broken invariant, or nothing: slots are a bijection onto the non-padding rows; expert ranges
// tile the buffer in multiples of 128; arrivals + slack = 128 for every block; every slot's token is that
// of its hit, and all padding names one token; each order is a permutation
// sorted by its key.
std::optional<TableFault> check_tables(const ScheduleTables& tables, const Shape& shape,
                                       const Routing& routing);

// The first element in which two tables differ, or nothing.
std::optional<TableFault> compare_tables(const ScheduleTables& expected,
                                         const ScheduleTables& found);

}  // namespace fusescope
