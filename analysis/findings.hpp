#pragma once
// Words for the steps of a critical path: one sentence per step with the numbers that back it.

#include <cstdint>
#include <string>

#include "analysis/critical_path.hpp"
#include "analysis/wait_table.hpp"
#include "timeline/dependencies.hpp"

namespace fusescope::analysis {

// Why this step is on the path; "" where its name says it all.
std::string reason(Step step, const timeline::Dependencies& dependencies, const CriticalPath& path,
                   const WaitTable& waits);

std::string spoken_us(std::int64_t ns);     // "1,234.5 us"
std::string spoken_share(double fraction);  // "9.1%"

}  // namespace fusescope::analysis
