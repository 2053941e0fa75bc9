#include "protocol/layer/round.hpp"

#include <array>
#include <numeric>

#include "base/random.hpp"
#include "protocol/layer/gemm_reduce_scatter.hpp"

namespace fusescope::protocol {
namespace {

Shape shape_of(const Scenario& s) {
  Shape shape;
  shape.ranks = s.ranks;
  shape.tokens_per_rank = s.tokens_per_rank;
  shape.experts = s.experts;
  shape.topk = s.topk;
  return shape;
}

// Uniform, or with one expert that most tokens want, by turns: empty experts and experts of several row
// blocks both occur.
Routing draw_routing(const Scenario& s, Random& random) {
  Routing routing;
  routing.tokens = s.tokens();
  routing.topk = s.topk;
  const bool hot = random.below(3) == 0;
  const auto favourite = static_cast<std::int32_t>(random.below(s.experts));
  std::vector<std::int32_t> ids(s.experts);
  for (int token = 0; token < routing.tokens; ++token) {
    std::iota(ids.begin(), ids.end(), 0);
    if (hot && random.below(4) != 0) {
      std::swap(ids[0], ids[favourite]);
    } else {
      std::swap(ids[0], ids[random.below(ids.size())]);
    }
    for (int k = 1; k < s.topk; ++k) {
      std::swap(ids[k], ids[k + random.below(ids.size() - k)]);
    }
    for (int k = 0; k < s.topk; ++k) {
      routing.experts.push_back(ids[k]);
      routing.weights.push_back(static_cast<float>(1 + random.below(7)));
    }
  }
  return routing;
}

// The layer straight from its definition: no tables, no slots. By N tile.
std::array<std::uint64_t, 8> expert_row(const Scenario& s, std::uint64_t input, int rank,
                                        int expert) {
  std::array<std::uint64_t, 8> row{};
  std::vector<std::uint64_t> hidden;
  for (int n = 0; n < s.n_tiles(); ++n) {
    std::uint64_t sum = 0;
    for (int k = 0; k < s.k_steps; ++k) {
      sum += Round::multiply(input, Round::weights(1, rank, expert, n, k));
    }
    hidden.push_back(Round::activate(sum));
  }
  for (int n = 0; n < s.n_tiles(); ++n) {
    for (int k = 0; k < s.n_tiles(); ++k) {
      row[n] += Round::multiply(hidden[k], Round::weights(2, rank, expert, n, k));
    }
  }
  return row;
}

void compute_reference(const Scenario& s, Round& round) {
  round.outputs.assign(s.tokens(), 0);
  for (int rank = 0; rank < s.ranks; ++rank) {
    for (int token = 0; token < s.tokens(); ++token) {
      std::array<std::uint64_t, 8> columns{};
      for (int k = 0; k < s.topk; ++k) {
        const int expert = round.routing.experts[static_cast<std::size_t>(token) * s.topk + k];
        const auto row = expert_row(s, round.input(token), rank, expert);
        for (int c = 0; c < job_columns(s); ++c) {
          columns[c] += Round::weighted(row[c / kSummingWarps], round.hit_weight(token, k), c);
        }
      }
      round.outputs[token] += folded(columns.data(), job_columns(s));
    }
  }
}

}  // namespace

std::uint64_t Round::input(int token) const {
  return mix64(static_cast<std::uint64_t>(stamp) * 4096 + static_cast<std::uint64_t>(token));
}

std::uint64_t Round::weights(int which, int rank, int expert, int n_tile, int k_step) {
  const int place = (((which * 64 + rank) * 64 + expert) * 8 + n_tile) * 8 + k_step;
  return mix64(static_cast<std::uint64_t>(place));
}

std::uint64_t Round::multiply(std::uint64_t row, std::uint64_t weights) {
  return mix64(row + weights);
}

std::uint64_t Round::activate(std::uint64_t value) {
  return mix64(value ^ 0x5151ull);
}

std::vector<Round> make_rounds(const Scenario& s, Bug bug) {
  const Shape shape = shape_of(s);
  std::vector<Round> rounds(s.iterations + (s.fault == Fault::none ? 0 : 1));
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    Round& round = rounds[i];
    Random random(s.routing_seed, i);
    round.stamp = static_cast<std::int32_t>(i) + 1;
    if (s.subject == Subject::gemm_reduce_scatter) {
      make_reduce_scatter_round(s, round);
      continue;
    }
    round.routing = draw_routing(s, random);
    for (int rank = 0; rank < s.ranks; ++rank) {
      round.tables.push_back(
          build_tables_golden(shape, round.routing, s.config.slot_order, rank, s.row_block));
    }
    compute_reference(s, round);
    if (bug == Bug::job_order_misses_one && s.tokens() > 1) {
      std::vector<std::int32_t>& order = round.tables[0].job_order;
      order.back() = order.front();
    }
  }
  return rounds;
}

}  // namespace fusescope::protocol
