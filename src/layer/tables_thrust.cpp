#include "layer/tables_thrust_host.hpp"

namespace fusescope {

ScheduleTables build_tables_thrust(const Shape& shape, const Routing& routing, SlotOrder slot_order,
                                   int rank, ThrustSystem system) {
  return system == ThrustSystem::omp ? build_tables_thrust_omp(shape, routing, slot_order, rank)
                                     : build_tables_thrust_cpp(shape, routing, slot_order, rank);
}

}  // namespace fusescope
