#include "reports/advice_sections.hpp"

#include <fmt/format.h>

#include "reports/format.hpp"

namespace fusescope::reports {

namespace {

std::string effect(const std::optional<analysis::Effect>& effect) {
  if (!effect) {
    return "";
  }
  return signed_us(effect->delta_us) +
         (effect->half_ci_us > 0 ? " ± " + us(effect->half_ci_us) : "");
}

Table changes(const std::vector<analysis::Suggestion>& suggestions, const std::string& caption) {
  Table table;
  table.caption = caption;
  table.columns = {{"change"}, {"evidence"}, {"simulated [µs]", true}, {"measured [µs]", true}};
  for (const analysis::Suggestion& each : suggestions) {
    Cell change(fmt::format("{} {} → {}", each.knob, each.from, each.to));
    change.code = true;
    table.rows.push_back({change, each.evidence, effect(each.simulated), effect(each.measured)});
  }
  return table;
}

Table differences(const std::vector<analysis::Difference>& rows, const std::string& caption) {
  Table table;
  table.caption = caption;
  table.columns = {{"part"},
                   {"this run [µs]", true},
                   {"that run [µs]", true},
                   {"change [µs]", true},
                   {"verdict"}};
  double a = 0;
  double b = 0;
  for (const analysis::Difference& row : rows) {
    table.rows.push_back({row.name, us(row.a_us), us(row.b_us), signed_us(row.delta_us()),
                          std::string(analysis::name(row.change))});
    a += row.a_us;
    b += row.b_us;
  }
  table.total = {"sum", us(a), us(b), signed_us(a - b), ""};
  return table;
}

}  // namespace

std::vector<std::string> suggestions(const ReportInput& input) {
  std::vector<std::string> sentences;
  if (input.advice) {
    for (const analysis::Suggestion& each : input.advice->ranked) {
      sentences.push_back(analysis::sentence(each) + ".");
    }
  }
  return sentences;
}

Table suggestion_table(const ReportInput& input) {
  return input.advice ? changes(input.advice->ranked, "What the wall would do") : Table{};
}

Table refuted_table(const ReportInput& input) {
  return input.advice ? changes(input.advice->refuted, "Tried, and not better") : Table{};
}

std::vector<std::string> advice_notes(const ReportInput& input) {
  std::vector<std::string> notes;
  if (!input.advice) {
    return notes;
  }
  if (input.advice->ranked.empty()) {
    notes.push_back(fmt::format("No change of one knob promises more than the noise, {} µs.",
                                us(input.advice->noise_us)));
  }
  if (!input.advice->profile.empty()) {
    notes.push_back("Predictions are simulated on " + input.advice->profile +
                    ": this config against its neighbour.");
  }
  for (const std::string& note : input.advice->notes) {
    notes.push_back(note + ".");
  }
  return notes;
}

Table compared_steps_table(const analysis::Comparison& comparison) {
  return differences(comparison.steps, "Critical paths of the two recorded iterations");
}

Table compared_uses_table(const analysis::Comparison& comparison) {
  return differences(comparison.uses, "SM time of the two, mean per SM");
}

}  // namespace fusescope::reports
