#pragma once
// Options that several subcommands share, and what they make of them.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "engine/engine.hpp"
#include "layer/problem.hpp"

namespace CLI {
class App;
}

namespace fusescope::cli {

struct ProblemOptions {
  std::string shape = "seed-tp4";
  std::string routing = "balanced";
  int ranks = 0;  // in place of the shape's; 0 = the shape's
  void add_to(CLI::App& command);
  Problem problem() const;  // throws InputError naming the option
};

struct EngineFlags {
  std::string engine = "auto";
  std::string profile;
  std::string devices;     // "0,1"
  int deadline_ms = 2000;  // of every wait on the device
  void add_to(CLI::App& command);
  engine::EngineOptions options() const;         // throws InputError naming the option
  std::unique_ptr<engine::Engine> make() const;  // throws InputError naming the option
};

// Runs `make`; an InputError of it that names no file is told to come from `option`.
template <typename Make>
auto from_option(const std::string& option, Make make) {
  try {
    return make();
  } catch (const InputError& error) {
    if (!error.parts().file.empty()) {
      throw;
    }
    throw InputError({option, "", error.parts().problem, error.parts().accepted});
  }
}

// --gemm, of every command that runs kernels.
void add_gemm_option(CLI::App& command, std::string& gemm);

// --rest-ms, of every command that measures.
void add_rest_option(CLI::App& command, std::optional<int>& rest_ms);
// In place of what the sweep's document has, where the option was given.
void set_rest(Json& sweep, const std::optional<int>& rest_ms);

inline constexpr const char* kTunedConfig = "tuned";  // --config: the tuned tables' winner

struct ConfigOptions {
  std::vector<std::string> assignments;  // --set knob=value
  std::string file;                      // --config: an object of knobs, or a run's run.json
  std::string gemm;                      // --gemm: the knob of that name
  void add_to(CLI::App& command);
  // The file's knobs, then --gemm, then the assignments. `tuned` gives the knobs that "--config tuned" stands for;
  // without it that is a file like any other.
  Config config(const std::function<Config()>& tuned = {}) const;
};

// What a recorded run is held against.
struct EvidenceOptions {
  std::string against;
  bool unlike = false;
  std::string sweep;
  void add_to(CLI::App& command);
};

// Throws InputError naming the --set that cannot run, or --config, when the config is illegal.
void require_legal(const ConfigOptions& options, const Problem& problem, const Config& config,
                   const DeviceLimits& device);

}  // namespace fusescope::cli
