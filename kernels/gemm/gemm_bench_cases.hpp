// What gemm_bench measures: shapes with their routing, and forms of a launch. Plain data.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gemm_variants.hpp"

namespace fusescope::kernels::bench {

// Where the rows of the experts come from.
enum class Routing {
  kBalanced,  // the same number for each expert
  kUniform,   // each token to topk different experts, all equally likely
};

struct Case {
  const char* name;
  int experts;
  int rows_per_expert;  // uniform: on average
  std::int64_t n;
  std::int64_t k;
  Epilogue epilogue = Epilogue::kStore;
  Routing routing = Routing::kBalanced;
};

inline constexpr Case kCases[] = {
    {"gate_up", 64, 256, 1536, 4096},
    {"down", 64, 256, 4096, 768},
    {"gate_up_uniform", 64, 256, 1536, 4096, Epilogue::kStore, Routing::kUniform},
    {"down_uniform", 64, 256, 4096, 768, Epilogue::kStore, Routing::kUniform},
    {"gate_up_fused", 64, 256, 1536, 4096, Epilogue::kSiluMul},
    {"gate_up_fused_uniform", 64, 256, 1536, 4096, Epilogue::kSiluMul, Routing::kUniform},
    {"gate_up_128", 64, 128, 1536, 4096},
    {"down_128", 64, 128, 4096, 768},
    {"gate_up_384", 64, 384, 1536, 4096},
    {"large", 8, 2048, 7168, 4096},
};

inline constexpr int kTopk = 8;

// Hits of each expert. The same on every machine: no library distribution decides.
inline std::vector<int> hits_per_expert(const Case& c) {
  std::vector<int> hits(c.experts, c.rows_per_expert);
  if (c.routing == Routing::kBalanced)
    return hits;
  std::fill(hits.begin(), hits.end(), 0);
  std::mt19937_64 random(20251);
  std::vector<int> order(c.experts);
  for (int e = 0; e < c.experts; ++e)
    order[e] = e;
  for (int token = 0; token < c.experts * c.rows_per_expert / kTopk; ++token) {
    for (int k = 0; k < kTopk; ++k) {
      std::swap(order[k], order[k + random() % static_cast<std::uint64_t>(c.experts - k)]);
      ++hits[order[k]];
    }
  }
  return hits;
}

// How a launch deals out its tiles.
struct Form {
  int block_group = 2;
  int column_groups = 1;
  bool slack = false;    // empty halves of row blocks are left out
  bool counter = false;  // a counter instead of round robin

  std::string name() const {
    std::string text = "g";
    text += std::to_string(block_group);
    text += "_c";
    text += std::to_string(column_groups);
    text += slack ? "_slack" : "_full";
    text += counter ? "_counter" : "_robin";
    return text;
  }
};

inline constexpr std::array kForms = {
    Form{1, 1, false, false}, Form{2, 1, false, false}, Form{2, 2, false, false},
    Form{2, 4, false, false}, Form{2, 1, false, true},  Form{2, 1, true, false},
    Form{2, 1, true, true},
};

}  // namespace fusescope::kernels::bench
