#include "sweep/worker_serve.hpp"

#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <deque>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "sweep/knob_json.hpp"
#include "sweep/worker_channel.hpp"

namespace fusescope::sweep {
namespace {

constexpr std::chrono::milliseconds kBeat{500};

// Lines that have come; the reading thread ends the process with the channel.
class Inbox {
 public:
  explicit Inbox(WorkerChannel& channel) : channel_(channel), reader_([this] { read(); }) {
    reader_.detach();  // blocks in a read for as long as the process lives
  }

  Json next() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !lines_.empty(); });
    const std::string line = std::move(lines_.front());
    lines_.pop_front();
    return Json::parse(line);
  }

 private:
  [[noreturn]] void read() {
    std::string line;
    while (channel_.receive(line) == WorkerChannel::Got::line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
      arrived_.notify_one();
    }
    ::_exit(0);
  }

  WorkerChannel& channel_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::string> lines_;
  std::thread reader_;
};

void beat(const std::stop_token& stop, WorkerChannel& channel) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  for (long long count = 0; !stop.stop_requested(); ++count) {
    channel.send(R"({"beat":)" + std::to_string(count) + "}");
    changed.wait_for(lock, stop, kBeat, [] { return false; });
  }
}

std::string hello_line(const engine::Engine& engine) {
  const DeviceLimits& device = engine.device();
  const Json hello = {{"engine", engine.name()},
                      {"identity", engine.identity()},
                      {"parallel_runs", engine.parallel_runs()},
                      {"device",
                       {{"name", device.name},
                        {"sms", device.sms},
                        {"smem_per_block", device.smem_per_block},
                        {"fetches_first", device.fetches_first},
                        {"wgmma", device.wgmma}}}};
  return Json{{"hello", hello}}.dump();
}

std::string refused_line(const InputError::Parts& parts) {
  const Json refused = {{"file", parts.file},
                        {"place", parts.place},
                        {"problem", parts.problem},
                        {"accepted", parts.accepted}};
  return Json{{"refused", refused}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string failed_line(const std::string& reason) {
  return Json{{"failed", reason}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Kind, label and id are the sweep's business; they come back as they were sent.
std::string run(const WorkerSetup& setup, const Json& order) {
  const JsonReader reader("the sweep's order", order);
  const Bench bench{setup.engine.get(), &setup.problem, setup.measure, setup.analyse,
                    setup.command};
  Trial planned = trial_from_line(reader.at("trial").value().dump(), "the sweep's order", "/trial");
  constexpr int kMost = std::numeric_limits<int>::max();
  const auto samples = static_cast<int>(reader.at("samples").as_integer(0, kMost));
  const auto deadline_ms = static_cast<int>(reader.at("deadline_ms").as_integer(0, kMost));
  return R"({"trial":)" + to_line(run_trial(bench, std::move(planned), samples, deadline_ms)) + "}";
}

std::string keep(const WorkerSetup& setup, const Json& order) {
  const JsonReader reader("the sweep's order", order);
  Config config;
  set_knobs(config, reader.at("config"));
  try {
    setup.keep(*setup.engine, setup.problem, config, reader.at("folder").as_string());
  } catch (const std::exception& error) {
    return failed_line(error.what());
  }
  return R"({"kept":true})";
}

}  // namespace

WorkerHello hello_from_json(const JsonReader& reader) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const JsonReader device = reader.at("device");
  WorkerHello hello;
  hello.engine = reader.at("engine").as_string();
  hello.identity = reader.at("identity").as_string();
  hello.parallel_runs = static_cast<int>(reader.at("parallel_runs").as_integer(1, kMost));
  hello.device.name = device.at("name").as_string();
  hello.device.sms = static_cast<int>(device.at("sms").as_integer(0, kMost));
  hello.device.smem_per_block = static_cast<int>(device.at("smem_per_block").as_integer(0, kMost));
  hello.device.fetches_first = device.at("fetches_first").as_bool();
  hello.device.wgmma = device.at("wgmma").as_bool();
  return hello;
}

int serve_worker(int socket, const std::function<WorkerSetup(const Json&)>& open) {
  // A terminal's Ctrl-C and a batch system's warning reach workers, too; the sweep decides what ends.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  auto* const channel = new WorkerChannel(socket);  // the reading thread keeps it to the end
  auto* const inbox = new Inbox(*channel);
  const std::jthread heart([channel](const std::stop_token& stop) { beat(stop, *channel); });
  WorkerSetup setup;
  try {
    setup = open(inbox->next().at("open"));
  } catch (const InputError& error) {
    channel->send(refused_line(error.parts()));
    return 2;
  } catch (const std::exception& error) {
    channel->send(failed_line(error.what()));
    return 1;
  }
  channel->send(hello_line(*setup.engine));
  while (true) {
    const Json order = inbox->next();
    channel->send(order.contains("run") ? run(setup, order.at("run"))
                                        : keep(setup, order.at("keep")));
  }
}

}  // namespace fusescope::sweep
