#pragma once
// One statement of exposed communication by each view of a run, and whether they agree.
//
//   critical path    what communication adds to the path (see critical_path.hpp)
//   wait accounting  mean over ranks and SMs: gate waits and fetching in the blocks that compute, what
//                    pushes alone take of the jobs after the last tile, and the stream's communication phases
//   rungs            the full layer less compute only on the split's SMs, less what the path holds of the
//                    fused layer's other own work: schedule build, and waits and sums of jobs after the last
//                    tile of all ranks. Before it, compute only takes that time too: its tiles run
//
// None of them counts the SM tax: that one only the rungs see, and it is stated beside them. Tiles that are
// slower because communication runs beside them count in the rungs alone.

#include <string>
#include <vector>

namespace fusescope::timeline {
struct Timeline;
}

namespace fusescope::analysis {

struct Attribution;
struct Rungs;

struct ExposedView {
  std::string view;      // "critical path"
  double us = 0;         // exposed communication; means nothing with a `missing`
  double error_us = 0;   // half of an interval; 0 for a simulation
  std::string of_error;  // what the error is made of
  std::string missing;   // why this view states nothing; "" = it does
};

struct Exposure {
  double wall_us = 0;
  std::vector<ExposedView> views;  // the three, in the order above
  double residual_us = 0;          // largest difference of two views that state something
  bool agree = false;              // two views or more do, and no two of them disagree
  std::string statement;           // in a sentence
  std::vector<std::string>
      warnings;  // a sentence for each two that differ by more than both errors and
                 // 3% of the wall
};

// `rungs`: null = not sampled. A refused attribution makes every view abstain with its reason.
Exposure state_exposure(const timeline::Timeline& timeline, const Attribution& attribution,
                        const Rungs* rungs);

// A table and its sentences, as `attribute` prints them.
std::string exposure_text(const Exposure& exposure);

}  // namespace fusescope::analysis
