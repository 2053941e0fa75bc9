#include "reports/gnuplot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.hpp"

extern char** environ;

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

std::string panel_script(const Panel& panel, std::size_t number) {
  std::string out = fmt::format("$boxes{} << EOD\n", number);
  for (const Box& box : panel.boxes) {
    out += fmt::format("{} {} {} {} {} {} {}\n", (box.from + box.to) / 2, box.row, box.from, box.to,
                       box.row - box.half_height, box.row + box.half_height, rgb_number(box.rgb));
  }
  out += "EOD\nunset label\nunset arrow\n";
  out += fmt::format("set title {} left offset 0,0 font ',14'\n", quoted(panel.title));
  out += fmt::format("set xlabel {} font ',12'\n", quoted(panel.x_label));
  out += fmt::format("set xrange [0:{}]\nset yrange [{}:-0.5]\n", panel.x_max,
                     static_cast<double>(panel.rows.size()) - 0.5);
  out +=
      fmt::format("set tmargin at screen {}\nset bmargin at screen {}\n", panel.top, panel.bottom);
  out += "set ytics scale 0 (";
  for (std::size_t i = 0; i < panel.rows.size(); ++i) {
    out += fmt::format("{}{} {}", i == 0 ? "" : ", ", quoted(panel.rows[i]), i);
  }
  out += ")\n";
  for (const Text& text : panel.texts) {
    out += fmt::format("set label {} at {},{} left offset 0.6,0 front\n", quoted(text.text), text.x,
                       text.row);
  }
  if (panel.marker) {
    out += fmt::format(
        "set arrow from {0},graph 0 to {0},graph 1 nohead dt 2 lc rgb '#555f6a' front\n",
        *panel.marker);
  }
  out += panel.keys.empty()
             ? "unset key\n"
             : "set key below left Left reverse samplen 1 width 1 font ',12' noenhanced\n";
  out += fmt::format(
      "plot $boxes{} using 1:2:3:4:5:6:7 with boxxyerror fs solid 1 noborder lc rgb variable "
      "notitle",
      number);
  for (const auto& [name, rgb] : panel.keys) {
    out += fmt::format(", keyentry with boxes fs solid 1 noborder lc rgb '{}' title {}", rgb,
                       quoted(name));
  }
  return out + "\n";
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

std::string gnuplot_script(const std::vector<Panel>& panels, int width, int height,
                           const std::string& output) {
  std::string out = "set encoding utf8\n";
  out += fmt::format(
      "set terminal svg size {},{} dynamic noenhanced font 'Helvetica,Arial,sans-serif,13' "
      "background '#ffffff'\n",
      width, height);
  out += "set output " + quoted(output) + "\n";
  out +=
      "set border 1 lc rgb '#b5bcc4'\nset xtics nomirror textcolor rgb '#1a1e23'\nset tics front\n";
  out +=
      "set grid xtics lc rgb '#e3e6e9' lt 1\nset format x \"%.0f\"\nset lmargin 24\nset rmargin "
      "4\n";
  if (panels.size() > 1) {
    out += "set multiplot\n";
  }
  for (std::size_t i = 0; i < panels.size(); ++i) {
    out += panel_script(panels[i], i);
  }
  return out + (panels.size() > 1 ? "unset multiplot\n" : "") + "unset output\n";
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
    const std::string candidate = folder + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return "";
}

std::string draw_svg(const std::vector<Panel>& panels, int width, int height,
                     const std::string& program) {
  const Scratch scratch;
  const std::string script = (scratch.path / "script").string();
  const std::string picture = (scratch.path / "picture.svg").string();
  const std::string log = (scratch.path / "log").string();
  std::ofstream(script) << gnuplot_script(panels, width, height, picture);
  const int status = run(program, script, log);
  std::string svg = slurp(picture);
  if (status != 0 || svg.find("</svg>") == std::string::npos) {
    throw CheckFailure(fmt::format("{} drew nothing (status {}): {}", program, status, slurp(log)));
  }
  return svg;
}

}  // namespace fusescope::reports
