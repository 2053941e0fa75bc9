#pragma once
// The worker process of a sweep: this program again, as a hidden subcommand.

#include <string>
#include <vector>

#include "sweep/sweep_config.hpp"
#include "sweep/worker_serve.hpp"

namespace fusescope::cli {

inline constexpr const char* kWorkerCommand = "sweep-worker";

// What a worker is opened with: the sweep as it is run, faults to inject, the sweep's command line.
struct WorkerOrder {
  const sweep::SweepConfig* config = nullptr;
  std::vector<std::string> faults;
  std::string command;
};
Json open_message(const WorkerOrder& order);

// The program and the arguments that start a worker.
std::vector<std::string> worker_command();

// The engine that a sweep's file asks for, with faults. Throws InputError naming file and place.
std::unique_ptr<engine::Engine> make_sweep_engine(const sweep::SweepConfig& config,
                                                  const std::vector<std::string>& faults);
Problem make_sweep_problem(const sweep::SweepConfig& config);

// The rules of one run by which a winner is kept: as the sweep measures, with a timeline.
void keep_run(engine::Engine& engine, const Problem& problem, const sweep::Measure& measure,
              const Config& config, const std::string& command, const std::string& folder);

}  // namespace fusescope::cli
