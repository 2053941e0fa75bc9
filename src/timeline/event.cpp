#include "timeline/event.hpp"

#include <array>

namespace fusescope::timeline {

std::string_view name(Kind kind) {
  static constexpr std::array<std::string_view, kKinds> kNames = {
      "ids_exchange",  "schedule_build", "barrier",         "copy_in",
      "dispatch_gemm", "activation",     "dispenser_reset", "gemm_combine_push",
      "final_reduce",  "all_gather",     "scatter_rows",    "gemm_1",
      "gemm_2",        "combine",        "reduce_scatter",  "pull",
      "scatter",       "arrive",         "gate_wait",       "mainloop",
      "epilogue",      "claim",          "ready_wait",      "sum",
      "push",          "elect",          "watermark",       "reduce_wait",
      "reduce"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name(Stage stage) {
  static constexpr std::array<std::string_view, 4> kNames = {"stream", "dispatch_gemm",
                                                             "gemm_combine_push", "final_reduce"};
  return kNames[static_cast<std::size_t>(stage)];
}

std::string_view name(Role role) {
  static constexpr std::array<std::string_view, 4> kNames = {"stream", "compute", "communication",
                                                             "reduce"};
  return kNames[static_cast<std::size_t>(role)];
}

}  // namespace fusescope::timeline
