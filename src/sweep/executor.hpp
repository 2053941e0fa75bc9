#pragma once
// Runs one planned trial and turns whatever comes of it, exceptions included, into a verdict. The
// in-process form calls the engine; one that hands trials to a worker process, which may then crash
// or hang, fits behind the same interface.

#include <functional>
#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "sweep/sweep_config.hpp"
#include "sweep/trial.hpp"

namespace fusescope::sweep {

// Fills a trial's steps_us, timeline_wall_us and exposed_us from its timeline. Must be thread-safe.
using Analyse = std::function<void(const timeline::Timeline&, Trial&)>;

class Executor {
 public:
  virtual ~Executor() = default;
  // `planned` brings id, label and config; the rest is filled in. Does not throw for anything that
  // the config or the engine did. Thread-safe up to the engine's parallel_runs().
  virtual Trial execute(Trial planned) = 0;
};

// `analyse` may be empty: then no timeline is recorded. All references must outlive the executor.
std::unique_ptr<Executor> make_in_process(engine::Engine& engine, const Problem& problem,
                                          const Measure& measure, Analyse analyse,
                                          std::string command);

}  // namespace fusescope::sweep
