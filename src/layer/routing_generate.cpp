// Generated routing: balanced, uniform, zipf, hot. Each is a function of (spec, shape) alone, equal
// on every machine; every token draws from its own random stream.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.hpp"
#include "layer/routing_source.hpp"

namespace fusescope {
namespace {

constexpr std::uint64_t kExpertStream = 1ull << 40;  // apart from the tokens' streams
constexpr std::uint64_t kWeightStream = 1ull << 41;

std::vector<std::int32_t> shuffled_experts(int experts, Random& random) {
  std::vector<std::int32_t> order(experts);
  std::iota(order.begin(), order.end(), 0);
  for (int i = experts - 1; i > 0; --i) {
    std::swap(order[i], order[random.below(i + 1)]);
  }
  return order;
}

// Moves `count` random elements of pool[first, last) to its front.
void draw_to_front(std::vector<std::int32_t>& pool, int first, int last, int count,
                   Random& random) {
  for (int i = first; i < first + count; ++i) {
    std::swap(pool[i], pool[i + random.below(last - i)]);
  }
}

// One shuffled deck of all experts after the other, dealt K to a token: after every whole deck each
// expert has the same number of hits.
void balanced(const Shape& shape, std::uint64_t seed, std::vector<std::int32_t>& ids) {
  Random random(seed, kExpertStream);
  const int experts = shape.experts;
  std::vector<std::int32_t> deck;
  int dealt = experts;
  for (int token = 0; token < shape.tokens(); ++token) {
    const auto row = ids.begin() + static_cast<std::ptrdiff_t>(token) * shape.topk;
    for (int k = 0; k < shape.topk; ++k) {
      if (dealt == experts) {
        deck = shuffled_experts(experts, random);
        dealt = 0;
        // The token that straddles two decks must not meet an expert again: move those it holds
        // behind the cards that it still gets.
        const int wanted = shape.topk - k;
        int spare = wanted;
        const auto held = [&](std::int32_t expert) {
          return std::find(row, row + k, expert) != row + k;
        };
        for (int i = 0; i < wanted; ++i) {
          if (held(deck[i])) {
            while (held(deck[spare])) {
              ++spare;
            }
            std::swap(deck[i], deck[spare++]);
          }
        }
      }
      row[k] = deck[dealt++];
    }
  }
}

void uniform(const Shape& shape, std::uint64_t seed, std::vector<std::int32_t>& ids) {
  std::vector<std::int32_t> pool(shape.experts);
  for (int token = 0; token < shape.tokens(); ++token) {
    Random random(seed, token);
    std::iota(pool.begin(), pool.end(), 0);
    draw_to_front(pool, 0, shape.experts, shape.topk, random);
    std::copy_n(pool.begin(), shape.topk,
                ids.begin() + static_cast<std::ptrdiff_t>(token) * shape.topk);
  }
}

// K draws without replacement, each in proportion to the popularity of what is left. Popularity is
// a 32-bit integer, so that the last bit of a machine's pow() does not change the table.
void zipf(const Shape& shape, double alpha, std::uint64_t seed, std::vector<std::int32_t>& ids) {
  Random expert_random(seed, kExpertStream);
  const std::vector<std::int32_t> by_popularity = shuffled_experts(shape.experts, expert_random);
  std::vector<std::uint64_t> popularity(shape.experts);
  for (int i = 0; i < shape.experts; ++i) {
    popularity[i] = 1 + std::llround(std::pow(i + 1.0, -alpha) * 0x1.0p32);
  }
  const std::uint64_t total = std::accumulate(popularity.begin(), popularity.end(), 0ull);
  std::vector<std::uint64_t> left;
  for (int token = 0; token < shape.tokens(); ++token) {
    Random random(seed, token);
    left = popularity;
    std::uint64_t sum = total;
    for (int k = 0; k < shape.topk; ++k) {
      std::uint64_t draw = random.below(sum);
      int i = 0;
      while (draw >= left[i]) {
        draw -= left[i++];
      }
      sum -= left[i];
      left[i] = 0;
      ids[static_cast<std::size_t>(token) * shape.topk + k] = by_popularity[i];
    }
  }
}

// The largest share that hot experts can have: a token takes each of them once.
double largest_hot_share(const RoutingSpec& spec, const Shape& shape) {
  return static_cast<double>(std::min(spec.hot_experts, shape.topk)) / shape.topk;
}

// Each token takes share * K hot experts (rounded at random, so that the mean is exact) and fills
// up from the others.
void hot(const RoutingSpec& spec, const Shape& shape, std::vector<std::int32_t>& ids) {
  Random expert_random(spec.seed, kExpertStream);
  const std::vector<std::int32_t> experts = shuffled_experts(shape.experts, expert_random);
  const double wanted = std::min(spec.hot_share, largest_hot_share(spec, shape)) * shape.topk;
  const int whole = static_cast<int>(wanted);
  const int cold = shape.experts - spec.hot_experts;
  std::vector<std::int32_t> pool;
  for (int token = 0; token < shape.tokens(); ++token) {
    Random random(spec.seed, token);
    int from_hot = whole + (random.unit() < wanted - whole ? 1 : 0);
    from_hot = std::max(from_hot, shape.topk - cold);  // there may be too few others
    pool = experts;
    draw_to_front(pool, 0, spec.hot_experts, from_hot, random);
    draw_to_front(pool, spec.hot_experts, shape.experts, shape.topk - from_hot, random);
    const auto row = ids.begin() + static_cast<std::ptrdiff_t>(token) * shape.topk;
    std::copy_n(pool.begin(), from_hot, row);
    std::copy_n(pool.begin() + spec.hot_experts, shape.topk - from_hot, row + from_hot);
    std::rotate(row, row + random.below(shape.topk), row + shape.topk);
  }
}

// Between 0.2 and 1, then divided by the row's sum: no weight is small enough to hide a wrong row.
std::vector<float> random_weights(const Shape& shape, std::uint64_t seed) {
  std::vector<float> weights(shape.hits());
  std::vector<double> row(shape.topk);
  for (int token = 0; token < shape.tokens(); ++token) {
    Random random(seed, kWeightStream + token);
    double sum = 0;
    for (double& weight : row) {
      weight = 0.2 + 0.8 * random.unit();
      sum += weight;
    }
    for (int k = 0; k < shape.topk; ++k) {
      weights[static_cast<std::size_t>(token) * shape.topk + k] = static_cast<float>(row[k] / sum);
    }
  }
  return weights;
}

}  // namespace

Routing generate_routing(const RoutingSpec& spec, const Shape& shape) {
  Routing routing;
  routing.tokens = shape.tokens();
  routing.topk = shape.topk;
  routing.experts.resize(shape.hits());
  routing.weights = random_weights(shape, spec.seed);
  routing.description = form(spec) + " seed " + std::to_string(spec.seed);
  switch (spec.kind) {
    case RoutingKind::balanced:
      balanced(shape, spec.seed, routing.experts);
      break;
    case RoutingKind::uniform:
      uniform(shape, spec.seed, routing.experts);
      break;
    case RoutingKind::zipf:
      zipf(shape, spec.alpha, spec.seed, routing.experts);
      break;
    case RoutingKind::hot:
      hot(spec, shape, routing.experts);
      if (spec.hot_share > largest_hot_share(spec, shape)) {
        routing.description +=
            fmt::format(" (cut to a share of {}: a token takes each expert once)",
                        largest_hot_share(spec, shape));
      }
      break;
    case RoutingKind::file:
      break;  // not generated
  }
  return routing;
}

}  // namespace fusescope
