#pragma once
// What every subcommand shares: how it is registered, how its command line is remembered, what its exit
// code means.

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace fusescope::cli {

inline constexpr int kFine = 0;
inline constexpr int kCheckFailed = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kInterrupted = 130;  // as a shell reports SIGINT

struct Context {
  std::string command;            // the command line as a shell would take it
  std::function<int()> selected;  // set by the subcommand that was given; returns the exit code
};

// Each registers one subcommand: options, help, examples, and what it does. In the order of --help.
void add_run(CLI::App& app, Context& context);
void add_sweep(CLI::App& app, Context& context);
void add_tune(CLI::App& app, Context& context);
void add_merge(CLI::App& app, Context& context);
void add_sweep_worker(CLI::App& app, Context& context);
void add_attribute(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_timeline(CLI::App& app, Context& context);
void add_calibrate(CLI::App& app, Context& context);
void add_check(CLI::App& app, Context& context);
void add_list(CLI::App& app, Context& context);

}  // namespace fusescope::cli
