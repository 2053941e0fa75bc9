// The vectorised tables on Thrust's OpenMP system.
#include <omp.h>
#include <thrust/system/omp/execution_policy.h>

#include <algorithm>

#include "layer/tables_thrust_on_host.hpp"

namespace fusescope {
namespace {

// A few threads are plenty for tables of this size. Where there are few cores, one more than there are:
// then libgomp's threads sleep at a barrier instead of spinning (its manual: GOMP_SPINCOUNT), and a busy
// machine does not make a microsecond's wait a time slice's.
class ThreadCount {
 public:
  ThreadCount() : before_(omp_get_max_threads()) {
    constexpr int kMost = 4;
    omp_set_num_threads(std::min(omp_get_num_procs() + 1, kMost));
  }
  ~ThreadCount() { omp_set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

}  // namespace

ScheduleTables build_tables_thrust_omp(const Shape& shape, const Routing& routing,
                                       SlotOrder slot_order, int rank) {
  const ThreadCount threads;
  return tables_thrust::build_on_host(thrust::omp::par, shape, routing, slot_order, rank);
}

}  // namespace fusescope
