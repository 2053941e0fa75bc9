#include "reports/prose.hpp"

#include <fmt/format.h>

#include "reports/findings.hpp"
#include "reports/format.hpp"

namespace fusescope::reports::prose {

namespace {

bool simulated(const ReportInput& input) {
  return input.provenance == timeline::Provenance::simulated;
}

std::string joined(std::initializer_list<std::string> parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (!part.empty()) {
      out += (out.empty() ? "" : " · ") + part;
    }
  }
  return out;
}

// After "Simulated." or "Measured."
std::string explanation(const ReportInput& input) {
  if (simulated(input)) {
    return input.profile.empty()
               ? "Every time in this report comes from a model of the layer; none was measured."
               : fmt::format(
                     "Every time in this report comes from a model of the layer on the device "
                     "profile {}; none was measured on that machine.",
                     input.profile);
  }
  return fmt::format("Every time in this report was {}{}.",
                     input.source.empty() ? "measured" : input.source,
                     input.sampling.empty() ? "" : ", " + input.sampling);
}

}  // namespace

std::string subtitle(const ReportInput& input) {
  return joined({is_single_run(input) ? "One run" : "Sweep " + input.name, input.problem,
                 input.source, input.date});
}

std::string which(const ChosenRun& run) {
  const std::string& config = run.timeline.meta.config;
  if (run.why.empty()) {
    return fmt::format("The run: {}.", config.empty() ? run.name : config);
  }
  return fmt::format("The run: {}, {}{}.", run.name, run.why, config.empty() ? "" : ": " + config);
}

std::string footer(const ReportInput& input) {
  return joined({input.fusescope, input.date, input.source,
                 input.rendered_by == input.fusescope ? "" : "report by " + input.rendered_by}) +
         ".";
}

std::string ribbon_html(const ReportInput& input) {
  return fmt::format("<strong>{}</strong> {}", timeline::name(input.provenance),
                     escape_html(explanation(input)));
}

std::string ribbon(const ReportInput& input) {
  return (simulated(input) ? "Simulated. " : "Measured. ") + explanation(input);
}

std::string heatmap(const Heatmap& map, const Findings& findings) {
  return fmt::format(
      "Each cell is the best that any setting of the other knobs reaches{}. {} and {} explain most "
      "of the variance of "
      "the walls.",
      findings.finalists > 0 ? ", by the search's samples" : "", map.x, map.y);
}

std::string configs(const Findings& findings) {
  std::string text = "A tie: " + findings.tie_rule + ".";
  if (findings.finalists > 0) {
    text += fmt::format(
        " The first {} are finalists: their walls are of the turns in which they were timed again, "
        "after the search. The others' are the search's, and are held against what the search "
        "measured of the best; the machine may have drifted in between.",
        findings.finalists);
  }
  return text;
}

}  // namespace fusescope::reports::prose
