#include "sweep/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "sweep/sweep_config.hpp"

namespace fusescope::sweep {
namespace {

constexpr const char* kWhole = "1/1";

// Takes the shard out of a header's identity.
Shard take_shard(LogHeader& header, const std::string& file) {
  Json identity = Json::parse(header.identity);
  const JsonReader reader(file, identity, "line 1/identity");
  const Shard shard =
      parse_shard(reader.has("shard") ? reader.at("shard").as_string() : kWhole, file);
  identity["shard"] = kWhole;
  header.identity = identity.dump();
  return shard;
}

class Merger {
 public:
  explicit Merger(std::string command) : command_(std::move(command)) {}

  void add(const std::string& path) {
    LogContents log = read_trial_log(path);
    const Shard shard = take_shard(log.header, path);
    if (merged_.header.identity.empty()) {
      merged_.header = log.header;
      count_ = shard.count;
    }
    const std::string different = differences(merged_.header, log.header);
    if (!different.empty() || shard.count != count_) {
      throw InputError(
          {path, "line 1",
           different.empty()
               ? fmt::format("is of {} shards, the first log is of {}", shard.count, count_)
               : "is the log of another sweep than the first: " + different,
           "logs of the shards of one sweep"});
    }
    merged_.header.started = std::min(merged_.header.started, log.header.started);
    seen_shards_.insert(shard.index);
    if (!log.torn.empty()) {
      merged_.torn.push_back(path);
    }
    for (Trial& trial : log.trials) {
      add(std::move(trial));
    }
  }

  Merged whole() {
    merged_.header.command = command_;
    for (int index = 1; index <= count_; ++index) {
      if (!seen_shards_.contains(index)) {
        merged_.missing.push_back(shard_text({index, count_}));
      }
    }
    return std::move(merged_);
  }

 private:
  void add(Trial trial) {
    switch (trial.kind) {
      case TrialKind::rung:
      case TrialKind::finalist:
        ++merged_.left_out;
        return;
      case TrialKind::base:
        trial.id = trial.visit = bases_++;
        break;
      case TrialKind::search:
        if (!seen_.emplace(hash(trial.config), trial.visit).second) {
          ++merged_.repeated;
          return;
        }
        trial.id = searched_++;
        break;
    }
    merged_.trials.push_back(std::move(trial));
  }

  std::string command_;
  Merged merged_;
  int count_ = 1;
  int bases_ = 0;
  int searched_ = 0;
  std::set<int> seen_shards_;
  std::set<std::pair<std::uint64_t, int>> seen_;
};

}  // namespace

Merged merge_logs(const std::vector<std::string>& paths, const std::string& command) {
  Merger merger(command);
  for (const std::string& path : paths) {
    merger.add(path);
  }
  return merger.whole();
}

std::string to_text(const Merged& merged) {
  std::string text = to_line(merged.header) + "\n";
  for (const Trial& trial : merged.trials) {
    text += to_line(trial) + "\n";
  }
  return text;
}

}  // namespace fusescope::sweep
