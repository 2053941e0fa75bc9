// fusescope check: everything about a problem that can be checked without a GPU; with --engine cuda, the
// layer on the GPUs, end to end; with --search, the kernels' protocol under many schedules.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/check_search.hpp"
#include "cli/command.hpp"
#include "cli/common_options.hpp"
#include "engine/gpus.hpp"
#include "layer/check.hpp"

namespace fusescope::cli {
namespace {

struct CheckOptions {
  CheckOptions() { engine.engine = "sim"; }  // the GPUs are checked when they are asked for

  ProblemOptions problem;
  ConfigOptions config;
  EngineFlags engine;
  SearchFlags search;
  std::uint64_t seed = 1;
  bool json = false;
};

constexpr const char* kFooter =
    "\nSchedule tables: the plain host loops against both Thrust builds, element by element, and "
    "every\n"
    "invariant. Dataflow: the real tables drive the layer in fp32 against a naive reference.\n"
    "With --engine cuda, on the GPUs instead: the tables that the kernels used against the golden "
    "ones,\n"
    "outputs from NaN-poisoned buffers against an fp32 reference that shares no kernel, repeats "
    "and other\n"
    "knobs bit by bit.\n"
    "With --search, instead: the kernels' protocol, step by step, on small problems drawn at "
    "random, under\n"
    "adversarial schedules; a failing one is made small and printed.\n"
    "\nExamples:\n"
    "  fusescope check --shape seed-tp4 --routing zipf:1.2\n"
    "  fusescope check --shape olmoe-1b-7b --routing file:routing.npy#layer=3 --json\n"
    "  fusescope check --engine cuda --shape seed-tp2 --routing uniform\n"
    "  fusescope check --engine cuda --shape seed-tp4 --ranks 8 --devices 0\n"
    "  fusescope check --search 20000\n"
    "  fusescope check --search 1000 --bug push_counted_after_read";

std::vector<CheckResult> results_of(const CheckOptions& options, const Problem& problem,
                                    const Config& config) {
  if (options.engine.engine == "sim" && options.engine.devices.empty()) {
    return check_layer(problem, config);
  }
  const std::unique_ptr<engine::Engine> engine = options.engine.make();
  if (engine->name() != "cuda") {
    return check_layer(problem, config);
  }
  require_legal(options.config, problem, config, engine->device());
  engine::RunRequest request;
  request.problem = &problem;
  request.config = config;
  request.seed = options.seed;
  request.deadline_ms = options.engine.deadline_ms;
  return engine::check_on_gpus(options.engine.options(), request);
}

// The search draws its own configs: one that was asked for would be taken for one that was searched.
void refuse_config_of_search(const ConfigOptions& config) {
  const char* const option = !config.assignments.empty() ? "--set"
                             : !config.file.empty()      ? "--config"
                             : !config.gemm.empty()      ? "--gemm"
                                                         : nullptr;
  if (option != nullptr) {
    throw InputError({option, "", "--search draws configs of its own",
                      "--search without it; --limit and --replay narrow what is searched"});
  }
}

int execute(const CheckOptions& options) {
  if (options.search.asked()) {
    refuse_config_of_search(options.config);
    return execute_search(options.search, options.seed, options.json);
  }
  const Config config = options.config.config();
  const Problem problem = options.problem.problem();
  const std::vector<CheckResult> results = results_of(options, problem, config);
  const bool passed = !results.empty() && std::all_of(results.begin(), results.end(),
                                                      [](const auto& each) { return each.passed; });
  if (options.json) {
    nlohmann::ordered_json checks = nlohmann::ordered_json::array();
    for (const CheckResult& result : results) {
      checks.push_back({{"name", result.name},
                        {"passed", result.passed},
                        {"detail", result.detail},
                        {"seconds", result.seconds}});
    }
    const nlohmann::ordered_json document = {
        {"problem", describe(problem)}, {"passed", passed}, {"checks", checks}};
    std::printf("%s\n", document.dump(2).c_str());
    return passed ? kFine : kCheckFailed;
  }
  std::printf("%s\n", describe(problem).c_str());
  std::size_t width = 0;
  for (const CheckResult& result : results) {
    width = std::max(width, result.name.size());
  }
  for (const CheckResult& result : results) {
    std::printf("%s  %-*s  %6.2f s  %s\n", result.passed ? "passed" : "FAILED",
                static_cast<int>(width), result.name.c_str(), result.seconds,
                result.detail.c_str());
  }
  return passed ? kFine : kCheckFailed;
}

}  // namespace

void add_check(CLI::App& app, Context& context) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand(
      "check", "Check schedule tables and dataflow without a GPU, or the layer on GPUs");
  options->problem.add_to(*command);
  options->config.add_to(*command);
  options->engine.add_to(*command);
  options->search.add_to(*command);
  command->add_option("--seed", options->seed, "Seed: of weights and inputs on GPUs, of the search")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON instead of text");
  command->footer(kFooter);
  command->callback(
      [options, &context] { context.selected = [options] { return execute(*options); }; });
}

}  // namespace fusescope::cli
