// fusescope report: what a sweep or a run found, as Markdown and one HTML page.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/error.hpp"
#include "cli/command.hpp"
#include "cli/report_input.hpp"
#include "cli/run_folder.hpp"
#include "cli/sweep_folder.hpp"

namespace fusescope::cli {
namespace {

struct ReportOptions {
  std::string folder;
  std::string out;
};

constexpr const char* kFooter =
    "\nreport.html opens offline and holds everything it shows.\n"
    "\nExamples:\n"
    "  fusescope report out/quickstart\n"
    "  fusescope report out/run -o out/run-report";

int execute(const ReportOptions& options) {
  const bool sweep = holds_sweep(options.folder);
  if (!sweep && !holds_run(options.folder)) {
    throw InputError({options.folder, "",
                      std::filesystem::is_directory(options.folder)
                          ? "the folder holds no trials.jsonl and no run.json"
                          : "is not a folder",
                      "the folder of a sweep or of a run"});
  }
  const reports::ReportInput input =
      sweep ? sweep_report_input(options.folder) : run_report_input(options.folder);
  const reports::ReportFiles files =
      reports::write_report(input, options.out.empty() ? options.folder : options.out);
  for (const std::string& path : files.paths) {
    std::printf("Written: %s\n", path.c_str());
  }
  if (!files.note.empty()) {
    std::printf("%s\n", files.note.c_str());
  }
  return kFine;
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Write report.html and report.md");
  command->add_option("folder", options->folder, "The folder of a sweep or a run")
      ->type_name("DIR")
      ->required();
  command->add_option("-o,--out", options->out, "Folder for the report (default: the same)")
      ->type_name("DIR");
  command->footer(kFooter);
  command->callback(
      [options, &context] { context.selected = [options] { return execute(*options); }; });
}

}  // namespace fusescope::cli
