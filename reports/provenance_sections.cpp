// The tables on where the report and its numbers come from.

#include <fmt/format.h>

#include "reports/format.hpp"
#include "reports/sections.hpp"

namespace fusescope::reports {

Table run_table(const ReportInput& input) {
  Table table;
  table.caption = "What made this report";
  table.columns = {{"what"}, {"value"}};
  const auto add = [&](const char* what, const std::string& value, bool code = false) {
    if (!value.empty()) {
      table.rows.push_back({what, value});
      table.rows.back().back().code = code;
    }
  };
  add("sweep", input.name);
  add("problem", input.problem);
  add("numbers are",
      input.source.empty() ? std::string(timeline::name(input.provenance)) : input.source);
  add("sampled", input.sampling);
  add("engine", input.engine);
  add("device profile", input.profile);
  add("the profile", input.profile_about);
  add("command", input.command, true);
  add("made by", input.fusescope);
  add("date", input.date);
  if (input.rendered_by != input.fusescope) {
    add("report by", input.rendered_by);
  }
  if (input.chosen) {
    const timeline::Meta& meta = input.chosen->timeline.meta;
    add("run explained",
        input.chosen->name + (input.chosen->why.empty() ? "" : ", " + input.chosen->why));
    add("its config", meta.config, true);
    add("its iteration", meta.chosen);
    add("its clocks", meta.clock_bound_ns > 0 ? fmt::format("aligned to ± {} ns between ranks",
                                                            number(meta.clock_bound_ns))
                                              : std::string("one clock for all ranks"));
    add("records dropped",
        meta.dropped == 0 ? "none" : count(static_cast<long long>(meta.dropped)));
  }
  for (const auto& [what, path] : input.files) {
    table.rows.push_back({what, path});
    table.rows.back().back().code = true;
  }
  return table;
}

Table profile_table(const ReportInput& input) {
  Table table;
  table.caption = "Numbers of the device profile and where each comes from";
  table.columns = {{"number"}, {"value", true}, {"unit"}, {"origin"}, {"source"}};
  table.shown = 40;
  for (const ProfileNumber& row : input.profile_numbers) {
    table.rows.push_back({row.name, row.value, row.unit, row.origin, row.source});
  }
  return table;
}

}  // namespace fusescope::reports
