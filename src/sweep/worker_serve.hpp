#pragma once
// The worker's side: opens an engine and a problem, then measures what it is told to, one trial at a
// time, until the sweep that started it is gone.

#include <functional>
#include <memory>
#include <string>

#include "base/json_reader.hpp"
#include "sweep/executor.hpp"

namespace fusescope::sweep {

struct WorkerSetup {
  std::unique_ptr<engine::Engine> engine;
  Problem problem;
  Measure measure;
  Analyse analyse;  // may be empty
  std::string command;
  // Runs a config with its timeline and writes it into a folder; may be empty.
  std::function<void(engine::Engine&, const Problem&, const Config&, const std::string& folder)>
      keep;
};

// `open` makes the setup from what the sweep sent ({"open": {...}}'s object); its InputError goes back
// to the sweep. Returns the exit code. The process ends at once, whatever it is doing, when the other
// side of `socket` closes: so no worker outlives its sweep. (Linux's parent-death signal would be
// bound to the thread that started the worker, not to the sweep.)
int serve_worker(int socket, const std::function<WorkerSetup(const Json&)>& open);

// What a worker says of itself once it is open.
struct WorkerHello {
  std::string engine;    // Engine::name()
  std::string identity;  // Engine::identity()
  DeviceLimits device;
  int parallel_runs = 1;
};
WorkerHello hello_from_json(const JsonReader& reader);

}  // namespace fusescope::sweep
