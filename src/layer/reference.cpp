#include "layer/reference.hpp"

#include <cmath>

#include "base/random.hpp"

namespace fusescope {
namespace {

enum class Matrix : std::uint64_t { input, gate, up, down };

// Uniform in [-1, 1), a multiple of 2^-23: exact in fp32.
float element(std::uint64_t seed, Matrix matrix, int first, int row, int column) {
  const std::uint64_t key = mix64(seed ^ (static_cast<std::uint64_t>(matrix) << 56)) ^
                            (static_cast<std::uint64_t>(first) << 40) ^
                            (static_cast<std::uint64_t>(row) << 20) ^
                            static_cast<std::uint64_t>(column);
  return static_cast<float>(mix64(key) >> 40) * 0x1.0p-23f - 1.0f;
}

// Keeps a sum of `terms` products as large as one of its factors.
float scale(int terms) {
  return std::sqrt(3.0f / static_cast<float>(terms));
}

// The weights of one expert, row by row.
struct Expert {
  std::vector<double> gate;
  std::vector<double> up;
  std::vector<double> down;

  Expert(const LayerValues& values, int expert) {
    for (int i = 0; i < values.intermediate; ++i) {
      for (int h = 0; h < values.hidden; ++h) {
        gate.push_back(values.gate(expert, i, h));
        up.push_back(values.up(expert, i, h));
      }
    }
    for (int h = 0; h < values.hidden; ++h) {
      for (int i = 0; i < values.intermediate; ++i) {
        down.push_back(values.down(expert, h, i));
      }
    }
  }
};

std::vector<double> times(const std::vector<double>& matrix, const std::vector<double>& vector) {
  const std::size_t columns = vector.size();
  std::vector<double> product(matrix.size() / columns, 0.0);
  for (std::size_t row = 0; row < product.size(); ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      product[row] += matrix[row * columns + column] * vector[column];
    }
  }
  return product;
}

std::vector<double> feed_forward(const Expert& expert, const std::vector<double>& x) {
  std::vector<double> y = times(expert.gate, x);
  const std::vector<double> up = times(expert.up, x);
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = y[i] / (1.0 + std::exp(-y[i])) * up[i];
  }
  return times(expert.down, y);
}

}  // namespace

float LayerValues::input(int token, int column) const {
  return element(seed, Matrix::input, 0, token, column);
}
float LayerValues::gate(int expert, int row, int column) const {
  return element(seed, Matrix::gate, expert, row, column) * scale(hidden);
}
float LayerValues::up(int expert, int row, int column) const {
  return element(seed, Matrix::up, expert, row, column) * scale(hidden);
}
float LayerValues::down(int expert, int row, int column) const {
  return element(seed, Matrix::down, expert, row, column) * scale(intermediate);
}

std::vector<double> reference_layer(const Problem& problem, const LayerValues& values) {
  const Routing& routing = problem.routing;
  const std::size_t hidden = values.hidden;
  std::vector<double> out(routing.tokens * hidden, 0.0);
  std::vector<double> x(hidden);
  // Expert by expert, so that one expert's weights exist at a time.
  for (int e = 0; e < problem.shape.experts; ++e) {
    const Expert expert(values, e);
    for (int token = 0; token < routing.tokens; ++token) {
      for (int k = 0; k < routing.topk; ++k) {
        const std::size_t hit = static_cast<std::size_t>(token) * routing.topk + k;
        if (routing.experts[hit] != e) {
          continue;
        }
        for (int h = 0; h < values.hidden; ++h) {
          x[h] = values.input(token, h);
        }
        const std::vector<double> row = feed_forward(expert, x);
        for (std::size_t h = 0; h < hidden; ++h) {
          out[token * hidden + h] += static_cast<double>(routing.weights[hit]) * row[h];
        }
      }
    }
  }
  return out;
}

}  // namespace fusescope
