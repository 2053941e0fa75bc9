// The names of steps, uses and blames, and which steps are communication.

#include <array>

#include "analysis/accounting.hpp"
#include "analysis/critical_path.hpp"

namespace fusescope::analysis {

std::string_view name(Step step) {
  static constexpr std::array<std::string_view, kSteps> kNames = {
      "ids exchange",   "schedule build",     "barrier",     "copy-in",    "dispatch head",
      "dispatch order", "dispatch bandwidth", "GEMM 1",      "activation", "GEMM 2",
      "combine wait",   "combine work",       "push drain",  "watermark",  "final reduce",
      "launch gap",     "all-gather",         "row scatter", "combine",    "reduce-scatter"};
  return kNames[static_cast<std::size_t>(step)];
}

bool is_communication(Step step) {
  switch (step) {
    case Step::ids_exchange:
    case Step::barrier:
    case Step::copy_in:
    case Step::dispatch_head:
    case Step::dispatch_order:
    case Step::dispatch_bandwidth:
    case Step::watermark:
    case Step::final_reduce:
    case Step::all_gather:
    case Step::scatter_rows:
    case Step::reduce_scatter:
      return true;
    default:
      return false;
  }
}

bool may_communicate(Step step) {
  return is_communication(step) || step == Step::push_drain;
}

std::string_view name(Use use) {
  static constexpr std::array<std::string_view, kUses> kNames = {
      "compute",    "communication",  "combine",     "reduce", "gate wait",
      "ready wait", "watermark wait", "other phase", "idle"};
  return kNames[static_cast<std::size_t>(use)];
}

std::string_view name(Blame blame) {
  static constexpr std::array<std::string_view, kBlames> kNames = {"not yet issued", "in flight",
                                                                   "landed, not yet seen"};
  return kNames[static_cast<std::size_t>(blame)];
}

}  // namespace fusescope::analysis
