#include "cli/sweep_reports.hpp"

#include <vector>

#include "cli/files.hpp"
#include "cli/report_input.hpp"
#include "cli/run_folder.hpp"
#include "timeline/writers.hpp"

namespace fusescope::cli {

void write_sweep_reports(const std::string& folder, std::FILE* out) {
  reports::ReportInput input = sweep_report_input(folder);
  std::vector<std::string> paths;
  if (input.chosen) {
    const timeline::Format format = timeline::find_format("perfetto");
    paths.push_back(joined(folder, kBestFolder) + std::string(format.extension));
    timeline::write_timeline(input.chosen->timeline, paths.back(), format);
  }
  // The input is read again, because the report lists the files that lie beside it.
  input = sweep_report_input(folder);
  add_advice(input, folder, "");
  const reports::ReportFiles files = reports::write_report(input, folder);
  paths.insert(paths.end(), files.paths.begin(), files.paths.end());
  for (const std::string& path : paths) {
    std::fprintf(out, "Written: %s\n", path.c_str());
  }
  if (!files.note.empty()) {
    std::fprintf(stderr, "%s\n", files.note.c_str());
  }
}

}  // namespace fusescope::cli
