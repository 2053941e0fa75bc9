// fusescope report: what a sweep or a run found, as Markdown and one HTML page.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/error.hpp"
#include "cli/command.hpp"
#include "cli/common_options.hpp"
#include "cli/compared_run.hpp"
#include "cli/report_input.hpp"
#include "cli/run_folder.hpp"
#include "cli/rung_series_folder.hpp"
#include "cli/sweep_folder.hpp"

namespace fusescope::cli {
namespace {

struct ReportOptions {
  std::string folder;
  std::string out;
  EvidenceOptions evidence;
};

constexpr const char* kFooter =
    "\nreport.html opens offline and holds everything it shows.\n"
    "\nExamples:\n"
    "  fusescope report out/quickstart\n"
    "  fusescope report out/run -o out/run-report\n"
    "  fusescope report out/tuned --against out/run";

int say_written(const reports::ReportFiles& files) {
  for (const std::string& path : files.paths) {
    std::printf("Written: %s\n", path.c_str());
  }
  if (!files.note.empty()) {
    std::printf("%s\n", files.note.c_str());
  }
  return kFine;
}

int execute(const ReportOptions& options) {
  const std::string out = options.out.empty() ? options.folder : options.out;
  if (holds_series(options.folder)) {
    return say_written(reports::write_series_report(read_series(options.folder), out));
  }
  const bool sweep = holds_sweep(options.folder);
  if (!sweep && !holds_run(options.folder)) {
    throw InputError({options.folder, "",
                      std::filesystem::is_directory(options.folder)
                          ? "the folder holds no trials.jsonl, no run.json and no series.json"
                          : "is not a folder",
                      "the folder of a sweep, of a run or of run --across"});
  }
  reports::ReportInput input =
      sweep ? sweep_report_input(options.folder) : run_report_input(options.folder);
  add_advice(input, options.folder, options.evidence.sweep);
  if (!options.evidence.against.empty()) {
    input.comparison =
        compare_paths(options.folder, options.evidence.against, options.evidence.unlike);
  }
  return say_written(reports::write_report(input, out));
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Write report.html and report.md");
  command
      ->add_option("folder", options->folder, "The folder of a sweep, of a run or of run --across")
      ->type_name("DIR")
      ->required();
  command->add_option("-o,--out", options->out, "Folder for the report (default: the same)")
      ->type_name("DIR");
  options->evidence.add_to(*command);
  command->footer(kFooter);
  command->callback(
      [options, &context] { context.selected = [options] { return execute(*options); }; });
}

}  // namespace fusescope::cli
