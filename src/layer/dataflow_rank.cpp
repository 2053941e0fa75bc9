#include "layer/dataflow_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fusescope::dataflow {
namespace {

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

}  // namespace

void run_rank(const Problem& problem, const Config& config, const ScheduleTables& tables,
              const LayerValues& values, DataflowSize size, int rank,
              std::vector<Receiver>& receivers) {
  check_sizes(tables, problem.shape, rank);
  RankFlow flow(problem, config, tables, values, size, rank);
  flow.dispatch();
  flow.compute();
  flow.combine_and_push(receivers);
}

}  // namespace fusescope::dataflow
