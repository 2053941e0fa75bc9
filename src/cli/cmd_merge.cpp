// fusescope merge: the logs of a sweep's shards become the log of the whole sweep.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/error.hpp"
#include "base/file_bytes.hpp"
#include "cli/command.hpp"
#include "cli/files.hpp"
#include "cli/sweep_folder.hpp"
#include "sweep/exports.hpp"
#include "sweep/merge.hpp"
#include "sweep/results.hpp"
#include "sweep/summary.hpp"

namespace fusescope::cli {
namespace {

struct MergeOptions {
  std::vector<std::string> folders;
  std::string out;
  std::size_t top = 10;
};

constexpr const char* kFooter =
    "\nFinalists and the ladder belong to one machine's sweep and are left out: the same sweep "
    "without\n"
    "--shard, with --out on the merged folder, finds its search complete and goes on with them.\n"
    "\nExamples:\n"
    "  fusescope sweep sm-split --shard 1/2 --out out/shard-1    on one machine\n"
    "  fusescope sweep sm-split --shard 2/2 --out out/shard-2    on another\n"
    "  fusescope merge out/shard-1 out/shard-2 --out out/sm-split";

void say(const sweep::Merged& merged, std::size_t logs) {
  std::fprintf(stderr, "%zu trials of %zu logs.\n", merged.trials.size(), logs);
  if (merged.repeated > 0) {
    std::fprintf(stderr, "%lld were in several logs: the first one counts.\n", merged.repeated);
  }
  if (merged.left_out > 0) {
    std::fprintf(stderr, "%lld finalists' and rungs' trials are left out.\n", merged.left_out);
  }
  for (const std::string& path : merged.torn) {
    std::fprintf(stderr, "%s: the last line is cut off: its trial had not ended\n", path.c_str());
  }
  for (const std::string& shard : merged.missing) {
    std::fprintf(stderr, "Shard %s is missing.\n", shard.c_str());
  }
}

int execute(const MergeOptions& options, const Context& context) {
  if (!is_missing_or_empty(options.out)) {
    throw InputError({"--out", options.out, "is not empty", "a new or empty folder"});
  }
  std::vector<std::string> logs;
  for (const std::string& folder : options.folders) {
    logs.push_back(std::filesystem::is_directory(folder) ? joined(folder, kTrialsFile) : folder);
  }
  const sweep::Merged merged = sweep::merge_logs(logs, context.command);
  say(merged, logs.size());
  make_folder(options.out, "--out");
  write_text(joined(options.out, kTrialsFile), sweep::to_text(merged));
  const std::string config =
      joined(std::filesystem::path(logs.front()).parent_path().string(), kSweepFile);
  if (std::filesystem::is_regular_file(config)) {
    write_text(joined(options.out, kSweepFile), read_file_bytes(config));
  }
  const std::vector<sweep::Trial> results = sweep::latest(merged.trials);
  write_exports(options.out, merged.header, results);
  std::printf("%s\nMerged: %s\n", sweep::summary_text(results, {options.top, {}}).c_str(),
              joined(options.out, kTrialsFile).c_str());
  return kFine;
}

}  // namespace

void add_merge(CLI::App& app, Context& context) {
  const auto options = std::make_shared<MergeOptions>();
  CLI::App* command = app.add_subcommand("merge", "Join the trial logs of a sweep's shards");
  command->add_option("folders", options->folders, "The shards' folders, or their trials.jsonl")
      ->type_name("DIR...")
      ->required();
  command->add_option("--out", options->out, "A new folder for the whole sweep")
      ->type_name("DIR")
      ->required();
  command->add_option("--top", options->top, "Rows of the table")->capture_default_str();
  command->footer(kFooter);
  command->callback([options, &context] {
    context.selected = [options, &context] { return execute(*options, context); };
  });
}

}  // namespace fusescope::cli
