#pragma once
// Which kernel is communication: rules as data. Two sets are built in ("default", "hta"); a file in the
// same form replaces them (analysis/trace/rules/default.json shows every key).

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/import/trace.hpp"

namespace fusescope::analysis {

enum class WorkClass : std::uint8_t {
  compute,
  fused,  // communication and computation in one kernel: its inside is not in the trace
  communication,
  unclear,  // looks like communication, but no rule says so: listed, never counted as compute
  memory,
  sync,       // waits of a stream: no work
  enclosing,  // a kernel whose inside is recorded: not counted beside its own parts
};
inline constexpr int kWorkClasses = static_cast<int>(WorkClass::enclosing) + 1;
std::string_view name(WorkClass work);

struct Rule {
  WorkClass work = WorkClass::compute;
  std::vector<std::string> starts;
  std::vector<std::string> contains;
  std::vector<std::string> loosely;  // squeezed: lower case, without '_' and '-'
  std::vector<timeline::GpuKind> category;
};

struct Rules {
  std::string name;
  std::vector<Rule> rules;  // the first that fits decides
  WorkClass otherwise = WorkClass::compute;
  // In-kernel records of fusescope timelines, by name; the built-in default's where a file has none.
  std::array<std::vector<std::string>, kWorkClasses> in_kernel;
  bool sync_is_idle = true;
  bool whole_microseconds = false;  // only of files whose times are microseconds
  bool drop_last_profiler_step = false;

  WorkClass classify(std::string_view kernel, timeline::GpuKind kind) const;
};

// "default", "hta", or the path of a JSON file. Throws InputError naming file and JSON path.
Rules load_rules(const std::string& name_or_path);

// The class of each slice of `trace.gpu`.
std::vector<WorkClass> classify(const timeline::Trace& trace, const Rules& rules);

}  // namespace fusescope::analysis
