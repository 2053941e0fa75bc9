// The fusescope program: parses the command line, hands over to one subcommand, turns errors into
// messages and exit codes. Nothing below this file ends the process.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "base/error.hpp"
#include "base/version.hpp"
#include "cli/command.hpp"
#include "cli/parse_errors.hpp"

namespace fusescope::cli {
namespace {

constexpr const char* kAbout =
    "Runs one tensor-parallel MoE layer as two fused communication + computation kernels, sweeps "
    "their knobs, and says which step exposes how much communication, and why.";

constexpr const char* kFooter =
    "\nExamples:\n"
    "  fusescope sweep quickstart --report      tune the seed's layer, leave a report and "
    "timelines\n"
    "  fusescope run --shape seed-tp4           one config: wall time and where it goes\n"
    "  fusescope check --shape seed-tp4 --routing zipf:1.2\n"
    "  fusescope list knobs\n"
    "\nExit codes: 0 fine, 1 a check failed, 2 bad input, 130 interrupted.\n"
    "\"fusescope COMMAND --help\" explains a command.";

void report(const char* message) {
  std::fprintf(stderr, "fusescope: %s\n", message);
}

int run(int argc, char** argv) {
  CLI::App app(kAbout, "fusescope");
  app.footer(kFooter);
  app.set_version_flag("--version", version_line(), "Print version and commit, then exit");
  app.require_subcommand(1);
  Context context;
  context.command = shell_line(argc, argv);
  add_run(app, context);
  add_sweep(app, context);
  add_tune(app, context);
  add_merge(app, context);
  add_sweep_worker(app, context);
  add_attribute(app, context);
  add_report(app, context);
  add_timeline(app, context);
  add_calibrate(app, context);
  add_check(app, context);
  add_list(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      return app.exit(error);  // --help, --version
    }
    report(explain(app, error).c_str());
    return kBadInput;
  }
  return context.selected();
}

}  // namespace
}  // namespace fusescope::cli

int main(int argc, char** argv) {
  using namespace fusescope;
  try {
    const int code = cli::run(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      cli::report("the output could not be written in full: is the disk full?");
      return cli::kBadInput;
    }
    return code;
  } catch (const InputError& error) {
    cli::report(error.what());
    return cli::kBadInput;
  } catch (const std::exception& error) {
    cli::report(error.what());
    return cli::kCheckFailed;
  } catch (...) {
    cli::report("an exception of unknown type");
    return cli::kCheckFailed;
  }
}
