#include "sweep/trial_log.hpp"

#include <string>
#include <vector>

#include "base/error.hpp"
#include "memory_file.hpp"
#include "sweep/merge.hpp"
#include "targets.hpp"

namespace fusescope::fuzz {
namespace {

// What is written of a trial is that trial, to the last bit.
void check_lines(const std::vector<sweep::Trial>& trials) {
  for (const sweep::Trial& trial : trials) {
    const std::string line = to_line(trial);
    require(line.find('\n') == std::string::npos, "a trial is one line");
    require(sweep::trial_from_line(line, "input", "line") == trial, "a trial survives its line");
    require(counted_walls(trial).size() <= trial.wall_us.size(), "only samples count");
  }
}

void check_resumed(const std::string& bytes, const sweep::LogContents& contents) {
  const MemoryFile file(bytes);
  {
    sweep::TrialLog log(file.path(), contents.header);
    require(log.resumed(), "the log of this sweep is resumed");
    require(log.repair().empty() == contents.torn.empty(), "a torn line is reported");
    require(file.bytes() == bytes.substr(0, contents.whole_bytes), "whole lines are kept");
    sweep::Trial trial;
    trial.id = static_cast<int>(log.trials().size());
    log.append(trial);
  }
  const sweep::LogContents longer = sweep::read_trial_log(file.path());
  require(longer.trials.size() == contents.trials.size() + 1, "an appended trial is there");
  require(longer.torn.empty(), "a repaired log is whole");
  require(file.bytes().starts_with(bytes.substr(0, contents.whole_bytes)), "a log only grows");
}

void check_refused(const std::string& bytes, sweep::LogHeader header) {
  const MemoryFile file(bytes);
  header.device += " of another make";
  bool refused = false;
  try {
    const sweep::TrialLog log(file.path(), header);
  } catch (const InputError&) {
    refused = true;
  }
  require(refused, "another device's log is refused");
  require(file.bytes() == bytes, "a refused log stays as it is");
}

void check_merged(const std::string& path) {
  const sweep::Merged merged = sweep::merge_logs({path, path}, "merge");
  const MemoryFile whole(to_text(merged));
  const sweep::Merged again = sweep::merge_logs({whole.path()}, "merge");
  require(again.trials == merged.trials, "a merged log is a log");
  require(again.torn.empty() && again.left_out == 0, "a merged log is whole");
}

}  // namespace

bool trial_log(std::string_view input) {
  const std::string bytes(input);
  const MemoryFile file(bytes);
  try {
    const sweep::LogContents contents = sweep::read_trial_log(file.path());
    require(contents.whole_bytes + contents.torn.size() == bytes.size(), "no byte is lost");
    check_lines(contents.trials);
    check_resumed(bytes, contents);
    check_refused(bytes, contents.header);
    check_merged(file.path());
    return true;
  } catch (const InputError&) {
    require(file.bytes() == bytes, "a refused log stays as it is");
    return false;
  }
}

}  // namespace fusescope::fuzz
