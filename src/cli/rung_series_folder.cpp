#include "cli/rung_series_folder.hpp"

#include <filesystem>
#include <sstream>

#include "base/error.hpp"
#include "base/version.hpp"
#include "cli/files.hpp"
#include "cli/run_folder.hpp"
#include "cli/run_rungs.hpp"
#include "layer/config.hpp"

namespace fusescope::cli {
namespace {

constexpr const char* kFormat = "fusescope-rung-series";

}  // namespace

Across parse_across(const std::string& text) {
  const std::size_t equals = text.find('=');
  Across across{text.substr(0, equals), {}};
  std::istringstream values(equals == std::string::npos ? "" : text.substr(equals + 1));
  for (std::string value; std::getline(values, value, ',');) {
    across.values.push_back(value);
  }
  if (across.values.size() < 2) {
    throw InputError({"--across", text, "names no two values of a knob",
                      "a knob and its values, as in dispatch_comm_sms=4,8,16,32"});
  }
  for (const std::string& value : across.values) {
    Config config;
    set_knob_text(config, across.knob + "=" + value,
                  "--across");  // refuses what is no such knob or value
  }
  return across;
}

Json series_document(const Across& across, const std::string& command) {
  return {{"format", kFormat},      {"version", 1},      {"fusescope", version_line()},
          {"command", command},     {"date", utc_now()}, {"knob", across.knob},
          {"values", across.values}};
}

bool holds_series(const std::string& folder) {
  return std::filesystem::is_regular_file(joined(folder, kSeriesFile));
}

reports::SeriesInput read_series(const std::string& folder) {
  const std::string file = joined(folder, kSeriesFile);
  const Json document = read_json_file(file);
  const JsonReader reader(file, document);
  const JsonReader format = reader.at("format");
  if (format.as_string() != kFormat) {
    format.refuse("is not the folder of `run --across`", kFormat);
  }
  Across across{reader.at("knob").as_string(), {}};
  const JsonReader values = reader.at("values");
  for (std::size_t i = 0; i < values.size(); ++i) {
    across.values.push_back(values.element(i).as_string());
  }
  if (across.values.empty()) {
    values.refuse("is empty", "the values that were run");
  }
  reports::SeriesInput input;
  input.command = reader.at("command").as_string();
  input.date = reader.at("date").as_string();
  input.fusescope = reader.at("fusescope").as_string();
  input.series.knob = across.knob;
  for (std::size_t i = 0; i < across.values.size(); ++i) {
    const std::string run = joined(folder, across.folder(i));
    const RunRecord record = read_run(run);
    std::optional<analysis::Rungs> rungs = read_rungs(joined(run, kRunFile));
    if (!rungs) {
      throw InputError({joined(run, kRunFile), "rungs", "there are none", "a run with --rungs"});
    }
    if (input.folders.empty()) {
      input.problem = record.problem;
      input.config = describe(record.config);
      input.source = record.source;
      input.sampling = record.sampling();
      input.provenance = record.provenance;
    }
    input.series.values.push_back(across.values[i]);
    input.series.rungs.push_back(std::move(*rungs));
    input.folders.push_back(across.folder(i));
  }
  return input;
}

}  // namespace fusescope::cli
