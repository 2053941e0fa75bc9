#include "cli/list_tuned.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <variant>

#include "cli/text.hpp"
#include "layer/shape.hpp"
#include "sweep/tuned_table.hpp"

namespace fusescope::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The name under which --shape finds such a layer, or its numbers.
std::string shape_name(const std::vector<Shape>& shapes, const std::string& numbers) {
  for (const Shape& shape : shapes) {
    if (sweep::shape_numbers(shape) == numbers) {
      return shape.name;
    }
  }
  return numbers;
}

// Only the knobs that differ from the defaults.
OrderedJson knobs_set(const Config& config) {
  OrderedJson set = OrderedJson::object();
  for (const Knob& knob : knobs()) {
    if (const KnobValue value = knob.get(config); value != knob.get(Config{})) {
      set[std::string(knob.name)] =
          std::visit([](const auto& given) { return OrderedJson(given); }, value);
    }
  }
  return set;
}

OrderedJson to_json(const std::vector<Shape>& shapes, const sweep::TunedTable& table,
                    const sweep::TunedEntry& entry) {
  OrderedJson runner_up;
  if (entry.runner_up) {
    runner_up = {{"slower", entry.runner_up->slower},
                 {"low", entry.runner_up->low},
                 {"high", entry.runner_up->high},
                 {"tie", entry.runner_up->tie}};
  }
  return {{"name", shape_name(shapes, entry.key.shape)},
          {"shape", entry.key.shape},
          {"routing", entry.key.routing},
          {"device", entry.key.device},
          {"engine", entry.key.engine},
          {"knobs", knobs_set(entry.config)},
          {"wall_us", entry.wall_us},
          {"half_ci_us", entry.half_ci_us},
          {"runner_up", runner_up},
          {"source", entry.source},
          {"rest_ms", entry.rest_ms},
          {"date", entry.date},
          {"fusescope", entry.fusescope},
          {"table", table.path},
          {"shipped", table.shipped}};
}

void print_entry(const std::vector<Shape>& shapes, const sweep::TunedEntry& entry) {
  const std::string name = shape_name(shapes, entry.key.shape);
  const std::string numbers = name == entry.key.shape ? "" : " (" + entry.key.shape + ")";
  const std::string half = entry.half_ci_us > 0 ? fmt::format(" +- {:.1f}", entry.half_ci_us) : "";
  std::printf("  %s%s, %s on %s (%s)\n", name.c_str(), numbers.c_str(), entry.key.routing.c_str(),
              entry.key.device.c_str(), entry.key.engine.c_str());
  std::printf("    %s\n", wrapped(describe(entry.config), 4).c_str());
  std::printf("    %.1f%s us, %s\n", entry.wall_us, half.c_str(),
              entry.runner_up ? ("runner-up " + describe(*entry.runner_up)).c_str()
                              : "no other config ran");
  std::printf("    %s, %s, %s\n", describe_source(entry).c_str(), entry.date.c_str(),
              entry.fusescope.c_str());
}

}  // namespace

void list_tuned(bool json) {
  const std::vector<sweep::TunedTable> tables = sweep::tuned_tables(sweep::tuned_table_path());
  const std::vector<Shape> shapes = list_shapes();
  if (json) {
    OrderedJson rows = OrderedJson::array();
    for (const sweep::TunedTable& table : tables) {
      for (const sweep::TunedEntry& entry : table.entries) {
        rows.push_back(to_json(shapes, table, entry));
      }
    }
    std::printf("%s\n", rows.dump(2).c_str());
    return;
  }
  for (const sweep::TunedTable& table : tables) {
    std::printf("%s%s\n", describe(table).c_str(), table.entries.empty() ? ": no entries" : "");
    for (const sweep::TunedEntry& entry : table.entries) {
      print_entry(shapes, entry);
    }
  }
}

}  // namespace fusescope::cli
