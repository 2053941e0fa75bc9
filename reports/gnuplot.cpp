#include "reports/gnuplot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "reports/format.hpp"

namespace fusescope::reports {

namespace {

// Between single quotes gnuplot reads everything but the quote itself literally.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "''";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out + "'";
}

// "#0067a3" -> 26531: gnuplot's number for a colour per box.
unsigned rgb_number(const std::string& rgb) {
  return static_cast<unsigned>(std::strtoul(rgb.c_str() + 1, nullptr, 16));
}

// ---- the picture's layout [pixels]

constexpr int kWidth = 960;
constexpr int kLeft = 232;  // of the plot; names of rows stand before it
constexpr int kRight = 934;
constexpr int kTitle = 34;
constexpr int kRow = 30;
constexpr int kAxis = 54;  // ticks and the axis' name
constexpr int kKeyLine = 22;
constexpr int kKeysPerLine = 4;
constexpr int kBetween = 16;

int plot_height(const Panel& panel) {
  return kRow * static_cast<int>(std::max<std::size_t>(panel.rows.size(), 1)) + 8;
}
int key_lines(const Panel& panel) {
  return static_cast<int>((panel.keys.size() + kKeysPerLine - 1) / kKeysPerLine);
}
int panel_height(const Panel& panel) {
  return kTitle + plot_height(panel) + kAxis + kKeyLine * key_lines(panel) + kBetween;
}

// Ticks at 1, 2 or 5 times a power of ten, named with thousands separated.
std::string ticks(double x_max) {
  const double rough = std::max(x_max, 1e-9) / 7;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double multiple : {1, 2, 5, 10}) {
    step = multiple * power;
    if (step >= rough) {
      break;
    }
  }
  std::string out;
  for (int i = 0; i * step <= x_max; ++i) {
    out += fmt::format("{}{} {}", i == 0 ? "" : ", ", quoted(number(i * step)), i * step);
  }
  return out;
}

// `top`: of the panel, from the top of a picture that is `height` tall. gnuplot counts from the bottom.
std::string panel_script(const Panel& panel, std::size_t place, int top, int height) {
  const auto across = [](int x) { return static_cast<double>(x) / kWidth; };
  const auto up = [&](int y) { return 1 - static_cast<double>(y) / height; };
  const int plot_top = top + kTitle;
  const int plot_bottom = plot_top + plot_height(panel);

  std::string out = fmt::format("$boxes{} << EOD\n", place);
  for (const Box& box : panel.boxes) {
    out += fmt::format("{} {} {} {} {} {} {}\n", (box.from + box.to) / 2, box.row, box.from, box.to,
                       box.row - box.half_height, box.row + box.half_height, rgb_number(box.rgb));
  }
  out += "EOD\nunset label\nunset arrow\nunset object\n";
  out += fmt::format("set xrange [0:{}]\nset yrange [{}:-0.6]\n", panel.x_max,
                     static_cast<double>(panel.rows.size()) - 0.4);
  out += fmt::format("set tmargin at screen {}\nset bmargin at screen {}\n", up(plot_top),
                     up(plot_bottom));
  out += fmt::format("set xtics ({})\nset ytics scale 0 textcolor rgb '#1a1e23' (",
                     ticks(panel.x_max));
  for (std::size_t i = 0; i < panel.rows.size(); ++i) {
    out += fmt::format("{}{} {}", i == 0 ? "" : ", ", quoted(panel.rows[i]), i);
  }
  out += ")\n";
  out += fmt::format("set label {} at screen {},{} left font ',15' front\n", quoted(panel.title),
                     across(16), up(top + kTitle / 2));
  out += fmt::format("set label {} at screen {},{} center textcolor rgb '#555f6a' front\n",
                     quoted(panel.x_label), across((kLeft + kRight) / 2), up(plot_bottom + 42));
  for (const Text& text : panel.texts) {
    out += fmt::format("set label {} at {},{} left offset 0.6,0 front\n", quoted(text.text), text.x,
                       text.row);
  }
  for (std::size_t i = 0; i < panel.keys.size(); ++i) {
    const int x = 40 + static_cast<int>(i % kKeysPerLine) * (kWidth - 50) / kKeysPerLine;
    const int y =
        plot_bottom + kAxis + static_cast<int>(i / kKeysPerLine) * kKeyLine + kKeyLine / 2;
    out += fmt::format(
        "set object {} rectangle from screen {},{} to screen {},{} fs solid 1 noborder fc rgb '{}' "
        "front\n",
        i + 1, across(x), up(y + 6), across(x + 12), up(y - 6), panel.keys[i].second);
    out += fmt::format("set label {} at screen {},{} left front\n", quoted(panel.keys[i].first),
                       across(x + 20), up(y));
  }
  if (panel.marker) {
    out +=
        fmt::format("set arrow from {0},graph 0 to {0},graph 1 nohead dt 2 lc rgb '#555f6a' back\n",
                    *panel.marker);
  }
  return out + fmt::format(
                   "plot $boxes{} using 1:2:3:4:5:6:7 with boxxyerror fs solid 1 noborder lc rgb "
                   "variable\n",
                   place);
}

// A folder of our own that goes when we do.
struct Scratch {
  std::filesystem::path path;
  Scratch() {
    std::string form = (std::filesystem::temp_directory_path() / "fusescope-XXXXXX").string();
    if (mkdtemp(form.data()) == nullptr) {
      throw InputError({form, "",
                        std::string("cannot make a scratch folder: ") + std::strerror(errno),
                        "a writable TMPDIR"});
    }
    path = form;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Runs `program script` with both outputs in `log`; the exit status, or -1 if it could not start.
int run(const std::string& program, const std::string& script, const std::string& log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  std::string first = program;
  std::string second = script;
  std::array<char*, 3> arguments = {first.data(), second.data(), nullptr};
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return -1;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

std::string gnuplot_script(const std::vector<Panel>& panels, const std::string& output) {
  int height = 0;
  for (const Panel& panel : panels) {
    height += panel_height(panel);
  }
  std::string out = "set encoding utf8\n";
  out += fmt::format(
      "set terminal svg size {},{} dynamic noenhanced font 'Helvetica,Arial,sans-serif,13' "
      "background '#ffffff'\n",
      kWidth, height);
  out += "set output " + quoted(output) + "\nunset key\n";
  out += "set border 1 lc rgb '#b5bcc4'\nset xtics nomirror textcolor rgb '#1a1e23'\n";
  out += "set grid xtics lc rgb '#e3e6e9' lt 1\n";
  out += fmt::format("set lmargin at screen {}\nset rmargin at screen {}\n",
                     static_cast<double>(kLeft) / kWidth, static_cast<double>(kRight) / kWidth);
  out += "set multiplot\n";
  int top = 0;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    out += panel_script(panels[i], i, top, height);
    top += panel_height(panels[i]);
  }
  return out + "unset multiplot\nunset output\n";
}

std::string find_gnuplot(const std::string& wanted) {
  const char* chosen = std::getenv("FUSESCOPE_GNUPLOT");
  const std::string name = !wanted.empty() ? wanted : chosen != nullptr ? chosen : "gnuplot";
  if (name.find('/') != std::string::npos) {
    return access(name.c_str(), X_OK) == 0 ? name : "";
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    std::string candidate = folder;
    candidate.append("/").append(name);
    if (access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return "";
}

std::string draw_svg(const std::vector<Panel>& panels, const std::string& program) {
  const Scratch scratch;
  const std::string script = (scratch.path / "script").string();
  const std::string picture = (scratch.path / "picture.svg").string();
  const std::string log = (scratch.path / "log").string();
  std::ofstream(script) << gnuplot_script(panels, picture);
  const int status = run(program, script, log);
  std::string svg = slurp(picture);
  if (status != 0 || svg.find("</svg>") == std::string::npos) {
    throw CheckFailure(fmt::format("{} drew nothing (status {}): {}", program, status, slurp(log)));
  }
  return svg;
}

}  // namespace fusescope::reports
