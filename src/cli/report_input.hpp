#pragma once
// What lies in a sweep's or a run's folder, as the reports want it.

#include <string>

#include "reports/report.hpp"

namespace fusescope::cli {

// Throws InputError naming what is missing or malformed. Where the sweep was simulated, the figures that
// were published about the profile's machine are predicted anew, which runs a few simulations.
reports::ReportInput sweep_report_input(const std::string& folder);
reports::ReportInput run_report_input(const std::string& folder);

}  // namespace fusescope::cli
