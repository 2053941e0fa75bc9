// Routing files, whatever their form.
#include "base/error.hpp"
#include "layer/routing_source.hpp"

namespace fusescope {

RecordedRouting read_recorded_routing(const RoutingSpec& spec) {
  throw InputError(
      {spec.path, "", "routing files cannot be read by this build", "generated routing"});
}

}  // namespace fusescope
