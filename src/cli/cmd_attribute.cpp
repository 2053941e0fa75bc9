// fusescope attribute: which steps of a recorded iteration expose how much communication, and why.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/command.hpp"
#include "cli/run_folder.hpp"
#include "cli/text.hpp"

namespace fusescope::cli {
namespace {

struct AttributeOptions {
  std::string path;
  int rows = 20;
  bool json = false;
};

constexpr const char* kFooter =
    "\nExamples:\n"
    "  fusescope attribute out/run\n"
    "  fusescope attribute out/quickstart                 the sweep's best config\n"
    "  fusescope attribute out/run/timeline.fst --json --rows 100";

int execute(const AttributeOptions& options) {
  const std::string file = timeline_file(options.path);
  const timeline::Timeline timeline = load_checked_timeline(file);
  const analysis::Attribution attribution = analysis::attribute(timeline);
  if (options.json) {
    std::printf("%s\n", analysis::to_json(attribution, timeline, options.rows).c_str());
  } else {
    const timeline::Meta& meta = timeline.meta;
    std::printf("problem   %s\nconfig    %s\nsource    %s on %s\nchosen    %s\n\n%s",
                meta.problem.c_str(), meta.config.c_str(),
                std::string(timeline::name(meta.provenance)).c_str(), meta.device.c_str(),
                meta.chosen.c_str(),
                attribution_text(attribution, static_cast<std::size_t>(options.rows)).c_str());
  }
  return attribution.refusal.empty() ? kFine : kCheckFailed;
}

}  // namespace

void add_attribute(CLI::App& app, Context& context) {
  const auto options = std::make_shared<AttributeOptions>();
  CLI::App* command =
      app.add_subcommand("attribute", "Say where a recorded iteration's time went, and why");
  command
      ->add_option("timeline", options->path, "A timeline.fst, or the folder of a run or a sweep")
      ->type_name("DIR|FILE")
      ->required();
  command->add_option("--rows", options->rows, "Rows of each list")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON instead of text; times in ns");
  command->footer(kFooter);
  command->callback(
      [options, &context] { context.selected = [options] { return execute(*options); }; });
}

}  // namespace fusescope::cli
