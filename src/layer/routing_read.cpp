// Routing files, whatever their form: told apart by content, not by name.
#include "base/error.hpp"
#include "base/file_bytes.hpp"
#include "layer/npy.hpp"
#include "layer/routing_source.hpp"

namespace fusescope {

std::string RecordedRouting::place(int token) const {
  if (places.empty()) {
    return "row " + std::to_string(token);
  }
  const Place& place = places[token];
  return "line " + std::to_string(place.line) +
         (place.index < 0 ? "" : " token " + std::to_string(place.index));
}

RecordedRouting read_recorded_routing(const RoutingSpec& spec) {
  const std::string bytes = read_file_bytes(spec.path);
  if (bytes.empty()) {
    throw InputError(
        {spec.path, "", "is empty", "a .npy file or JSON lines with the experts of each token"});
  }
  if (is_npy(bytes)) {
    return read_npy_routing(spec, bytes);
  }
  if (!spec.weights_path.empty()) {
    throw InputError({spec.path, "", "is not a .npy file, and weights= belongs to one",
                      "JSON lines carry their weights themselves"});
  }
  return read_jsonl_routing(spec, bytes);
}

}  // namespace fusescope
