// The vectorised tables on Thrust's C++ (sequential) system.
#include <thrust/system/cpp/execution_policy.h>

#include "layer/tables_thrust_on_host.hpp"

namespace fusescope {

ScheduleTables build_tables_thrust_cpp(const Shape& shape, const Routing& routing,
                                       SlotOrder slot_order, int rank) {
  return tables_thrust::build_on_host(thrust::cpp::par, shape, routing, slot_order, rank);
}

}  // namespace fusescope
