#include "reports/palette.hpp"

#include <fmt/format.h>

#include <array>

namespace fusescope::reports {

namespace {

// In the order of analysis::Step.
constexpr std::array<Color, analysis::kSteps> kStepColors = {{
    {"step-ids-exchange", "#3f4854", "#d5dae0"},
    {"step-schedule-build", "#626c79", "#b3bbc5"},
    {"step-barrier", "#858f9b", "#929ca8"},
    {"step-copy-in", "#a7afb9", "#737d89"},
    {"step-dispatch-head", "#c44f00", "#f0782a"},
    {"step-dispatch-order", "#e69f00", "#e69f00"},
    {"step-dispatch-bandwidth", "#f3cf57", "#f6dc85"},
    {"step-gemm-1", "#0067a3", "#2e8fd0"},
    {"step-activation", "#7f9bd6", "#a9bdec"},
    {"step-gemm-2", "#56b4e9", "#7cc8f2"},
    {"step-combine-wait", "#6b2f63", "#a8609e"},
    {"step-combine-work", "#a5568c", "#cc79a7"},
    {"step-push-drain", "#d38bb5", "#e6abce"},
    {"step-watermark", "#ecc4dc", "#f4dbe9"},
    {"step-final-reduce", "#008a64", "#21b88c"},
    {"step-launch-gap", "#cdd3da", "#525b66"},
    {"step-all-gather", "#c44f00", "#f0782a"},
    {"step-scatter-rows", "#e69f00", "#e69f00"},
    {"step-combine", "#a5568c", "#cc79a7"},
    {"step-reduce-scatter", "#6b2f63", "#a8609e"},
}};

// In the order of analysis::Use.
constexpr std::array<Color, analysis::kUses> kUseColors = {{
    {"use-compute", "#0067a3", "#2e8fd0"},
    {"use-communication", "#e69f00", "#e69f00"},
    {"use-combine", "#a5568c", "#cc79a7"},
    {"use-reduce", "#008a64", "#21b88c"},
    {"use-gate-wait", "#c44f00", "#f0782a"},
    {"use-ready-wait", "#6b2f63", "#a8609e"},
    {"use-watermark-wait", "#7cc5ac", "#8fdcc1"},
    {"use-other-phase", "#858f9b", "#929ca8"},
    {"use-idle", "#dde2e7", "#3a424c"},
}};

// In the order of timeline::Kind.
constexpr std::array<Color, timeline::kKinds> kKindColors = {{
    {"kind-ids-exchange", "#3f4854", "#d5dae0"},
    {"kind-schedule-build", "#626c79", "#b3bbc5"},
    {"kind-barrier", "#858f9b", "#929ca8"},
    {"kind-copy-in", "#a7afb9", "#737d89"},
    {"kind-dispatch-gemm", "#0067a3", "#2e8fd0"},
    {"kind-activation", "#7f9bd6", "#a9bdec"},
    {"kind-dispenser-reset", "#cdd3da", "#525b66"},
    {"kind-gemm-combine-push", "#56b4e9", "#7cc8f2"},
    {"kind-final-reduce", "#008a64", "#21b88c"},
    {"kind-all-gather", "#c44f00", "#f0782a"},
    {"kind-scatter-rows", "#e69f00", "#e69f00"},
    {"kind-gemm-1", "#0067a3", "#2e8fd0"},
    {"kind-gemm-2", "#56b4e9", "#7cc8f2"},
    {"kind-combine", "#a5568c", "#cc79a7"},
    {"kind-reduce-scatter", "#6b2f63", "#a8609e"},
    {"kind-pull", "#e69f00", "#e69f00"},
    {"kind-scatter", "#f3cf57", "#f6dc85"},
    {"kind-arrive", "#8a6d1c", "#b59a4a"},
    {"kind-gate-wait", "#c44f00", "#f0782a"},
    {"kind-activation-wait", "#7f9bd6", "#a9bdec"},
    {"kind-mainloop", "#0067a3", "#2e8fd0"},
    {"kind-epilogue", "#56b4e9", "#7cc8f2"},
    {"kind-claim", "#858f9b", "#929ca8"},
    {"kind-ready-wait", "#6b2f63", "#a8609e"},
    {"kind-sum", "#a5568c", "#cc79a7"},
    {"kind-push", "#d38bb5", "#e6abce"},
    {"kind-elect", "#626c79", "#b3bbc5"},
    {"kind-watermark", "#e0558f", "#ff8ab8"},
    {"kind-reduce-wait", "#7cc5ac", "#8fdcc1"},
    {"kind-reduce", "#008a64", "#21b88c"},
}};

template <std::size_t N>
void append(std::string& out, const std::array<Color, N>& colors, bool dark) {
  for (const Color& each : colors) {
    out += fmt::format("--{}:{};", each.slug, dark ? each.dark : each.light);
  }
}

}  // namespace

const Color& color(analysis::Step step) {
  return kStepColors[static_cast<std::size_t>(step)];
}
const Color& color(analysis::Use use) {
  return kUseColors[static_cast<std::size_t>(use)];
}
const Color& color(timeline::Kind kind) {
  return kKindColors[static_cast<std::size_t>(kind)];
}

std::string css_variables(bool dark) {
  std::string out;
  append(out, kStepColors, dark);
  append(out, kUseColors, dark);
  append(out, kKindColors, dark);
  return out;
}

}  // namespace fusescope::reports
