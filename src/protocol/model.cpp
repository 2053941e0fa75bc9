#include "protocol/model.hpp"

#include "base/random.hpp"

namespace fusescope::protocol {
namespace {

constexpr int kTypicalSteps = 600;

}  // namespace

Outcome run_model(Machine& machine, Model& model, Chooser& chooser,
                  std::vector<std::string>* trace) {
  machine.trace_into(trace);
  model.start();
  machine.run(chooser);
  Outcome outcome;
  outcome.aborted = machine.aborted();
  if (!machine.finding() && model.recover()) {
    machine.run(chooser);
  }
  outcome.finding = machine.finding();
  outcome.steps = machine.steps_run();
  machine.clear();  // before the model that its coroutines refer to
  return outcome;
}

Explored explore(const MakeModel& make, int ranks, std::int64_t schedules, std::uint64_t seed) {
  Explored explored;
  Machine machine;
  while (explored.schedules < schedules) {
    const auto index = static_cast<std::uint64_t>(explored.schedules++);
    const std::uint64_t model_seed = mix64(seed ^ mix64(index));
    StrategyChooser chooser({ranks, kTypicalSteps, false}, seed, index);
    {
      const std::unique_ptr<Model> model = make(machine, model_seed);
      explored.finding = run_model(machine, *model, chooser).finding;
    }
    if (explored.finding) {
      ReplayChooser again(chooser.choices());
      const std::unique_ptr<Model> model = make(machine, model_seed);
      run_model(machine, *model, again, &explored.trace);
      break;
    }
  }
  return explored;
}

}  // namespace fusescope::protocol
