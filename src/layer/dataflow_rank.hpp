#pragma once
// Inside the dataflow check: one rank's two kernels over its own tables and its slice of the weights, and
// the receive buffers that they push to.

#include <limits>
#include <string>
#include <vector>

#include "layer/dataflow.hpp"
#include "layer/reference.hpp"

namespace fusescope::dataflow {

// A step of the protocol that cannot go on, in words.
struct BrokenStep {
  std::string what;
};

// Rows of floats that start as NaN: a row that is read before it is written shows in the output.
struct Matrix {
  std::size_t columns;
  std::vector<float> data;

  Matrix(std::size_t rows, std::size_t width)
      : columns(width), data(rows * width, std::numeric_limits<float>::quiet_NaN()) {}
  float* row(std::size_t index) { return data.data() + index * columns; }
  const float* row(std::size_t index) const { return data.data() + index * columns; }
};

// A rank's receive buffers: one plane per sending rank, and per plane the rows that arrived of each
// watermark chunk.
struct Receiver {
  std::vector<Matrix> planes;
  std::vector<std::vector<int>> pushed;

  Receiver(const Shape& shape, int hidden, int chunks)
      : planes(shape.ranks, Matrix(shape.tokens_per_rank, hidden)),
        pushed(shape.ranks, std::vector<int>(chunks, 0)) {}
};

// Dispatch, both GEMMs, combine and push of one rank. Throws BrokenStep.
void run_rank(const Problem& problem, const Config& config, const ScheduleTables& tables,
              const LayerValues& values, DataflowSize size, int rank,
              std::vector<Receiver>& receivers);

}  // namespace fusescope::dataflow
