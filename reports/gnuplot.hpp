#pragma once
// Bar pictures as SVG through gnuplot: a picture is a few panels, a panel is rows of boxes.

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fusescope::reports {

struct Box {
  double row = 0;   // 0 is the top row; boxes of one row may lie over each other, later ones on top
  double from = 0;  // along x
  double to = 0;
  double half_height = 0.36;
  std::string rgb;
};
struct Text {
  double row = 0;
  double x = 0;
  std::string text;
};
struct Panel {
  std::string title;
  std::string x_label;
  std::vector<std::string> rows;  // names, top to bottom
  std::vector<Box> boxes;
  std::vector<Text> texts;
  std::vector<std::pair<std::string, std::string>> keys;  // name, rgb; below the panel
  double x_max = 1;
  std::optional<double> marker;  // a dashed line across all rows
};

// The panels one below the other; the picture is as tall as they need.
std::string gnuplot_script(const std::vector<Panel>& panels, const std::string& output);

// The program to run: `wanted`, else FUSESCOPE_GNUPLOT, else gnuplot on PATH; "" if there is none.
std::string find_gnuplot(const std::string& wanted);

// The SVG. Throws CheckFailure with gnuplot's own words if it fails.
std::string draw_svg(const std::vector<Panel>& panels, const std::string& program);

}  // namespace fusescope::reports
