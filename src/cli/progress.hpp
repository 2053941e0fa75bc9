#pragma once
// A sweep's progress on stderr: one line that renews itself on a terminal, some plain lines elsewhere.

#include "sweep/runner.hpp"

namespace fusescope::cli {

class ProgressLine {
 public:
  explicit ProgressLine(std::string what);  // "search", "ladder"
  ~ProgressLine();                          // leaves the cursor on a fresh line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const sweep::Progress& progress);

 private:
  bool is_due(const sweep::Progress& progress);

  std::string what_;
  bool terminal_;
  bool shown_ = false;
  double last_seconds_ = 0;
  int last_tenth_ = -1;
};

// "trial 12/96, best 3120.4 us, 1 did not run, 5.2/s, 14 s left"
std::string progress_text(const sweep::Progress& progress);
// "[#####---------------]"; "" where the end is not known.
std::string progress_bar(const sweep::Progress& progress);

}  // namespace fusescope::cli
