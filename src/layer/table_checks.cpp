#include "layer/table_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace fusescope {
namespace {

using Fault = std::optional<TableFault>;
using Table = std::vector<std::int32_t>;

Fault check_size(const char* table, std::size_t found, std::size_t expected) {
  if (found == expected) {
    return {};
  }
  return TableFault{table, -1, fmt::format("{} entries", expected),
                    fmt::format("{} entries", found)};
}

// Every expert has its hits' rows, rounded up to whole row blocks, right behind the expert before it.
Fault check_expert_rows(const ScheduleTables& tables, const Table& hits) {
  if (Fault fault = check_size("expert_rows", tables.expert_rows.size(), hits.size() + 1)) {
    return fault;
  }
  std::int32_t begin = 0;
  for (std::size_t i = 0; i < tables.expert_rows.size(); ++i) {
    const std::int32_t found = tables.expert_rows[i];
    if (found != begin) {
      return TableFault{
          "expert_rows", static_cast<long long>(i),
          i == 0 ? "0" : fmt::format("{}: expert {} has {} hits", begin, i - 1, hits[i - 1]),
          fmt::format("{}", found)};
    }
    if (i < hits.size()) {
      begin += (hits[i] + kRowBlock - 1) / kRowBlock * kRowBlock;
    }
  }
  return {};
}

// One hit per non-padding row. Fills `rows_used` per row block.
Fault check_slots(const ScheduleTables& tables, const Routing& routing, const Table& hits,
                  Table& rows_used) {
  if (Fault fault = check_size("slots", tables.slots.size(), routing.experts.size())) {
    return fault;
  }
  Table hit_of_slot(tables.rows(), -1);
  for (std::size_t hit = 0; hit < tables.slots.size(); ++hit) {
    const std::int32_t slot = tables.slots[hit];
    const std::int32_t expert = routing.experts[hit];
    const std::int32_t first = tables.expert_rows[expert];
    const std::int32_t last = first + hits[expert] - 1;
    if (slot < first || slot > last) {
      return TableFault{"slots", static_cast<long long>(hit),
                        fmt::format("a row of expert {}, {} to {}", expert, first, last),
                        fmt::format("{}", slot)};
    }
    if (hit_of_slot[slot] >= 0) {
      return TableFault{"slots", static_cast<long long>(hit), "a row of its own",
                        fmt::format("{}, which hit {} has already", slot, hit_of_slot[slot])};
    }
    hit_of_slot[slot] = static_cast<std::int32_t>(hit);
    ++rows_used[slot / kRowBlock];
  }
  return {};
}

Fault check_slack(const ScheduleTables& tables, const Table& rows_used) {
  if (Fault fault = check_size("slack", tables.slack.size(), rows_used.size())) {
    return fault;
  }
  for (std::size_t block = 0; block < rows_used.size(); ++block) {
    const std::int32_t expected = kRowBlock - rows_used[block];
    if (tables.slack[block] != expected) {
      return TableFault{
          "slack", static_cast<long long>(block),
          fmt::format("{}: {} arrivals + slack = {}", expected, rows_used[block], kRowBlock),
          fmt::format("{}", tables.slack[block])};
    }
  }
  return {};
}

// The token of each slot's hit; of padding, the same one everywhere, the first of some rank.
Fault check_token_of_slot(const ScheduleTables& tables, const Shape& shape) {
  const Table& found = tables.token_of_slot;
  if (Fault fault =
          check_size("token_of_slot", found.size(), static_cast<std::size_t>(tables.rows()))) {
    return fault;
  }
  Table expected(found.size(), -1);
  for (std::size_t hit = 0; hit < tables.slots.size(); ++hit) {
    expected[tables.slots[hit]] = static_cast<std::int32_t>(hit) / shape.topk;
  }
  std::int32_t padding = -1;
  for (std::size_t slot = 0; slot < found.size(); ++slot) {
    const std::int32_t token = found[slot];
    const auto index = static_cast<long long>(slot);
    if (expected[slot] >= 0) {
      if (token != expected[slot]) {
        return TableFault{"token_of_slot", index,
                          fmt::format("{}, whose hit it is", expected[slot]),
                          fmt::format("{}", token)};
      }
    } else if (token < 0 || token >= shape.tokens() || token % shape.tokens_per_rank != 0) {
      return TableFault{"token_of_slot", index, "in padding, the first token of the rank",
                        fmt::format("{}", token)};
    } else if (padding >= 0 && token != padding) {
      return TableFault{"token_of_slot", index, fmt::format("{}, as in other padding", padding),
                        fmt::format("{}", token)};
    } else {
      padding = token;
    }
  }
  return {};
}

// A permutation of the tokens with strictly increasing keys.
Fault check_order(const char* name, const char* key_name, const Table& order, const Table& key) {
  if (Fault fault = check_size(name, order.size(), key.size())) {
    return fault;
  }
  std::vector<long long> position(order.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto index = static_cast<long long>(i);
    const std::int32_t token = order[i];
    if (token < 0 || token >= static_cast<std::int32_t>(order.size())) {
      return TableFault{name, index, fmt::format("a token, 0 to {}", order.size() - 1),
                        fmt::format("{}", token)};
    }
    if (position[token] >= 0) {
      return TableFault{name, index, "a token that did not occur before",
                        fmt::format("{}, which is at {} already", token, position[token])};
    }
    position[token] = index;
    if (i > 0 && key[token] < key[order[i - 1]]) {
      return TableFault{name, index,
                        fmt::format("a token with a {} slot above {}", key_name, key[order[i - 1]]),
                        fmt::format("token {} with {}", token, key[token])};
    }
  }
  return {};
}

}  // namespace

std::string to_string(const TableFault& fault) {
  const std::string index = fault.index < 0 ? "" : fmt::format("[{}]", fault.index);
  return fmt::format("{}{}: expected {}; found {}", fault.table, index, fault.expected,
                     fault.found);
}

std::optional<TableFault> check_tables(const ScheduleTables& tables, const Shape& shape,
                                       const Routing& routing) {
  Table hits(shape.experts, 0);
  for (const std::int32_t expert : routing.experts) {
    ++hits[expert];
  }
  if (Fault fault = check_expert_rows(tables, hits)) {
    return fault;
  }
  Table rows_used(tables.rows() / kRowBlock, 0);
  if (Fault fault = check_slots(tables, routing, hits, rows_used)) {
    return fault;
  }
  if (Fault fault = check_slack(tables, rows_used)) {
    return fault;
  }
  if (Fault fault = check_token_of_slot(tables, shape)) {
    return fault;
  }
  Table smallest(shape.tokens());
  Table largest(shape.tokens());
  for (int token = 0; token < shape.tokens(); ++token) {
    const auto row = tables.slots.begin() + static_cast<std::ptrdiff_t>(token) * shape.topk;
    const auto [low, high] = std::minmax_element(row, row + shape.topk);
    smallest[token] = *low;
    largest[token] = *high;
  }
  if (Fault fault = check_order("pull_order", "smallest", tables.pull_order, smallest)) {
    return fault;
  }
  return check_order("job_order", "largest", tables.job_order, largest);
}

std::optional<TableFault> compare_tables(const ScheduleTables& expected,
                                         const ScheduleTables& found) {
  const struct {
    const char* name;
    Table ScheduleTables::*member;
  } kTables[] = {{"expert_rows", &ScheduleTables::expert_rows},
                 {"slots", &ScheduleTables::slots},
                 {"slack", &ScheduleTables::slack},
                 {"token_of_slot", &ScheduleTables::token_of_slot},
                 {"pull_order", &ScheduleTables::pull_order},
                 {"job_order", &ScheduleTables::job_order}};
  for (const auto& [name, member] : kTables) {
    const Table& left = expected.*member;
    const Table& right = found.*member;
    if (Fault fault = check_size(name, right.size(), left.size())) {
      return fault;
    }
    const auto [a, b] = std::mismatch(left.begin(), left.end(), right.begin());
    if (a != left.end()) {
      return TableFault{name, a - left.begin(), fmt::format("{}", *a), fmt::format("{}", *b)};
    }
  }
  return {};
}

}  // namespace fusescope
