// The golden tables: plain loops, straight from the definition.
#include <algorithm>
#include <numeric>

#include "layer/tables.hpp"

namespace fusescope {
namespace {

// The tokens in the order in which they lie within an expert.
std::vector<std::int32_t> tokens_in_slot_order(const Shape& shape, SlotOrder slot_order, int rank) {
  std::vector<std::int32_t> order;
  order.reserve(shape.tokens());
  switch (slot_order) {
    case SlotOrder::by_token:
      for (int token = 0; token < shape.tokens(); ++token) {
        order.push_back(token);
      }
      break;
    case SlotOrder::interleave_sources:
      for (int index = 0; index < shape.tokens_per_rank; ++index) {
        for (int source = 0; source < shape.ranks; ++source) {
          order.push_back(source * shape.tokens_per_rank + index);
        }
      }
      break;
    case SlotOrder::rotate_from_self:
      for (int step = 0; step < shape.ranks; ++step) {
        const int source = (rank + step) % shape.ranks;
        for (int index = 0; index < shape.tokens_per_rank; ++index) {
          order.push_back(source * shape.tokens_per_rank + index);
        }
      }
      break;
  }
  return order;
}

std::vector<std::int32_t> tokens_sorted_by(const std::vector<std::int32_t>& key) {
  std::vector<std::int32_t> order(key.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::int32_t a, std::int32_t b) { return key[a] < key[b]; });
  return order;
}

}  // namespace

ScheduleTables build_tables_golden(const Shape& shape, const Routing& routing, SlotOrder slot_order,
                                   int rank, int row_block) {
  ScheduleTables tables;
  std::vector<std::int32_t> hits(shape.experts, 0);
  for (const std::int32_t expert : routing.experts) {
    ++hits[expert];
  }

  tables.expert_rows.push_back(0);
  for (int expert = 0; expert < shape.experts; ++expert) {
    const int blocks = (hits[expert] + row_block - 1) / row_block;
    for (int block = 0; block < blocks; ++block) {
      const int filled = std::min(hits[expert] - block * row_block, row_block);
      tables.slack.push_back(row_block - filled);
    }
    tables.expert_rows.push_back(tables.expert_rows.back() + blocks * row_block);
  }

  std::vector<std::int32_t> next_slot(tables.expert_rows.begin(), tables.expert_rows.end() - 1);
  tables.slots.resize(shape.hits());
  for (const std::int32_t token : tokens_in_slot_order(shape, slot_order, rank)) {
    for (int k = 0; k < shape.topk; ++k) {
      const std::size_t hit = static_cast<std::size_t>(token) * shape.topk + k;
      tables.slots[hit] = next_slot[routing.experts[hit]]++;
    }
  }

  tables.token_of_slot.assign(static_cast<std::size_t>(tables.rows()),
                              rank * shape.tokens_per_rank);
  for (int hit = 0; hit < shape.hits(); ++hit) {
    tables.token_of_slot[static_cast<std::size_t>(tables.slots[hit])] = hit / shape.topk;
  }

  std::vector<std::int32_t> smallest;
  std::vector<std::int32_t> largest;
  for (int token = 0; token < shape.tokens(); ++token) {
    const auto row = tables.slots.begin() + static_cast<std::ptrdiff_t>(token) * shape.topk;
    smallest.push_back(*std::min_element(row, row + shape.topk));
    largest.push_back(*std::max_element(row, row + shape.topk));
  }
  tables.pull_order = tokens_sorted_by(smallest);
  tables.job_order = tokens_sorted_by(largest);
  return tables;
}

std::vector<std::int32_t> experts_of_row_blocks(const ScheduleTables& tables) {
  std::vector<std::int32_t> experts;
  experts.reserve(tables.slack.size());
  for (std::size_t expert = 0; expert + 1 < tables.expert_rows.size(); ++expert) {
    const int rows = tables.expert_rows[expert + 1] - tables.expert_rows[expert];
    experts.insert(experts.end(), rows / kRowBlock, static_cast<std::int32_t>(expert));
  }
  return experts;
}

}  // namespace fusescope
