#include "layer/dataflow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/error.hpp"
#include "layer/reference.hpp"

namespace fusescope {
namespace {

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

struct BrokenStep {
  std::string what;
};

struct Matrix {
  std::size_t columns;
  std::vector<float> data;

  Matrix(std::size_t rows, std::size_t width) : columns(width), data(rows * width, kPoison) {}
  std::size_t rows() const { return data.size() / columns; }
  float* row(std::size_t index) { return data.data() + index * columns; }
  const float* row(std::size_t index) const { return data.data() + index * columns; }
};

// out[rows, N] = in[rows, K] * weights[K, N], over rows [first, first + 128).
void multiply_row_block(const Matrix& in, const Matrix& weights, std::size_t first, Matrix& out) {
  for (std::size_t row = first; row < first + kRowBlock; ++row) {
    float* const sums = out.row(row);
    std::fill(sums, sums + out.columns, 0.0f);
    for (std::size_t k = 0; k < in.columns; ++k) {
      const float factor = in.row(row)[k];
      const float* const terms = weights.row(k);
      for (std::size_t n = 0; n < out.columns; ++n) {
        sums[n] += factor * terms[n];
      }
    }
  }
}

std::vector<std::int32_t> visiting_order(bool by_token, const std::vector<std::int32_t>& order) {
  if (!by_token) {
    return order;
  }
  std::vector<std::int32_t> tokens(order.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

// A rank's receive buffers: one plane per sending rank, and per plane the rows that arrived of each
// watermark chunk.
struct Receiver {
  std::vector<Matrix> planes;
  std::vector<std::vector<int>> pushed;

  Receiver(const Shape& shape, int hidden, int chunks)
      : planes(shape.ranks, Matrix(shape.tokens_per_rank, hidden)),
        pushed(shape.ranks, std::vector<int>(chunks, 0)) {}
};

// What the loops below rely on to stay inside the tables.
void check_sizes(const ScheduleTables& tables, const Shape& shape, int rank) {
  const auto check = [&](const char* table, std::size_t found, std::size_t expected) {
    if (found != expected) {
      throw BrokenStep{
          fmt::format("rank {}: {} has {} entries, not {}", rank, table, found, expected)};
    }
  };
  check("expert_rows", tables.expert_rows.size(), static_cast<std::size_t>(shape.experts) + 1);
  check("slots", tables.slots.size(), static_cast<std::size_t>(shape.hits()));
  check("pull_order", tables.pull_order.size(), shape.tokens());
  check("job_order", tables.job_order.size(), shape.tokens());
  std::int32_t row = 0;
  for (int expert = 0; expert <= shape.experts; ++expert) {
    const std::int32_t next = tables.expert_rows[expert];
    if (next < row || next % kRowBlock != 0 || (expert == 0 && next != 0)) {
      throw BrokenStep{
          fmt::format("rank {}: expert_rows[{}] is {}, after {}", rank, expert, next, row)};
    }
    row = next;
  }
  check("slack", tables.slack.size(), row / kRowBlock);
}

// One rank's two kernels over its own tables and its slice of the weights.
class RankFlow {
 public:
  RankFlow(const Problem& problem, const Config& config, const ScheduleTables& tables,
           const LayerValues& values, DataflowSize size, int rank)
      : problem_(problem),
        config_(config),
        tables_(tables),
        values_(values),
        size_(size),
        rank_(rank),
        gathered_(tables.rows(), size.hidden),
        gate_up_(tables.rows(), 2 * static_cast<std::size_t>(size.intermediate)),
        activated_(tables.rows(), size.intermediate),
        partial_(tables.rows(), size.hidden) {}

  void dispatch() {
    std::vector<int> arrivals(tables_.slack.begin(), tables_.slack.end());
    const bool by_token = config_.pull_order == PullOrder::by_token;
    for (const std::int32_t token : visiting_order(by_token, tables_.pull_order)) {
      check_token(token, "pull_order");
      for (int k = 0; k < problem_.shape.topk; ++k) {
        const std::size_t slot = slot_of(token, k);
        for (int h = 0; h < size_.hidden; ++h) {
          gathered_.row(slot)[h] = values_.input(token, h);
        }
        ++arrivals[slot / kRowBlock];
      }
    }
    for (std::size_t block = 0; block < arrivals.size(); ++block) {
      if (arrivals[block] != kRowBlock) {
        throw BrokenStep{fmt::format("rank {}: row block {} stands at {} arrivals, opens at {}",
                                     rank_, block, arrivals[block], kRowBlock)};
      }
    }
  }

  void compute() {
    for (int expert = 0; expert < problem_.shape.experts; ++expert) {
      const std::int32_t begin = tables_.expert_rows[expert];
      const std::int32_t end = tables_.expert_rows[expert + 1];
      if (begin == end) {
        continue;
      }
      const Matrix gate_up = gate_up_weights(expert);
      const Matrix down = down_weights(expert);
      for (std::int32_t row = begin; row < end; row += kRowBlock) {
        multiply_row_block(gathered_, gate_up, row, gate_up_);
        activate_row_block(row);
        multiply_row_block(activated_, down, row, partial_);
      }
    }
  }

  void combine_and_push(std::vector<Receiver>& receivers) const {
    const Shape& shape = problem_.shape;
    const bool by_token = config_.job_order == JobOrder::by_token;
    for (const std::int32_t token : visiting_order(by_token, tables_.job_order)) {
      check_token(token, "job_order");
      Receiver& receiver = receivers[shape.source_rank(token)];
      const int index = token % shape.tokens_per_rank;
      float* const pushed = receiver.planes[rank_].row(index);
      std::fill(pushed, pushed + size_.hidden, 0.0f);
      for (int k = 0; k < shape.topk; ++k) {
        const float weight =
            problem_.routing.weights[static_cast<std::size_t>(token) * shape.topk + k];
        const float* const row = partial_.row(slot_of(token, k));
        for (int h = 0; h < size_.hidden; ++h) {
          pushed[h] += weight * row[h];
        }
      }
      const long long chunks = config_.watermark_chunks;
      ++receiver.pushed[rank_][index * chunks / shape.tokens_per_rank];
    }
  }

 private:
  void check_token(std::int32_t token, const char* order) const {
    if (token < 0 || token >= problem_.shape.tokens()) {
      throw BrokenStep{fmt::format("rank {}: {} names token {} of {}", rank_, order, token,
                                   problem_.shape.tokens())};
    }
  }

  std::size_t slot_of(std::int32_t token, int k) const {
    const std::int32_t slot =
        tables_.slots[static_cast<std::size_t>(token) * problem_.shape.topk + k];
    if (slot < 0 || slot >= tables_.rows()) {
      throw BrokenStep{fmt::format("rank {}: slot {} of token {} is outside the {} gathered rows",
                                   rank_, slot, token, tables_.rows())};
    }
    return slot;
  }

  // [H, 2I]: gate columns, then up columns, of this rank's slice.
  Matrix gate_up_weights(int expert) const {
    const int width = size_.intermediate;
    Matrix weights(size_.hidden, 2 * static_cast<std::size_t>(width));
    for (int h = 0; h < size_.hidden; ++h) {
      for (int i = 0; i < width; ++i) {
        weights.row(h)[i] = values_.gate(expert, rank_ * width + i, h);
        weights.row(h)[width + i] = values_.up(expert, rank_ * width + i, h);
      }
    }
    return weights;
  }

  Matrix down_weights(int expert) const {  // [I, H]
    Matrix weights(size_.intermediate, size_.hidden);
    for (int i = 0; i < size_.intermediate; ++i) {
      for (int h = 0; h < size_.hidden; ++h) {
        weights.row(i)[h] = values_.down(expert, h, rank_ * size_.intermediate + i);
      }
    }
    return weights;
  }

  void activate_row_block(std::int32_t first) {
    for (std::int32_t row = first; row < first + kRowBlock; ++row) {
      const float* const gate = gate_up_.row(row);
      const float* const up = gate + size_.intermediate;
      for (int i = 0; i < size_.intermediate; ++i) {
        activated_.row(row)[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
      }
    }
  }

  const Problem& problem_;
  const Config& config_;
  const ScheduleTables& tables_;
  const LayerValues& values_;
  DataflowSize size_;
  int rank_;
  Matrix gathered_;
  Matrix gate_up_;
  Matrix activated_;
  Matrix partial_;
};

// Rows of one watermark chunk: those i with i * chunks / T == chunk.
int rows_of_chunk(const Shape& shape, long long chunks, int chunk) {
  const auto first = [&](long long c) { return (c * shape.tokens_per_rank + chunks - 1) / chunks; };
  return static_cast<int>(first(chunk + 1) - first(chunk));
}

void check_watermarks(const Receiver& receiver, const Shape& shape, int rank) {
  for (int sender = 0; sender < shape.ranks; ++sender) {
    const std::vector<int>& pushed = receiver.pushed[sender];
    for (std::size_t chunk = 0; chunk < pushed.size(); ++chunk) {
      const int wanted =
          rows_of_chunk(shape, static_cast<long long>(pushed.size()), static_cast<int>(chunk));
      if (pushed[chunk] != wanted) {
        throw BrokenStep{fmt::format(
            "rank {}: {} rows pushed by rank {} into chunk {}, its watermark rises at {}", rank,
            pushed[chunk], sender, chunk, wanted)};
      }
    }
  }
}

// The planes summed in rank order, [T, H].
Matrix final_reduce(const Receiver& receiver, const Shape& shape, int hidden) {
  Matrix out(shape.tokens_per_rank, hidden);
  std::fill(out.data.begin(), out.data.end(), 0.0f);
  for (const Matrix& plane : receiver.planes) {
    for (std::size_t i = 0; i < out.data.size(); ++i) {
      out.data[i] += plane.data[i];
    }
  }
  return out;
}

// Accumulates the difference between outputs and reference; a NaN counts as an infinite error.
struct ErrorSum {
  double difference = 0;
  double squared_difference = 0;
  double largest = 0;
  double squared = 0;

  void add(double out, double expected) {
    double error = std::abs(out - expected);
    error = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    difference = std::max(difference, error);
    squared_difference += error * error;
    largest = std::max(largest, std::abs(expected));
    squared += expected * expected;
  }
};

void compare(const std::vector<Receiver>& receivers, const Shape& shape, DataflowSize size,
             const std::vector<double>& reference, DataflowResult& result) {
  ErrorSum sum;
  std::optional<int> first_bad;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const Matrix out = final_reduce(receivers[rank], shape, size.hidden);
    const std::size_t begin = static_cast<std::size_t>(rank) * out.data.size();
    for (std::size_t i = 0; i < out.data.size(); ++i) {
      sum.add(out.data[i], reference[begin + i]);
      if (std::isnan(out.data[i]) && !first_bad) {
        first_bad = static_cast<int>((begin + i) / size.hidden);
      }
    }
  }
  const double floor = std::numeric_limits<double>::min();  // an all-zero reference
  result.max_error = sum.difference / std::max(sum.largest, floor);
  result.frobenius_error = std::sqrt(sum.squared_difference / std::max(sum.squared, floor));
  if (first_bad) {
    result.fault =
        fmt::format("the output of token {} is NaN: a row was read that nobody wrote", *first_bad);
  } else if (std::max(result.max_error, result.frobenius_error) > kDataflowTolerance) {
    result.fault = fmt::format("relative error {:.2e} (largest) {:.2e} (Frobenius), at most {:.0e}",
                               result.max_error, result.frobenius_error, kDataflowTolerance);
  }
}

}  // namespace

LayerValues dataflow_values(const Problem& problem, DataflowSize size) {
  return {1, size.hidden, size.intermediate * problem.shape.ranks};
}

DataflowResult check_dataflow(const Problem& problem, const Config& config,
                              const std::vector<ScheduleTables>& tables,
                              const std::vector<double>& reference, DataflowSize size) {
  const Shape& shape = problem.shape;
  if (config.watermark_chunks < 1 || config.watermark_chunks > shape.tokens_per_rank) {
    throw InputError({"", "watermark_chunks", fmt::format("{}", config.watermark_chunks),
                      fmt::format("1 to {}, the rows of a staging plane", shape.tokens_per_rank)});
  }
  const LayerValues values = dataflow_values(problem, size);
  DataflowResult result{size, 0, 0, ""};
  std::vector<Receiver> receivers(shape.ranks,
                                  Receiver(shape, size.hidden, config.watermark_chunks));
  try {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      check_sizes(tables[rank], shape, rank);
      RankFlow flow(problem, config, tables[rank], values, size, rank);
      flow.dispatch();
      flow.compute();
      flow.combine_and_push(receivers);
    }
    for (int rank = 0; rank < shape.ranks; ++rank) {
      check_watermarks(receivers[rank], shape, rank);
    }
    compare(receivers, shape, size, reference, result);
  } catch (const BrokenStep& step) {
    result.fault = step.what;
  }
  return result;
}

DataflowResult check_dataflow(const Problem& problem, const Config& config, DataflowSize size) {
  std::vector<ScheduleTables> tables;
  tables.reserve(problem.shape.ranks);
  for (int rank = 0; rank < problem.shape.ranks; ++rank) {
    tables.push_back(build_tables_golden(problem.shape, problem.routing, config.slot_order, rank));
  }
  const std::vector<double> reference = reference_layer(problem, dataflow_values(problem, size));
  return check_dataflow(problem, config, tables, reference, size);
}

}  // namespace fusescope
