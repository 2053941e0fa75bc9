#include "analysis/trace/rules.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "analysis/trace/rules_data.hpp"
#include "base/error.hpp"
#include "base/json_reader.hpp"

namespace fusescope::analysis {
namespace {

using timeline::GpuKind;

const std::vector<std::string>& class_names() {
  static const std::vector<std::string> kNames = {"compute", "fused", "communication", "unclear",
                                                  "memory",  "sync",  "enclosing"};
  return kNames;
}

std::string squeezed(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c != '_' && c != '-') {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

std::vector<std::string> texts(const JsonReader& object, const std::string& key) {
  std::vector<std::string> out;
  if (object.has(key)) {
    const JsonReader list = object.at(key);
    for (std::size_t i = 0; i < list.size(); ++i) {
      out.push_back(list.element(i).as_string());
      if (out.back().empty()) {
        list.element(i).refuse("an empty text fits every name", "a part of a kernel's name");
      }
    }
  }
  return out;
}

WorkClass class_of(const JsonReader& value) {
  return static_cast<WorkClass>(value.as_choice(class_names()));
}

Rule read_rule(const JsonReader& object) {
  object.only({"class", "starts", "contains", "loosely", "category"});
  Rule rule;
  rule.work = class_of(object.at("class"));
  rule.starts = texts(object, "starts");
  rule.contains = texts(object, "contains");
  for (const std::string& text : texts(object, "loosely")) {
    rule.loosely.push_back(squeezed(text));
  }
  if (object.has("category")) {
    const JsonReader list = object.at("category");
    for (std::size_t i = 0; i < list.size(); ++i) {
      rule.category.push_back(
          static_cast<GpuKind>(list.element(i).as_choice({"kernel", "memcpy", "memset", "sync"})));
    }
  }
  if (rule.starts.empty() && rule.contains.empty() && rule.loosely.empty() &&
      rule.category.empty()) {
    object.refuse("a rule that fits nothing",
                  "at least one of starts, contains, loosely, category");
  }
  return rule;
}

Rules read_rules(const std::string& file, const Json& json) {
  const JsonReader root(file, json);
  root.only({"name", "about", "rules", "otherwise", "in_kernel", "sync_is_idle",
             "whole_microseconds", "drop_last_profiler_step"});
  Rules rules;
  rules.name = root.at("name").as_string();
  const JsonReader list = root.at("rules");
  for (std::size_t i = 0; i < list.size(); ++i) {
    rules.rules.push_back(read_rule(list.element(i)));
  }
  if (root.has("otherwise")) {
    rules.otherwise = class_of(root.at("otherwise"));
  }
  if (root.has("in_kernel")) {
    const JsonReader table = root.at("in_kernel");
    table.only(class_names());
    for (int i = 0; i < kWorkClasses; ++i) {
      rules.in_kernel[static_cast<std::size_t>(i)] =
          texts(table, class_names()[static_cast<std::size_t>(i)]);
    }
  }
  const auto flag = [&](const char* key, bool otherwise) {
    return root.has(key) ? root.at(key).as_bool() : otherwise;
  };
  rules.sync_is_idle = flag("sync_is_idle", true);
  rules.whole_microseconds = flag("whole_microseconds", false);
  rules.drop_last_profiler_step = flag("drop_last_profiler_step", false);
  return rules;
}

bool any(const std::vector<std::string>& wanted, std::string_view name) {
  return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& each) {
    return name.find(each) != std::string_view::npos;
  });
}

}  // namespace

std::string_view name(WorkClass work) {
  return class_names()[static_cast<std::size_t>(work)];
}

WorkClass Rules::classify(std::string_view kernel, GpuKind kind) const {
  if (kind == GpuKind::record) {
    for (std::size_t i = 0; i < in_kernel.size(); ++i) {
      if (std::find(in_kernel[i].begin(), in_kernel[i].end(), kernel) != in_kernel[i].end()) {
        return static_cast<WorkClass>(i);
      }
    }
  }
  const std::string loose = squeezed(kernel);
  for (const Rule& rule : rules) {
    const bool fits =
        std::find(rule.category.begin(), rule.category.end(), kind) != rule.category.end() ||
        std::any_of(rule.starts.begin(), rule.starts.end(),
                    [&](const std::string& each) { return kernel.starts_with(each); }) ||
        any(rule.contains, kernel) || any(rule.loosely, loose);
    if (fits) {
      return rule.work;
    }
  }
  return otherwise;
}

Rules load_rules(const std::string& name_or_path) {
  const auto built_in = [](std::string_view wanted) -> std::optional<Rules> {
    for (const auto& [name, text] : rules_data()) {
      if (name == wanted) {
        return read_rules("built-in rules " + std::string(name), Json::parse(text));
      }
    }
    return std::nullopt;
  };
  std::optional<Rules> rules = built_in(name_or_path);
  if (!rules) {
    rules = read_rules(name_or_path, read_json_file(name_or_path));
  }
  const bool knows_records =
      std::any_of(rules->in_kernel.begin(), rules->in_kernel.end(),
                  [](const std::vector<std::string>& names) { return !names.empty(); });
  if (!knows_records) {
    rules->in_kernel = built_in("default").value().in_kernel;
  }
  return *std::move(rules);
}

std::vector<WorkClass> classify(const timeline::Trace& trace, const Rules& rules) {
  // Each distinct name and kind once; kinds are few.
  constexpr std::size_t kKinds = static_cast<std::size_t>(GpuKind::record) + 1;
  constexpr auto kUnknown = static_cast<std::uint8_t>(kWorkClasses);
  std::vector<std::uint8_t> known(trace.names.size() * kKinds, kUnknown);
  std::vector<WorkClass> classes(trace.gpu.size());
  for (std::size_t i = 0; i < trace.gpu.size(); ++i) {
    const timeline::GpuSlice& slice = trace.gpu[i];
    std::uint8_t& work = known[slice.name * kKinds + static_cast<std::size_t>(slice.kind)];
    if (work == kUnknown) {
      work = static_cast<std::uint8_t>(rules.classify(trace.names[slice.name], slice.kind));
    }
    classes[i] = static_cast<WorkClass>(work);
  }
  return classes;
}

}  // namespace fusescope::analysis
