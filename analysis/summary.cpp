#include "analysis/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "analysis/findings.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Dependencies;
using timeline::Timeline;

std::string why_refused(const Timeline& timeline) {
  if (timeline.events.empty()) {
    return "the timeline holds no events, so there is nothing to attribute";
  }
  if (timeline.wall_ns() <= 0) {
    return fmt::format("the timeline's wall is {} ns, so there is nothing to attribute",
                       timeline.wall_ns());
  }
  if (timeline.meta.dropped > 0) {
    return fmt::format(
        "the timeline is clipped: {} records were lost to full buffers, and an attribution would "
        "blame what is left; record it again with larger buffers",
        timeline.meta.dropped);
  }
  return {};
}

std::vector<std::string> caveats_of(const Timeline& timeline, const CriticalPath& path,
                                    const Accounting& accounting) {
  std::vector<std::string> caveats;
  if (timeline.meta.clock_bound_ns > 0) {
    caveats.push_back(
        fmt::format("times of different ranks agree to within {:.0f} ns, and so does every hop of "
                    "the path from one rank to another",
                    timeline.meta.clock_bound_ns));
  }
  if (path.causes_missing > 0) {
    caveats.push_back(
        fmt::format("{} waits on the critical path have no cause on record; their time stays with "
                    "the waiting block",
                    path.causes_missing));
  }
  if (path.unexplained_ns > 0) {
    caveats.push_back(
        fmt::format("{} at the begin of the path could not be reached and count as "
                    "launch gap",
                    spoken_us(path.unexplained_ns)));
  }
  const auto unknown = std::count_if(accounting.gates.begin(), accounting.gates.end(),
                                     [](const GateBlame& gate) { return gate.last_token < 0; });
  if (unknown > 0) {
    caveats.push_back(fmt::format(
        "{} gate waits have no arrival on record and count as not yet issued", unknown));
  }
  return caveats;
}

std::vector<Finding> findings_of(const Dependencies& dependencies, const CriticalPath& path,
                                 const WaitTable& waits, std::int64_t wall_ns) {
  std::vector<Finding> findings;
  for (int i = 0; i < kSteps; ++i) {
    const auto step = static_cast<Step>(i);
    const std::int64_t ns = path.by_step[static_cast<std::size_t>(i)];
    if (ns > 0) {
      findings.push_back({step, ns, path.exposed_by_step[static_cast<std::size_t>(i)],
                          static_cast<double>(ns) / static_cast<double>(wall_ns),
                          reason(step, dependencies, path, waits)});
    }
  }
  std::sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return std::tuple(-a.exposed_ns, -a.ns, a.step) < std::tuple(-b.exposed_ns, -b.ns, b.step);
  });
  return findings;
}

std::string headline_of(const Attribution& attribution, const Timeline& timeline) {
  const double wall = static_cast<double>(attribution.wall_ns);
  const std::string of_wall = fmt::format("Of a {} wall of {}, ", name(timeline.meta.provenance),
                                          spoken_us(attribution.wall_ns));
  if (attribution.exposed_ns == 0) {
    return of_wall +
           "none is exposed communication: the critical path runs through other steps alone.";
  }
  const Finding& worst = attribution.findings.front();
  std::string text = fmt::format(
      "{}{} ({}) is exposed communication. {} exposes most, {} ({} of the wall)", of_wall,
      spoken_us(attribution.exposed_ns),
      spoken_share(static_cast<double>(attribution.exposed_ns) / wall), name(worst.step),
      spoken_us(worst.exposed_ns), spoken_share(static_cast<double>(worst.exposed_ns) / wall));
  const auto sentence = text.find(". ") + 2;
  text[sentence] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[sentence])));
  return text + (worst.reason.empty() ? "." : ": " + worst.reason + ".");
}

}  // namespace

Attribution attribute(const Timeline& timeline) {
  Attribution attribution;
  attribution.refusal = why_refused(timeline);
  if (!attribution.refusal.empty()) {
    attribution.exposure = state_exposure(timeline, attribution, nullptr);
    return attribution;
  }
  const Dependencies dependencies(timeline);
  attribution.wall_ns = timeline.wall_ns();
  attribution.path = critical_path(dependencies);
  attribution.exposed_ns = attribution.path.exposed_communication_ns();
  attribution.accounting = account(dependencies);
  attribution.waits = tabulate_waits(dependencies, attribution.accounting.gates);
  attribution.pulls = link_load(dependencies, timeline::Kind::pull);
  attribution.pushes = link_load(dependencies, timeline::Kind::push);
  attribution.caveats = caveats_of(timeline, attribution.path, attribution.accounting);
  attribution.findings =
      findings_of(dependencies, attribution.path, attribution.waits, attribution.wall_ns);
  attribution.headline = headline_of(attribution, timeline);
  attribution.exposure = state_exposure(timeline, attribution, nullptr);
  return attribution;
}

std::map<std::string, double> steps_us(const CriticalPath& path) {
  std::map<std::string, double> steps;
  for (int i = 0; i < kSteps; ++i) {
    const std::int64_t ns = path.by_step[static_cast<std::size_t>(i)];
    if (ns > 0) {
      steps[std::string(name(static_cast<Step>(i)))] = static_cast<double>(ns) / 1000;
    }
  }
  return steps;
}

}  // namespace fusescope::analysis
