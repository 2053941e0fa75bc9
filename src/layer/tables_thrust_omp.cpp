// The vectorised tables on Thrust's OpenMP system.
#include <thrust/system/omp/execution_policy.h>

#include "layer/tables_thrust_on_host.hpp"

namespace fusescope {

ScheduleTables build_tables_thrust_omp(const Shape& shape, const Routing& routing,
                                       SlotOrder slot_order, int rank) {
  return tables_thrust::build_on_host(thrust::omp::par, shape, routing, slot_order, rank);
}

}  // namespace fusescope
