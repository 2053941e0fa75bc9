#pragma once
// Inside the layer library: the vectorised builder on a host system of Thrust. Each system has its
// own translation unit, because OpenMP is a compiler flag.

#include "layer/tables.hpp"

namespace fusescope {

ScheduleTables build_tables_thrust_cpp(const Shape& shape, const Routing& routing,
                                       SlotOrder slot_order, int rank);
ScheduleTables build_tables_thrust_omp(const Shape& shape, const Routing& routing,
                                       SlotOrder slot_order, int rank);

}  // namespace fusescope
