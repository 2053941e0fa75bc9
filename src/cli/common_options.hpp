#pragma once
// Options that several subcommands share, and what they make of them.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "layer/problem.hpp"

namespace CLI {
class App;
}

namespace fusescope::cli {

struct ProblemOptions {
  std::string shape = "seed-tp4";
  std::string routing = "balanced";
  void add_to(CLI::App& command);
  Problem problem() const;  // throws InputError naming the option
};

struct EngineFlags {
  std::string engine = "auto";
  std::string profile;
  std::vector<int> devices;
  void add_to(CLI::App& command);
  std::unique_ptr<engine::Engine> make() const;  // throws InputError naming the option
};

struct ConfigOptions {
  std::vector<std::string> assignments;  // --set knob=value
  std::string file;                      // --config: an object of knobs, or a run's run.json
  void add_to(CLI::App& command);
  Config config() const;  // the file's knobs, then the assignments
};

// Throws InputError naming the --set that cannot run, or --config, when the config is illegal.
void require_legal(const ConfigOptions& options, const Problem& problem, const Config& config,
                   const DeviceLimits& device);

}  // namespace fusescope::cli
