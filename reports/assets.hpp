#pragma once
// The files of reports/assets and Chart.js, embedded at build time (embed.cmake), so that the program
// carries all that a report needs.

#include <string_view>

namespace fusescope::reports {

// "report.html", "report.css", ..., "chart.js". Empty for an unknown name, and for "chart.js" where the
// build found none.
std::string_view asset(std::string_view name);

}  // namespace fusescope::reports
