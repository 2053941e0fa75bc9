// fusescope attribute: which steps of a recorded iteration expose how much communication, and why; and
// which kernels of a trace from elsewhere do.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/attribute_trace.hpp"
#include "cli/command.hpp"
#include "cli/common_options.hpp"
#include "cli/compared_run.hpp"
#include "cli/run_advice.hpp"
#include "cli/run_folder.hpp"
#include "cli/run_rungs.hpp"
#include "cli/text.hpp"

namespace fusescope::cli {
namespace {

struct AttributeOptions {
  std::vector<std::string> paths;
  std::string rules;
  std::string report;
  std::string command;
  EvidenceOptions evidence;
  std::string profile;
  bool advice = true;
  int rows = 20;
  bool json = false;
};

constexpr const char* kFooter =
    "\nExamples:\n"
    "  fusescope attribute out/run\n"
    "  fusescope attribute out/quickstart                 the sweep's best config\n"
    "  fusescope attribute out/run/timeline.fst --json --rows 100\n"
    "  fusescope attribute out/tuned --against out/run    what got faster, step by step\n"
    "  fusescope attribute rank*.json.gz --report out/attribution   PyTorch profiler, all ranks\n"
    "  fusescope attribute profile.sqlite --rules hta               of nsys export --type sqlite";

// A recorded iteration of the layer.
int attribute_iteration(const AttributeOptions& options) {
  if (!options.rules.empty() || !options.report.empty()) {
    throw InputError({options.rules.empty() ? "--report" : "--rules", "",
                      "is for traces of other tools, and this is a timeline of fusescope",
                      "a PyTorch profiler trace or a Nsight Systems export; `fusescope report` for "
                      "runs and sweeps"});
  }
  const std::string file = timeline_file(options.paths.front());
  const timeline::Timeline timeline = load_checked_timeline(file);
  analysis::Attribution attribution = analysis::attribute(timeline);
  const std::optional<analysis::Rungs> rungs = read_rungs(file);
  if (rungs) {
    attribution.exposure = analysis::state_exposure(timeline, attribution, &*rungs);
  }
  const bool advise = options.advice && attribution.refusal.empty();
  const analysis::Advice advice =
      advise ? advise_run({file, options.evidence.sweep, options.profile}, timeline, attribution)
             : analysis::Advice{};
  if (options.json) {
    Json document = Json::parse(analysis::to_json(attribution, timeline, options.rows));
    if (rungs) {
      document["rungs"] = Json::parse(analysis::to_json(*rungs));
    }
    if (advise) {
      document["advice"] = Json::parse(analysis::to_json(advice));
    }
    std::printf("%s\n", document.dump(2).c_str());
  } else {
    const timeline::Meta& meta = timeline.meta;
    std::printf("problem   %s\nconfig    %s\nsource    %s on %s\nchosen    %s\n\n%s",
                meta.problem.c_str(), meta.config.c_str(),
                std::string(timeline::name(meta.provenance)).c_str(), meta.device.c_str(),
                meta.chosen.c_str(),
                attribution_text(attribution, static_cast<std::size_t>(options.rows)).c_str());
    if (rungs) {
      std::printf("\n%s", analysis::rungs_text(*rungs).c_str());
    }
    std::printf("%s", advise ? advice_text(advice).c_str() : "");
  }
  return attribution.refusal.empty() ? kFine : kCheckFailed;
}

int compare(const AttributeOptions& options) {
  if (options.paths.size() != 1 || is_foreign_trace(options.paths.front()) ||
      is_foreign_trace(options.evidence.against)) {
    throw InputError({"--against", options.evidence.against, "compares two runs of fusescope",
                      "one run and one to compare it with, each a folder or a timeline.fst"});
  }
  const analysis::Comparison comparison =
      compare_paths(options.paths.front(), options.evidence.against, options.evidence.unlike);
  std::printf("%s", options.json ? (analysis::to_json(comparison) + "\n").c_str()
                                 : comparison_text(comparison).c_str());
  return kFine;
}

int execute(const AttributeOptions& options) {
  if (!options.evidence.against.empty()) {
    return compare(options);
  }
  if (options.paths.size() == 1 && !is_foreign_trace(options.paths.front())) {
    return attribute_iteration(options);
  }
  TraceOptions trace;
  trace.files = options.paths;
  trace.rules = options.rules.empty() ? "default" : options.rules;
  trace.report = options.report;
  trace.command = options.command;
  trace.rows = options.rows;
  trace.json = options.json;
  return attribute_trace(trace);
}

}  // namespace

void add_attribute(CLI::App& app, Context& context) {
  const auto options = std::make_shared<AttributeOptions>();
  CLI::App* command = app.add_subcommand(
      "attribute", "Say where the time of a recorded iteration, or of another tool's trace, went");
  command
      ->add_option("timeline", options->paths,
                   "A timeline.fst, or the folder of a run or a sweep; or traces of a PyTorch "
                   "profiler (.json, .json.gz; several ranks) or Nsight Systems (.sqlite)")
      ->type_name("DIR|FILE")
      ->required();
  options->evidence.add_to(*command);
  command
      ->add_option("--profile", options->profile,
                   "Device profile that predicts what is suggested (default: the device's)")
      ->type_name("PROFILE");
  command->add_flag("--advice,!--no-advice", options->advice,
                    "End with suggestions, each simulated or measured (default)");
  command->add_option("--rows", options->rows, "Rows of each list")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON instead of text; times in ns");
  command
      ->add_option(
          "--rules", options->rules,
          "Traces: what counts as communication: default, hta (as Holistic Trace Analysis) "
          "or a JSON file")
      ->type_name("NAME|FILE");
  command->add_option("--report", options->report, "Traces: write report.md and report.html there")
      ->type_name("DIR");
  command->footer(kFooter);
  command->callback([options, &context] {
    options->command = context.command;
    context.selected = [options] { return execute(*options); };
  });
}

}  // namespace fusescope::cli
