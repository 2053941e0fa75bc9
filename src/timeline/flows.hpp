#pragma once
// The arrows of viewers: chains of events along which somebody waited. A chain is there only where
// its cause ended within the wait, so that a viewer shows what bound the layer and not everything
// that happened.
//
//   opens gate        pull -> arrive -> gate_wait -> mainloop
//                     of the last token that the row block waited for
//   activates rows    epilogue of kernel 1 -> activation_wait -> mainloop
//                     of the last tile that the row block waited for
//   makes job ready   epilogue -> ready_wait -> push
//                     of the last row block that the token waited for
//   raises watermark  push -> watermark -> reduce_wait -> reduce
//                     of the elected push of the plane, to the block that reduced last

#include <cstdint>
#include <string_view>
#include <vector>

#include "timeline/dependencies.hpp"

namespace fusescope::timeline {

// Arrows leave a slice at its begin and enter a wait at its end: a wait often begins before its
// cause does, and viewers draw arrows in the order of time.
struct FlowStep {
  Dependencies::EventId event = 0;
  bool at_end = false;
};

struct Flow {
  std::string_view name;
  std::vector<FlowStep> steps;  // at least two, later ones later, of at least two tracks
};

std::vector<Flow> find_flows(const Dependencies& dependencies);

}  // namespace fusescope::timeline
