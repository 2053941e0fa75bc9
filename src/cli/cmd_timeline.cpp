// fusescope timeline: a recorded iteration, or another tool's trace, in a viewer's format.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/error.hpp"
#include "cli/attribute_trace.hpp"
#include "cli/command.hpp"
#include "cli/run_folder.hpp"
#include "timeline/import/read_trace.hpp"
#include "timeline/import/trace_writers.hpp"
#include "timeline/writers.hpp"

namespace fusescope::cli {
namespace {

struct TimelineOptions {
  std::string path;
  std::string format;
  std::string out;
  bool force = false;
};

constexpr const char* kFooter =
    "\nExamples:\n"
    "  fusescope timeline out/run -o run.pftrace          open it at ui.perfetto.dev\n"
    "  fusescope timeline out/quickstart --format chrome -o best.json\n"
    "  fusescope timeline profile.sqlite -o profile.pftrace      a trace of another tool";

const timeline::Format& chosen_format(const TimelineOptions& options) {
  if (!options.format.empty()) {
    return timeline::find_format(options.format);
  }
  const timeline::Format* by_path = timeline::format_of_path(options.out);
  if (by_path == nullptr) {
    std::string accepted = "--format, or a path that ends in";
    for (const timeline::Format& format : timeline::formats()) {
      accepted += fmt::format(" {}", format.extension);
    }
    throw InputError({"--out", options.out, "its ending names no format", accepted});
  }
  return *by_path;
}

int convert(const TimelineOptions& options, const timeline::Format& format) {
  const timeline::Trace trace = timeline::read_trace(options.path);
  timeline::write_trace(trace, options.out, format.name);
  std::printf("Written: %s (%s, %zu slices on GPUs, %zu on hosts)\n", options.out.c_str(),
              std::string(format.name).c_str(), trace.gpu.size(), trace.host.size());
  for (const std::string& note : trace.notes) {
    std::printf("note: %s\n", note.c_str());
  }
  return kFine;
}

int execute(const TimelineOptions& options) {
  const timeline::Format& format = chosen_format(options);
  if (!options.force && std::filesystem::is_regular_file(options.out)) {
    throw InputError({"--out", options.out, "exists", "a new path, or --force to replace it"});
  }
  if (is_foreign_trace(options.path)) {
    return convert(options, format);
  }
  const timeline::Timeline timeline = load_checked_timeline(timeline_file(options.path));
  timeline::write_timeline(timeline, options.out, format);
  std::printf("Written: %s (%s, %zu events on %zu tracks)\n", options.out.c_str(),
              std::string(format.name).c_str(), timeline.events.size(), timeline.tracks.size());
  return kFine;
}

}  // namespace

void add_timeline(CLI::App& app, Context& context) {
  const auto options = std::make_shared<TimelineOptions>();
  CLI::App* command = app.add_subcommand("timeline", "Write a recorded iteration for a viewer");
  command
      ->add_option("timeline", options->path,
                   "A timeline.fst, or the folder of a run or a sweep; or another tool's trace")
      ->type_name("DIR|FILE")
      ->required();
  std::string names;
  for (const timeline::Format& format : timeline::formats()) {
    names += fmt::format("{}{}: {}", names.empty() ? "" : "; ", format.name, format.meaning);
  }
  command->add_option("--format", options->format, names + " (default: by the ending of --out)")
      ->type_name("FORMAT");
  command->add_option("-o,--out", options->out, "File to write")->type_name("FILE")->required();
  command->add_flag("--force", options->force, "Replace --out if it exists");
  command->footer(kFooter);
  command->callback(
      [options, &context] { context.selected = [options] { return execute(*options); }; });
}

}  // namespace fusescope::cli
