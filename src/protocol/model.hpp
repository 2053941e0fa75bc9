#pragma once
// A protocol to search: what starts it, and what goes on after a fault. The layer is one (layer/layer.hpp);
// another kernel's is written the same way, and explored from a test.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/finding.hpp"
#include "protocol/machine.hpp"
#include "protocol/strategy.hpp"

namespace fusescope::protocol {

class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;
  // Starts the streams. Places and sizes are set up by then.
  virtual void start() = 0;
  // Called when nothing can go on any more, and nothing was found: checks what must hold at the end. True:
  // more was started.
  virtual bool recover() { return false; }
};

struct Outcome {
  std::optional<Finding> finding;
  std::uint64_t steps = 0;
  bool aborted = false;  // a fault ended it, as it should
};

// Runs the model to its end under the chooser. `trace`: null, or where every step is written down: number,
// thread, operation, place.
Outcome run_model(Machine& machine, Model& model, Chooser& chooser,
                  std::vector<std::string>* trace = nullptr);

struct Explored {
  std::int64_t schedules = 0;  // run, the failing one included
  std::optional<Finding> finding;
  std::vector<std::string> trace;  // of the failing one
};

// Runs up to `schedules` schedules of what `make` sets up, on this thread, until one is found to break the
// protocol. `make(machine, seed)` resets the machine, adds the places and returns the model; the same seed
// must give the same model.
using MakeModel = std::function<std::unique_ptr<Model>(Machine& machine, std::uint64_t seed)>;
Explored explore(const MakeModel& make, int ranks, std::int64_t schedules, std::uint64_t seed);

}  // namespace fusescope::protocol
