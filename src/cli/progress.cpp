#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace fusescope::cli {
namespace {

constexpr double kTerminalEvery = 0.1;  // [s]
constexpr double kPlainEvery = 10;      // [s], besides every tenth of the trials

std::string duration(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole < 60) {
    return fmt::format("{} s", whole);
  }
  if (whole < 3600) {
    return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  }
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

std::string progress_text(const sweep::Progress& progress) {
  std::string text = progress.planned > 0
                         ? fmt::format("trial {}/{}", progress.done, progress.planned)
                         : fmt::format("trial {}", progress.done);
  if (progress.best != nullptr) {
    text += fmt::format(", best {:.1f} us", progress.best->median_us);
  }
  if (progress.failures > 0) {
    text += fmt::format(", {} did not run", progress.failures);
  }
  text += fmt::format(", {:.{}f}/s", progress.trials_per_second,
                      progress.trials_per_second >= 10 ? 0 : 1);
  if (progress.done < progress.planned) {
    text += fmt::format(", {} left", duration(progress.seconds_left));
  }
  return text;
}

std::string progress_bar(const sweep::Progress& progress) {
  constexpr long long kWidth = 20;
  if (progress.planned == 0) {
    return "";
  }
  const auto full =
      static_cast<std::size_t>(std::min(kWidth, progress.done * kWidth / progress.planned));
  return fmt::format("[{:-<{}}] ", std::string(full, '#'), kWidth);
}

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)), terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (terminal_ && shown_) {
    std::fputc('\n', stderr);
  }
}

bool ProgressLine::is_due(const sweep::Progress& progress) {
  const bool last = progress.planned > 0 && progress.done == progress.planned;
  const double every = terminal_ ? kTerminalEvery : kPlainEvery;
  const auto tenth = static_cast<int>(progress.done * 10 / std::max(1LL, progress.planned));
  const bool due = last || !shown_ || progress.seconds - last_seconds_ >= every ||
                   (!terminal_ && progress.planned > 0 && tenth != last_tenth_);
  if (due) {
    last_seconds_ = progress.seconds;
    last_tenth_ = tenth;
  }
  return due;
}

void ProgressLine::show(const sweep::Progress& progress) {
  if (!is_due(progress)) {
    return;
  }
  shown_ = true;
  const std::string text = progress_text(progress);
  if (terminal_) {
    std::fprintf(stderr, "\r\033[K%s: %s%s", what_.c_str(), progress_bar(progress).c_str(),
                 text.c_str());
  } else {
    std::fprintf(stderr, "%s: %s\n", what_.c_str(), text.c_str());
  }
  std::fflush(stderr);
}

}  // namespace fusescope::cli
