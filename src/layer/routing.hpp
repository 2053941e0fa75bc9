#pragma once
// Which experts each token goes to, and with what weight: generated, or read from a file.

#include <cstdint>
#include <string>
#include <vector>

#include "layer/shape.hpp"

namespace fusescope {

enum class RoutingKind { balanced, uniform, zipf, hot, file };

// What the user asked for. Written balanced, uniform, zipf:ALPHA, hot:EXPERTS,SHARE, each with
// "@SEED" behind it if it is not 1, or file:PATH with "#OPTION,..." behind it: layer=N, skip=N
// (tokens), weights=PATH (of a .npy file's weights; comes last). Options begin at the last '#', so
// a path with a '#' in it needs a '#' behind it.
// Examples: "zipf:1.2@7", "hot:2,0.25", "file:ids.npy#layer=3,skip=16384",
// "file:trace.jsonl.gz".
struct RoutingSpec {
  RoutingKind kind = RoutingKind::balanced;
  double alpha = 1.0;      // zipf exponent: the i-th most popular expert has weight 1 / i^alpha
  int hot_experts = 1;     // hot: how many experts ...
  double hot_share = 0.5;  // ... receive which share of the hits; a token takes an expert once, so
                           // more than min(hot_experts, K) / K is cut to that, and said
  std::uint64_t seed = 1;
  std::string path;          // file
  int layer = 0;             // file with several layers: which one
  int skip_tokens = 0;       // file: leave out this many tokens at the start (warm-up records)
  std::string weights_path;  // file: weights of an .npy of ids, "" = equal ones
  bool operator==(const RoutingSpec&) const = default;
};

// The table a layer runs on. Row d is global token d; ids within a row are distinct.
struct Routing {
  int tokens = 0;
  int topk = 0;
  std::vector<std::int32_t> experts;  // [tokens, topk]
  std::vector<float> weights;  // [tokens, topk], finite, >= 0; generated rows sum to 1, a file's
                               // are taken as they are
  std::string description;  // what it is and what was done to it ("tiled 2.1 times"), for reports
};

RoutingSpec parse_routing(const std::string& text);  // the printed form; throws InputError
std::string to_string(const RoutingSpec& spec);

// Throws InputError with file, row and value: id out of range, duplicate within a token, wrong
// shape, NaN weight, truncated file, ...
Routing make_routing(const RoutingSpec& spec, const Shape& shape);

// The spec without its seed: "zipf:1.2".
std::string form(const RoutingSpec& spec);

// The check make_routing applies to every table, whatever its source.
void validate(const Routing& routing, const Shape& shape, const std::string& file);

}  // namespace fusescope
