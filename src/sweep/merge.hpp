#pragma once
// Joins the logs of a sweep's shards into the log of the whole sweep.

#include <string>
#include <vector>

#include "sweep/trial_log.hpp"

namespace fusescope::sweep {

struct Merged {
  LogHeader header;  // of the whole sweep: its shard is 1/1
  std::vector<Trial> trials;
  long long repeated = 0;            // measurements that several logs had; the first log's is kept
  long long left_out = 0;            // finalists and rungs: they were a shard's own
  std::vector<std::string> torn;     // logs whose last line is cut off; it is not in the whole
  std::vector<std::string> missing;  // shards that no log is of: "3/8"
};

// Search and base measurements of all logs, in the order of `paths`. Throws InputError naming the log
// that is not of the same program, device, problem and sweep as the first, or of other shards of it.
Merged merge_logs(const std::vector<std::string>& paths, const std::string& command);

// The whole log as text.
std::string to_text(const Merged& merged);

}  // namespace fusescope::sweep
