#pragma once
// Colours, in one place for CSS, scripts and SVG. Hue says what a step is about (blue compute,
// orange dispatch, plum combine and push, green reduce, grey set-up), lightness which one; the hues
// are Okabe and Ito's, which people with colour-vision deficiencies tell apart.

#include <string>
#include <string_view>

#include "analysis/accounting.hpp"
#include "analysis/critical_path.hpp"
#include "timeline/event.hpp"

namespace fusescope::reports {

struct Color {
  std::string_view slug;   // "step-dispatch-head": a CSS custom property, and the scripts' key
  std::string_view light;  // on white
  std::string_view dark;   // on near-black
};

const Color& color(analysis::Step step);
const Color& color(analysis::Use use);
const Color& color(timeline::Kind kind);

// "--step-dispatch-head:#d55e00;..." for one theme.
std::string css_variables(bool dark);

}  // namespace fusescope::reports
