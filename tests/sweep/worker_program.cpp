// The worker of the tests: a made-up engine with the faults that the sweep asks for. Its wall times are
// a formula; it simulates nothing and says so.
// worker_program RUNS_FILE: appends one byte per run of the engine, so that repeats are counted across
// processes.

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "fake_engine.hpp"
#include "sweep/faults.hpp"
#include "sweep/worker_process.hpp"
#include "sweep/worker_serve.hpp"

namespace fusescope::sweep::test {
namespace {

class CountingEngine : public FakeEngine {
 public:
  CountingEngine(std::string runs_file, int sleep_ms)
      : runs_file_(std::move(runs_file)), sleep_ms_(sleep_ms) {}

  engine::RunResult run(const engine::RunRequest& request) override {
    engine::RunResult result = FakeEngine::run(request);
    std::this_thread::sleep_for(std::chrono::milliseconds(sleep_ms_));
    const int file = ::open(runs_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    [[maybe_unused]] const ssize_t put = ::write(file, ".", 1);
    ::close(file);
    return result;
  }

 private:
  std::string runs_file_;
  int sleep_ms_;
};

WorkerSetup open_worker(const std::string& runs_file, const Json& message) {
  const JsonReader reader("the test", message);
  const SweepConfig config = parse_sweep_config(reader.at("document").value(), "test.json");
  std::vector<Fault> faults;
  for (std::size_t i = 0; i < reader.at("faults").size(); ++i) {
    faults.push_back(parse_fault(reader.at("faults").element(i).as_string(), "the test"));
  }
  if (reader.has("die_opening")) {
    std::_Exit(9);
  }
  WorkerSetup setup;
  setup.engine =
      make_faulty(std::make_unique<CountingEngine>(
                      runs_file, static_cast<int>(reader.at("sleep_ms").as_integer(0, 10'000))),
                  faults);
  setup.problem = make_problem(config.shape, config.routing);
  setup.measure = config.measure;
  setup.command = "a test";
  return setup;
}

}  // namespace
}  // namespace fusescope::sweep::test

int main(int argc, char** argv) {
  using namespace fusescope;
  const std::string runs_file = argc > 1 ? argv[1] : "/dev/null";
  return sweep::serve_worker(sweep::kWorkerSocket, [&](const Json& message) {
    return sweep::test::open_worker(runs_file, message);
  });
}
