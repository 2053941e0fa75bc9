#pragma once
// The layer straight from its definition, in double precision: what every other computation of it is
// compared with. Knows nothing of schedule tables, slots, ranks' slices or orders.

#include <cstdint>
#include <vector>

#include "layer/problem.hpp"

namespace fusescope {

// The layer's numbers, each a function of its indices: nothing is stored, and every rank sees the same.
// `intermediate` indices run over the whole layer, 0 to R*I - 1.
struct LayerValues {
  std::uint64_t seed = 1;
  int hidden = 0;
  int intermediate = 0;  // R*I

  float input(int token, int column) const;           // in [-1, 1)
  float gate(int expert, int row, int column) const;  // [R*I, H], in [-1, 1) * sqrt(3 / H)
  float up(int expert, int row, int column) const;    // [R*I, H], the same
  float down(int expert, int row, int column) const;  // [H, R*I], in [-1, 1) * sqrt(3 / (R*I))
};

// out[t] = sum_k w(t,k) * W_down (silu(W_gate x) * (W_up x)) over all R*I; [R*T, hidden].
std::vector<double> reference_layer(const Problem& problem, const LayerValues& values);

}  // namespace fusescope
