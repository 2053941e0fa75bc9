#include "timeline/event.hpp"

#include <array>
#include <string>

namespace fusescope::timeline {

std::string_view name(Kind kind) {
  static constexpr std::array<std::string_view, kKinds> kNames = {
      "ids_exchange",  "schedule_build", "barrier",         "copy_in",
      "dispatch_gemm", "activation",     "dispenser_reset", "gemm_combine_push",
      "final_reduce",  "all_gather",     "scatter_rows",    "gemm_1",
      "gemm_2",        "combine",        "reduce_scatter",  "pull",
      "scatter",       "arrive",         "gate_wait",       "activation_wait",
      "mainloop",      "epilogue",       "claim",           "ready_wait",
      "sum",           "push",           "elect",           "watermark",
      "reduce_wait",   "reduce"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name(Stage stage) {
  static constexpr std::array<std::string_view, kStages> kNames = {
      "stream", "dispatch_gemm", "gemm_combine_push", "final_reduce"};
  return kNames[static_cast<std::size_t>(stage)];
}

std::string_view name(Role role) {
  static constexpr std::array<std::string_view, kRoles> kNames = {"stream", "compute",
                                                                  "communication", "reduce"};
  return kNames[static_cast<std::size_t>(role)];
}

std::string describe(const Track& track) {
  std::string text = "rank " + std::to_string(track.rank) + " ";
  if (track.stage == Stage::stream) {
    return text + "stream";
  }
  text.append(name(track.stage)).append(" ").append(name(track.role));
  text += " block " + std::to_string(track.block);
  if (track.lane != 0 || track.role == Role::communication) {
    text += " lane " + std::to_string(track.lane);
  }
  return text;
}

Arguments arguments(Kind kind) {
  switch (kind) {
    case Kind::barrier:
    case Kind::reduce:
      return {.index = true};
    case Kind::pull:
      return {.token = true, .peer = true};
    case Kind::scatter:
    case Kind::arrive:
      return {.token = true};
    case Kind::gate_wait:
    case Kind::activation_wait:
    case Kind::mainloop:
    case Kind::epilogue:
      return {.row_block = true, .index = true};
    case Kind::claim:
    case Kind::sum:
      return {.token = true, .index = true};
    case Kind::ready_wait:
      return {.token = true, .row_block = true, .index = true};
    case Kind::push:
    case Kind::elect:
      return {.token = true, .index = true, .peer = true};
    case Kind::watermark:
    case Kind::reduce_wait:
      return {.index = true, .peer = true};
    default:
      return {};  // a stream phase
  }
}

}  // namespace fusescope::timeline
