#include "cli/sweep_folder.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "base/json_names.hpp"
#include "base/suggest.hpp"
#include "cli/files.hpp"
#include "sweep/exports.hpp"

namespace fusescope::cli {

namespace fs = std::filesystem;

std::vector<std::string> list_sweeps() {
  return json_names(sweeps_folder());
}

std::string find_sweep(const std::string& name_or_path) {
  if (fs::is_regular_file(name_or_path)) {
    return name_or_path;
  }
  std::string by_name = joined(sweeps_folder(), name_or_path + ".json");
  if (name_or_path.find('/') == std::string::npos && fs::is_regular_file(by_name)) {
    return by_name;
  }
  const std::vector<std::string> names = list_sweeps();
  if (fs::is_directory(name_or_path)) {
    throw InputError({name_or_path, "", "is a folder",
                      "the path of a sweep's JSON file, or a name of " + sweeps_folder() + ": " +
                          spoken_list(names)});
  }
  const std::string nearest = nearest_name(fs::path(name_or_path).stem().string(), names);
  throw InputError({name_or_path, "",
                    "there is no such sweep file" +
                        (nearest.empty() ? "" : ", did you mean \"" + nearest + "\"?"),
                    "the path of a sweep's JSON file, or a name of " + sweeps_folder() + ": " +
                        spoken_list(names)});
}

bool holds_sweep(const std::string& folder) {
  return fs::is_regular_file(joined(folder, kTrialsFile));
}

void require_sweep_folder(const std::string& folder) {
  if (!is_missing_or_empty(folder) && !holds_sweep(folder)) {
    throw InputError(
        {"--out", folder,
         fs::is_directory(folder) ? "holds other files and no trials.jsonl" : "is not a folder",
         "a new or empty folder, or one of an earlier run of this sweep"});
  }
}

void write_exports(const std::string& folder, const sweep::LogHeader& header,
                   const std::vector<sweep::Trial>& results) {
  write_text(joined(folder, kCsvFile), sweep::to_csv(results));
  write_text(joined(folder, kT4File), sweep::to_t4(results).dump(1) + "\n");
  write_text(joined(folder, kT4MetadataFile), sweep::to_t4_metadata(header).dump(1) + "\n");
}

SweepRecord read_sweep_folder(const std::string& folder) {
  SweepRecord record;
  record.log = sweep::read_trial_log(joined(folder, kTrialsFile));
  record.config = sweep::read_sweep_config(joined(folder, kSweepFile));
  return record;
}

}  // namespace fusescope::cli
