// The driver of the dataflow check: all ranks, watermarks, final reduce, comparison.
#include "layer/dataflow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "layer/dataflow_rank.hpp"
#include "layer/reference.hpp"

namespace fusescope {
namespace {

using dataflow::BrokenStep;
using dataflow::Matrix;
using dataflow::Receiver;

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
      dataflow::run_rank(problem, config, tables[rank], values, size, rank, receivers);
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
