#pragma once
// Runs one planned trial and turns whatever comes of it into a verdict: in this process, or in a
// worker process that may crash or hang (isolated_executor.hpp).

#include <functional>
#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "sweep/sweep_config.hpp"
#include "sweep/trial.hpp"

namespace fusescope::sweep {

// Fills a trial's steps_us, timeline_wall_us and exposed_us from its timeline. Must be thread-safe.
using Analyse = std::function<void(const timeline::Timeline&, Trial&)>;

// What a trial is measured with; all that is pointed at outlives whoever holds it.
struct Bench {
  engine::Engine* engine = nullptr;
  const Problem* problem = nullptr;
  Measure measure;
  Analyse analyse;      // may be empty: then no timeline is recorded
  std::string command;  // recorded as a timeline's origin
};

// `planned` brings id, kind, label, visit and config; the rest is filled in. `samples`: to take
// exactly that many; 0 = by the rules of `measure`. `deadline_ms`: of a wait on the device; 0 = the
// engine's own. Exceptions become verdicts.
Trial run_trial(const Bench& bench, Trial planned, int samples, int deadline_ms = 0);

// A trial with a verdict other than ok: what was planned, and nothing that it got half way.
Trial failed_trial(const Trial& planned, Verdict verdict, const std::string& reason);

class Executor {
 public:
  virtual ~Executor() = default;
  // As run_trial. Does not throw for anything that the config or the engine did. Thread-safe up to
  // as many calls as the executor was made for.
  virtual Trial execute(Trial planned, int samples) = 0;
  // How many workers had to be replaced so far: what a trial measures then may have changed.
  virtual int replaced() const { return 0; }
};

std::unique_ptr<Executor> make_in_process(Bench bench);

}  // namespace fusescope::sweep
