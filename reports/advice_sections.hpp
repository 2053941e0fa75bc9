#pragma once
// Suggestions and the comparison with another run, as lists and tables; both renderers show the same.

#include <string>
#include <vector>

#include "reports/report.hpp"
#include "reports/table.hpp"

namespace fusescope::reports {

// One sentence a suggestion, best first; empty where there is none.
std::vector<std::string> suggestions(const ReportInput& input);
// The same with evidence and effects in columns, and what was tried and is not better.
Table suggestion_table(const ReportInput& input);
Table refuted_table(const ReportInput& input);
std::vector<std::string> advice_notes(const ReportInput& input);

Table compared_steps_table(const analysis::Comparison& comparison);
Table compared_uses_table(const analysis::Comparison& comparison);

}  // namespace fusescope::reports
