#include "sweep/faults.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace fusescope::sweep {
namespace {

constexpr std::array<std::string_view, 7> kNames = {"hang",   "stop",         "segfault", "exit",
                                                    "memory", "wrong_output", "launch"};
constexpr std::size_t kMemoryLimit = std::size_t{256} << 20;  // [bytes] beyond what is mapped

[[noreturn]] void exhaust_memory() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const std::size_t mapped = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  struct rlimit limit = {};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, mapped + kMemoryLimit);
  ::setrlimit(RLIMIT_AS, &limit);
  std::vector<std::vector<char>> hoard;
  while (true) {
    hoard.emplace_back(std::size_t{8} << 20, 'x');
  }
}

void commit(FaultKind kind) {
  switch (kind) {
    case FaultKind::hang:
      while (true) {
        std::this_thread::sleep_for(std::chrono::hours(1));
      }
    case FaultKind::stop:
      ::raise(SIGSTOP);
      return;
    case FaultKind::segfault:
      std::signal(SIGSEGV, SIG_DFL);
      ::raise(SIGSEGV);
      return;
    case FaultKind::exit:
      std::_Exit(3);
    case FaultKind::memory:
      exhaust_memory();
    case FaultKind::wrong_output:
      throw CheckFailure("injected: wrong outputs", CheckFailure::Kind::wrong_output);
    case FaultKind::launch:
      throw std::runtime_error("injected: cudaErrorLaunchFailure");
  }
}

class Faulty : public engine::Engine {
 public:
  Faulty(std::unique_ptr<engine::Engine> engine, std::vector<Fault> faults)
      : engine_(std::move(engine)), faults_(std::move(faults)) {}

  std::string name() const override { return engine_->name(); }
  const DeviceLimits& device() const override { return engine_->device(); }
  int parallel_runs() const override { return engine_->parallel_runs(); }
  std::string identity() const override {
    std::string text = engine_->identity() + "; with injected faults:";
    for (const Fault& fault : faults_) {
      text += fmt::format(" {} at {}", kNames[static_cast<std::size_t>(fault.kind)],
                          fault.where.text());
    }
    return text;
  }

  engine::RunResult run(const engine::RunRequest& request) override {
    for (const Fault& fault : faults_) {
      if (fault.where.holds(request.config, device(), request.problem->shape)) {
        commit(fault.kind);
      }
    }
    return engine_->run(request);
  }

 private:
  std::unique_ptr<engine::Engine> engine_;
  std::vector<Fault> faults_;
};

}  // namespace

Fault parse_fault(const std::string& text, const std::string& option) {
  const std::size_t colon = text.find(':');
  const auto kind = std::find(kNames.begin(), kNames.end(), text.substr(0, colon));
  if (colon == std::string::npos || kind == kNames.end()) {
    throw InputError(
        {option, "", fmt::format("\"{}\" is not a fault", text),
         "KIND: CONSTRAINT, with KIND " + spoken_list({kNames.begin(), kNames.end()})});
  }
  return {static_cast<FaultKind>(kind - kNames.begin()),
          Constraint(text.substr(colon + 1), option, "")};
}

std::unique_ptr<engine::Engine> make_faulty(std::unique_ptr<engine::Engine> engine,
                                            std::vector<Fault> faults) {
  return std::make_unique<Faulty>(std::move(engine), std::move(faults));
}

}  // namespace fusescope::sweep
