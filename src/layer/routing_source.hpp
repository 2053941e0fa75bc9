#pragma once
// Inside the layer library: where routing comes from. Generators fill a whole table; files are read as
// they are and cut or tiled afterwards.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layer/routing.hpp"

namespace fusescope {

// balanced, uniform, zipf, hot.
Routing generate_routing(const RoutingSpec& spec, const Shape& shape);

// What a file holds of the chosen layer, in the file's order. Ids may still be out of range.
struct RecordedRouting {
  // Where a token was written, for errors.
  struct Place {
    long long line = 0;  // counted from 1
    int index = -1;      // within the line, -1: the line is the token
  };

  int tokens = 0;
  int topk = 0;
  std::vector<std::int32_t> experts;  // [tokens, topk]
  std::vector<float> weights;         // [tokens, topk], or empty: the file has none
  std::vector<Place> places;          // [tokens], or empty: token i is row i
  std::string form;                   // "int16 .npy, layer 3 of 48"

  std::string place(int token) const;
};

// Reads spec.path (and spec.weights_path), .npy or JSON lines, gzip or not. Throws InputError.
RecordedRouting read_recorded_routing(const RoutingSpec& spec);

// `bytes`: the file's content. int16, int32 or int64, [tokens, K] or [tokens, layers, K].
RecordedRouting read_npy_routing(const RoutingSpec& spec, std::string_view bytes);
// Router traces (one record per step and layer) and per-token records, one JSON object a line.
RecordedRouting read_jsonl_routing(const RoutingSpec& spec, std::string_view bytes);

}  // namespace fusescope
