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

// The experts of each token, [tokens, kTopk]. The same on every machine: no library distribution
// decides.
inline std::vector<int> experts_of_tokens(const Case& c) {
  const int tokens = c.experts * c.rows_per_expert / kTopk;
  std::vector<int> experts;
  std::mt19937_64 random(20251);
  std::vector<int> order(c.experts);
  for (int e = 0; e < c.experts; ++e)
    order[e] = e;
  for (int token = 0; token < tokens; ++token) {
    for (int k = 0; k < kTopk; ++k) {
      if (c.routing == Routing::kUniform)
        std::swap(order[k], order[k + random() % static_cast<std::uint64_t>(c.experts - k)]);
      experts.push_back(c.routing == Routing::kUniform ? order[k]
                                                       : (token * kTopk + k) % c.experts);
    }
  }
  return experts;
}

// Rows as the layer's schedule tables place them: by expert, then by token.
struct Rows {
  std::vector<std::int32_t> expert_rows{0};  // [experts + 1], padded
  std::vector<std::int32_t> slack;           // [row blocks]
  std::vector<std::int32_t> token_of_row;    // [rows]; of padding: token 0
  std::int64_t hits = 0;
};

inline Rows rows_of(const Case& c) {
  const std::vector<int> experts = experts_of_tokens(c);
  Rows rows;
  rows.hits = static_cast<std::int64_t>(experts.size());
  for (int e = 0; e < c.experts; ++e) {
    for (std::size_t hit = 0; hit < experts.size(); ++hit) {
      if (experts[hit] == e)
        rows.token_of_row.push_back(static_cast<std::int32_t>(hit) / kTopk);
    }
    const auto filled = static_cast<int>(rows.token_of_row.size());
    const int end = (filled + kBlockRows - 1) / kBlockRows * kBlockRows;
    rows.slack.resize(static_cast<std::size_t>(end) / kBlockRows, 0);
    if (end > rows.expert_rows.back())
      rows.slack.back() = end - filled;
    rows.token_of_row.resize(static_cast<std::size_t>(end), 0);
    rows.expert_rows.push_back(end);
  }
  return rows;
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
