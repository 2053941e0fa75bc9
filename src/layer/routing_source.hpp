#pragma once
// Inside the layer library: where routing comes from. Generators fill a whole table; files are read
// as they are and cut or tiled afterwards.

#include <cstdint>
#include <string>
#include <vector>

#include "layer/routing.hpp"

namespace fusescope {

// balanced, uniform, zipf, hot.
Routing generate_routing(const RoutingSpec& spec, const Shape& shape);

// What a file holds of the chosen layer, in the file's order. Ids may still be out of range.
struct RecordedRouting {
  int topk = 0;
  std::vector<std::int32_t> experts;  // [tokens, topk]
  std::vector<float> weights;         // [tokens, topk], or empty: the file has none
  std::vector<std::string> places;    // [tokens] "row 12", "line 3 token 5": for errors
  std::string form;                   // "int16 .npy, layer 3 of 48"

  int tokens() const { return static_cast<int>(places.size()); }
};

// Reads spec.path (and spec.weights_path), .npy or JSON lines, gzip or not. Throws InputError.
RecordedRouting read_recorded_routing(const RoutingSpec& spec);

}  // namespace fusescope
