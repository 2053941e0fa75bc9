// Report files onto the disk: each is written whole beside its place and then moved there, and a file
// that fusescope did not make stays.

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "reports/report.hpp"
#include "reports/report_files.hpp"

namespace fusescope::reports {

namespace {

namespace fs = std::filesystem;

constexpr std::streamsize kMarkWithin = 1024;

void refuse_foreign(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return;
  }
  std::ifstream in(path, std::ios::binary);
  std::string head(static_cast<std::size_t>(kMarkWithin), '\0');
  in.read(head.data(), kMarkWithin);
  if (!fs::is_regular_file(path, ignored) || head.find(kMark) == std::string::npos) {
    throw InputError({path.string(), "",
                      "exists and was not written by fusescope; it is left as it is",
                      "another folder, or moving that file away"});
  }
}

void write(const fs::path& path, const std::string& text) {
  fs::path beside = path;
  beside += ".part";
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  std::error_code error;
  if (!out) {
    const std::string reason = std::strerror(errno);
    fs::remove(beside, error);
    throw InputError({path.string(), "", "cannot be written: " + reason,
                      "a folder with room that you may write to"});
  }
  fs::rename(beside, path, error);
  if (error) {
    throw InputError({path.string(), "", "cannot be replaced: " + error.message(),
                      "a folder that you may write to"});
  }
}

}  // namespace

std::string marked_svg(std::string svg) {
  const std::size_t end = svg.find("?>");
  const std::string comment = "\n<!-- " + std::string(kMark) + " with gnuplot -->";
  svg.insert(end == std::string::npos ? 0 : end + 2, comment);
  return svg;
}

std::vector<std::string> write_marked_files(const std::map<std::string, std::string>& files,
                                            const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || !fs::is_directory(directory)) {
    throw InputError({directory, "",
                      "cannot be made: " + (error ? error.message() : "it is not a folder"),
                      "a folder that you may write to"});
  }
  const fs::path folder(directory);
  for (const auto& [name, text] : files) {
    refuse_foreign(folder / name);
  }
  std::vector<std::string> paths;
  for (const auto& [name, text] : files) {
    write(folder / name, text);
    paths.push_back((folder / name).string());
  }
  return paths;
}

ReportFiles write_report(const ReportInput& input, const std::string& directory) {
  const Charts charts = draw_charts(input);
  std::map<std::string, std::string> files;
  for (const auto& [key, svg] : charts.svg) {
    files[key + ".svg"] = marked_svg(svg);
  }
  if (charts.svg.contains("ladder") && charts.svg.contains("path")) {
    files["summary.svg"] = marked_svg(draw_summary_svg(input));
  }
  files["report.md"] = render_markdown(input, charts);
  files["report.html"] = render_html(input);
  return {write_marked_files(files, directory), charts.missing};
}

}  // namespace fusescope::reports
