#include "analysis/rung_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace fusescope::analysis {
namespace {

const Estimate& cost(const Rungs& rungs, RungCost which) {
  return rungs.costs[static_cast<std::size_t>(which)];
}

// Whether the knob changes how many SMs compute in this kernel.
bool is_split_by_knob(const RungSeries& series, std::size_t kernel) {
  return std::any_of(series.rungs.begin(), series.rungs.end(), [&](const Rungs& each) {
    return each.waves[kernel].sms_split != series.rungs.front().waves[kernel].sms_split;
  });
}

std::size_t kernels(const RungSeries& series) {
  return series.rungs.empty() ? 0 : series.rungs.front().waves.size();
}

}  // namespace

std::vector<std::string> wave_steps(const RungSeries& series) {
  std::vector<std::string> sentences;
  for (std::size_t kernel = 0; kernel < kernels(series); ++kernel) {
    if (!is_split_by_knob(series, kernel)) {
      continue;
    }
    const std::size_t before = sentences.size();
    for (std::size_t i = 1; i < series.rungs.size(); ++i) {
      const KernelWaves& from = series.rungs[i - 1].waves[kernel];
      const KernelWaves& to = series.rungs[i].waves[kernel];
      if (from.waves_split() != to.waves_split()) {
        sentences.push_back(fmt::format(
            "{}: from {} {} to {} its {} tiles go from {} waves on {} SMs to {} on {}: the SM tax "
            "goes from {:+.1f} to {:+.1f} us.",
            to.kernel, series.knob, series.values[i - 1], series.values[i], to.tiles,
            from.waves_split(), from.sms_split, to.waves_split(), to.sms_split,
            cost(series.rungs[i - 1], RungCost::sm_tax).us,
            cost(series.rungs[i], RungCost::sm_tax).us));
      }
    }
    if (sentences.size() == before) {
      const KernelWaves& any = series.rungs.front().waves[kernel];
      sentences.push_back(fmt::format("{}: its {} tiles take {} waves at every value.", any.kernel,
                                      any.tiles, any.waves_split()));
    }
  }
  return sentences;
}

std::string series_text(const RungSeries& series) {
  std::string text;
  const auto row = [&](std::string_view called,
                       const std::function<std::string(std::size_t)>& value) {
    text += fmt::format("{:<34}", called);
    for (std::size_t i = 0; i < series.rungs.size(); ++i) {
      text += fmt::format(" {:>14}", value(i));
    }
    text += '\n';
  };
  const auto interval = [](const Estimate& each, const char* format) {
    const std::string us = fmt::format(fmt::runtime(format), each.us);
    return each.high > each.low ? us + fmt::format(" +-{:.1f}", each.half()) : us;
  };
  row(series.knob, [&](std::size_t i) { return series.values[i]; });
  for (std::size_t kernel = 0; kernel < kernels(series); ++kernel) {
    if (is_split_by_knob(series, kernel)) {
      row("waves of " + series.rungs.front().waves[kernel].kernel, [&](std::size_t i) {
        const KernelWaves& waves = series.rungs[i].waves[kernel];
        return fmt::format("{} on {} SMs", waves.waves_split(), waves.sms_split);
      });
    }
  }
  text += "us\n";
  row(rung_name(kRungs.front()),
      [&](std::size_t i) { return interval(series.rungs[i].compute(), "{:.1f}"); });
  for (const RungCost which : {RungCost::sm_tax, RungCost::contention}) {
    row(fmt::format("+ {}", name(which)),
        [&](std::size_t i) { return interval(cost(series.rungs[i], which), "{:+.1f}"); });
  }
  row("+ waiting", [&](std::size_t i) { return interval(series.rungs[i].waiting, "{:+.1f}"); });
  for (const RungCost which : {RungCost::arrival_limit, RungCost::ordering_loss}) {
    row(fmt::format("    of it {}", name(which)),
        [&](std::size_t i) { return interval(cost(series.rungs[i], which), "{:+.1f}"); });
  }
  row(fmt::format("+ {}", name(RungCost::tail)),
      [&](std::size_t i) { return interval(cost(series.rungs[i], RungCost::tail), "{:+.1f}"); });
  row("= full layer", [&](std::size_t i) { return interval(series.rungs[i].full(), "{:.1f}"); });
  for (const std::string& sentence : wave_steps(series)) {
    text += "  " + sentence + '\n';
  }
  return text;
}

}  // namespace fusescope::analysis
