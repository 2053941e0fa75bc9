#pragma once
// The folder of `run --across`: series.json, and one run's folder per value of the knob.

#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "reports/rung_series.hpp"

namespace fusescope::cli {

inline constexpr const char* kSeriesFile = "series.json";

// "dispatch_comm_sms=4,8,16": one knob, two values or more. Throws InputError naming --across.
struct Across {
  std::string knob;
  std::vector<std::string> values;
  std::string folder(std::size_t i) const { return knob + "-" + values[i]; }
};
Across parse_across(const std::string& text);

Json series_document(const Across& across, const std::string& command);
bool holds_series(const std::string& folder);
// The runs of all values, read again. Throws InputError for one that is missing or has no rungs.
reports::SeriesInput read_series(const std::string& folder);

}  // namespace fusescope::cli
