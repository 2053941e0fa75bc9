#pragma once
// What lies in a sweep's or a run's folder, as the reports want it.

#include <string>

#include "reports/report.hpp"

namespace fusescope::cli {

// Throws InputError naming what is missing or malformed. Where the sweep was simulated, the figures that
// were published about the profile's machine are predicted anew, which runs a few simulations.
reports::ReportInput sweep_report_input(const std::string& folder);
reports::ReportInput run_report_input(const std::string& folder);

// Suggestions for the run that the report explains, if it explains one: from its attribution, and what they
// are worth by the simulator and by the sweep (its own, or the folder `sweep`).
void add_advice(reports::ReportInput& input, const std::string& folder, const std::string& sweep);

}  // namespace fusescope::cli
