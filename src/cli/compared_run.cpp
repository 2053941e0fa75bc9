#include "cli/compared_run.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.hpp"
#include "cli/files.hpp"
#include "cli/run_folder.hpp"
#include "cli/text.hpp"

namespace fusescope::cli {
namespace {

namespace fs = std::filesystem;

void take_timeline(const std::string& file, analysis::ComparedRun& run) {
  const timeline::Timeline timeline = load_checked_timeline(file);
  const timeline::Meta& meta = timeline.meta;
  run.problem = meta.problem;
  run.config = meta.config;
  run.device = meta.device;
  run.provenance = meta.provenance;
  run.attribution = analysis::attribute(timeline);
  if (meta.unrecorded_us > 0) {
    run.recording_cost = meta.recorded_us / meta.unrecorded_us - 1;
  }
}

void take_record(const RunRecord& record, analysis::ComparedRun& run) {
  run.samples_us = record.samples_us;
  run.sampling = record.sampling();
  if (run.attribution.wall_ns == 0) {
    run.problem = record.problem;
    run.config = describe(record.config);
    run.device = record.device;
    run.provenance = record.provenance;
  }
}

std::string table_text(const char* title, const std::vector<analysis::Difference>& rows) {
  std::string text =
      fmt::format("\n{:<20} {:>10} {:>10} {:>10}\n", title, "this us", "that us", "change");
  for (const analysis::Difference& row : rows) {
    text += fmt::format("{:<20} {:>10.1f} {:>10.1f} {:>+10.1f}  {}\n", row.name, row.a_us, row.b_us,
                        row.delta_us(), analysis::name(row.change));
  }
  return text;
}

}  // namespace

analysis::ComparedRun load_compared_run(const std::string& path) {
  analysis::ComparedRun run;
  run.name = path;
  const bool without_timeline = fs::is_directory(path) && holds_run(path) &&
                                !fs::is_regular_file(joined(path, kTimelineFile));
  if (without_timeline) {
    take_record(read_run(path), run);
    return run;
  }
  const std::string file = timeline_file(path);
  take_timeline(file, run);
  const std::string folder = fs::path(file).parent_path().string();
  // A timeline of another name was copied there: the run.json is not about it.
  if (fs::path(file).filename() == kTimelineFile && holds_run(folder)) {
    take_record(read_run(folder), run);
  }
  return run;
}

analysis::Comparison compare_paths(const std::string& path, const std::string& against,
                                   bool even_unlike) {
  analysis::ComparedRun a = load_compared_run(path);
  analysis::ComparedRun b = load_compared_run(against);
  const std::string why = unlike(a, b);
  if (!why.empty() && !even_unlike) {
    throw InputError({"--against", against, why,
                      "a run of the same problem, or --unlike to compare them all the same"});
  }
  return analysis::compare(std::move(a), std::move(b));
}

std::string comparison_text(const analysis::Comparison& comparison) {
  const analysis::ComparedRun& a = comparison.a;
  const analysis::ComparedRun& b = comparison.b;
  std::string text = fmt::format(
      "this      {}: {}, {}\n          {}\nthat      {}: {}, {}\n          {}\n\n{}\n", a.name,
      timeline::name(a.provenance), a.device, a.config, b.name, timeline::name(b.provenance),
      b.device, b.config, wrapped(comparison.headline, 0));
  text += table_text("", {comparison.wall});
  if (!comparison.steps.empty()) {
    text += table_text("critical path", comparison.steps);
    text += table_text("SM time, mean", comparison.uses);
  }
  for (const std::string& caveat : comparison.caveats) {
    text += fmt::format("\n{}\n", wrapped("Caveat: " + caveat, 4));
  }
  return text;
}

}  // namespace fusescope::cli
