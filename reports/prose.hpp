#pragma once
// Sentences that both renderers use: what each section shows and how to read it.

#include <string>

#include "reports/report.hpp"
#include "reports/sections.hpp"

namespace fusescope::reports::prose {

inline constexpr const char* kLadder =
    "From the serial layer to the tuned fused one, one feature more per rung. A gain is against "
    "the rung before "
    "it, so it depends on the order of the rungs.";
inline constexpr const char* kPublished =
    "Figures that others published for this layer, beside what this sweep gives. A fitted figure "
    "went into the "
    "device profile, so its agreement proves nothing; the predictions are what to judge the model "
    "by.";
inline constexpr const char* kSteps =
    "The critical path of one iteration of each config, split by step: an exact partition of that "
    "iteration's wall. "
    "Orange and red are dispatch, plum combine and push, blue the GEMMs, green the final reduce, "
    "grey the set-up.";
inline constexpr const char* kKnobs =
    "What this sweep says of each knob by itself. At the best config: that config against the one "
    "that differs in this knob alone. Over all pairs: the median over every two configs that "
    "differ "
    "in it alone, wherever they lie; where the two columns disagree, the knob depends on others.";
inline constexpr const char* kPath =
    "Walked back from the end of the last rank: each nanosecond of the wall belongs to the one "
    "event that everything "
    "later waited for. It cannot show GEMMs that are slower because communication runs beside "
    "them, nor SMs that "
    "communication takes from them: both lengthen GEMM 1 and GEMM 2 here.";
inline constexpr const char* kExposure =
    "Wall time that would vanish if communication took no time, by three views that share no rule: "
    "a walk along the causes, areas of SM time, and runs with one cost taken away. Time that SMs "
    "are missing to the GEMMs is stated apart, as the SM tax.";
inline constexpr const char* kAccounting =
    "The whole area SMs x wall, split by what each SM did. Slots of one block share its SM: work "
    "wins over waiting, "
    "waiting over idle. A long wait here need not lengthen the wall; the critical path says which "
    "ones do.";
inline constexpr const char* kWaits =
    "Each wait of a compute block at a closed gate, blamed on the last row to land: its token, the "
    "rank that it was "
    "pulled from, and what the row was doing. Not yet issued: no communication block had asked for "
    "it. In flight: it "
    "was being pulled or scattered. Landed, not yet seen: the gate was open and the block had not "
    "noticed.";
inline constexpr const char* kLinks =
    "Rows that cross from one GPU to another, by the rank whose link all others share: its egress "
    "where they are pulled from, its ingress where they are pushed to. In convoy: more than half "
    "of all rows on the way are one rank's, whose link then carries what the links of all ranks "
    "could; of an emulated link, which is a line for each pair of ranks, each rank then uses one "
    "line only. Gates that wait blame the rank that comes last in a convoy; here is the one that "
    "made the others late.";
inline constexpr const char* kTimeline =
    "Every block of every rank. It opens at the rank that most of the critical path runs through; "
    "drag "
    "down for the ranks above it. The same events lie in the timeline files, for Perfetto and "
    "other viewers.";
inline constexpr const char* kProvenance = "Where this report and its numbers come from.";

std::string subtitle(const ReportInput& input);  // problem, source, date
std::string which(const ChosenRun& run);         // the run that a section is about
std::string footer(const ReportInput& input);
// What the numbers are, in words; HTML with everything escaped, and plain.
std::string ribbon_html(const ReportInput& input);
std::string ribbon(const ReportInput& input);
std::string heatmap(const Heatmap& map, const Findings& findings);
std::string configs(const Findings& findings);

}  // namespace fusescope::reports::prose
