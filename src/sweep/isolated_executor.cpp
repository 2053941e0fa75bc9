#include "sweep/isolated_executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "sweep/knob_json.hpp"

namespace fusescope::sweep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBaselines = 20;     // a trial may take that many times what the baseline took
constexpr double kLeastSeconds = 2;   // whatever the baseline
constexpr double kDeviceWalls = 200;  // a wait on the device may take that many base walls
constexpr int kLeastDeviceMs = 500;
constexpr int kMostDeviceMs = 2000;
constexpr std::string_view kBeat = R"({"beat":)";
constexpr std::string_view kTrial = R"({"trial":)";

Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

struct IsolatedExecutor::Worker {
  explicit Worker(const std::vector<std::string>& command) : process(command) {}
  WorkerProcess process;
  WorkerHello hello;
  bool alive = false;  // has given a sign of life: before that the program is being loaded
  bool fresh = true;   // has measured nothing yet: its first trial sets up the problem
};

struct IsolatedExecutor::Answer {
  Verdict verdict = Verdict::ok;  // not ok: the worker is lost
  std::string text;               // the line, or why there is none
};

IsolatedExecutor::IsolatedExecutor(WorkerOptions options) : options_(std::move(options)) {
  idle_.push_back(open_worker());
  hello_ = idle_.front()->hello;
}

IsolatedExecutor::~IsolatedExecutor() = default;

void IsolatedExecutor::set_workers(int workers) {
  options_.workers = workers;
}

std::unique_ptr<IsolatedExecutor::Worker> IsolatedExecutor::open_worker() {
  auto worker = std::make_unique<Worker>(options_.command);
  const Answer answer =
      ask(*worker, Json{{"open", options_.open}}.dump(), options_.startup_seconds);
  if (answer.verdict != Verdict::ok) {
    throw CheckFailure("a worker did not start: " + answer.text);
  }
  const Json line = Json::parse(answer.text);
  if (line.contains("refused")) {
    const JsonReader refused("the worker", line.at("refused"));
    throw InputError({refused.at("file").as_string(), refused.at("place").as_string(),
                      refused.at("problem").as_string(), refused.at("accepted").as_string()});
  }
  if (!line.contains("hello")) {
    throw CheckFailure("a worker did not start: " + line.value("failed", answer.text));
  }
  worker->hello = hello_from_json(JsonReader("the worker", line.at("hello")));
  if (!hello_.identity.empty() && worker->hello.identity != hello_.identity) {
    throw CheckFailure(fmt::format("the device changed under the sweep: it was {}, is {}",
                                   hello_.identity, worker->hello.identity));
  }
  return worker;
}

// Sends an order and waits for the answer, past heartbeats.
IsolatedExecutor::Answer IsolatedExecutor::ask(Worker& worker, const std::string& order,
                                               double seconds) const {
  const Clock::time_point deadline = after(seconds);
  Clock::time_point silence = worker.alive ? after(options_.silence_seconds) : deadline;
  worker.process.channel().send(order);  // should it be gone, so is the answer
  std::string line;
  while (true) {
    switch (worker.process.channel().receive(line, std::min(deadline, silence))) {
      case WorkerChannel::Got::line:
        worker.alive = true;
        if (!line.starts_with(kBeat)) {
          return {Verdict::ok, line};
        }
        silence = after(options_.silence_seconds);
        break;
      case WorkerChannel::Got::closed:
        return {Verdict::crashed, "the worker was " + worker.process.end(false)};
      case WorkerChannel::Got::late: {
        const bool silent = silence < deadline;
        worker.process.end(true);
        return {Verdict::hang,
                silent ? fmt::format("no sign of life from the worker for {:.3g} s",
                                     options_.silence_seconds)
                       : fmt::format("had not ended at its deadline of {:.3g} s", seconds)};
      }
    }
  }
}

std::unique_ptr<IsolatedExecutor::Worker> IsolatedExecutor::take_worker() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !idle_.empty() || busy_ < options_.workers; });
    ++busy_;
    if (!idle_.empty()) {
      std::unique_ptr<Worker> worker = std::move(idle_.back());
      idle_.pop_back();
      return worker;
    }
  }
  try {
    return open_worker();
  } catch (...) {
    give_back(nullptr);
    throw;
  }
}

void IsolatedExecutor::give_back(std::unique_ptr<Worker> worker) {
  const std::lock_guard lock(mutex_);
  --busy_;
  if (worker) {
    idle_.push_back(std::move(worker));
  }
  changed_.notify_one();
}

double IsolatedExecutor::allowed_seconds(const Worker& worker) const {
  const std::lock_guard lock(mutex_);
  const double startup = worker.fresh ? options_.startup_seconds : 0;
  if (options_.deadline_seconds > 0) {
    return options_.deadline_seconds + startup;
  }
  return startup + options_.max_seconds + options_.rest_seconds +
         std::max(kLeastSeconds, kBaselines * baseline_seconds_);
}

int IsolatedExecutor::device_deadline_ms() const {
  const std::lock_guard lock(mutex_);
  if (baseline_wall_us_ == 0) {
    return 0;
  }
  return std::clamp(static_cast<int>(kDeviceWalls * baseline_wall_us_ / 1e3), kLeastDeviceMs,
                    kMostDeviceMs);
}

// The baseline is the base config's time where the sweep measures it, else that of the first config that
// ran; a worker's first trial, which sets up the problem, stands in for it only until there is another.
void IsolatedExecutor::learn(const Trial& trial, bool fresh) {
  const std::lock_guard lock(mutex_);
  const int rank = (fresh ? 0 : 2) + (trial.kind == TrialKind::base ? 2 : 1);
  if (trial.verdict == Verdict::ok && rank > baseline_rank_) {
    baseline_seconds_ = trial.seconds;
    baseline_wall_us_ = trial.median_us;
    baseline_rank_ = rank;
  }
}

Trial IsolatedExecutor::execute(Trial planned, int samples) {
  std::unique_ptr<Worker> worker = take_worker();
  const Json order = {{"trial", Json::parse(to_line(planned))},
                      {"samples", samples},
                      {"deadline_ms", device_deadline_ms()}};
  const auto begin = Clock::now();
  const Answer answer = ask(*worker, Json{{"run", order}}.dump(), allowed_seconds(*worker));
  Trial trial;
  if (answer.verdict == Verdict::ok && answer.text.starts_with(kTrial)) {
    trial = trial_from_line(
        std::string_view(answer.text).substr(kTrial.size(), answer.text.size() - kTrial.size() - 1),
        "the worker's answer", "");
    learn(trial, worker->fresh);
  } else {
    const bool lost = answer.verdict != Verdict::ok;
    trial = failed_trial(planned, lost ? answer.verdict : Verdict::crashed, answer.text);
    trial.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  worker->fresh = false;
  // After a failed call a device's context may be unusable, and memory may be lost: only a new
  // process is sure to be sound.
  const bool sound = trial.verdict == Verdict::ok || trial.verdict == Verdict::illegal ||
                     trial.verdict == Verdict::wrong_output || trial.verdict == Verdict::aborted;
  if (!sound) {
    const std::lock_guard lock(mutex_);
    ++replaced_;
  }
  give_back(sound ? std::move(worker) : nullptr);
  return trial;
}

int IsolatedExecutor::replaced() const {
  const std::lock_guard lock(mutex_);
  return replaced_;
}

void IsolatedExecutor::keep(const Config& config, const std::string& folder) {
  std::unique_ptr<Worker> worker = take_worker();
  const Json order = {{"config", Json::parse(to_json(config).dump())}, {"folder", folder}};
  const Answer answer = ask(*worker, Json{{"keep", order}}.dump(),
                            options_.startup_seconds + options_.max_seconds +
                                options_.rest_seconds + options_.keep_rest_seconds);
  const bool lost = answer.verdict != Verdict::ok;
  const Json line = lost ? Json::object() : Json::parse(answer.text);
  give_back(lost ? nullptr : std::move(worker));
  if (!line.contains("kept")) {
    throw CheckFailure("the config's run could not be kept: " +
                       (lost ? answer.text : line.value("failed", answer.text)));
  }
}

}  // namespace fusescope::sweep
