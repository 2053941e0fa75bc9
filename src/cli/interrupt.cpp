#include "cli/interrupt.hpp"

#include <csignal>
#include <initializer_list>

namespace fusescope::cli {
namespace {

// A signal handler reaches nothing but static storage.
std::atomic<bool> raised_flag = false;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void raise_flag(int) {
  raised_flag.store(true);
}

void install(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  for (const int signal : {SIGINT, SIGTERM}) {
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

InterruptFlag::InterruptFlag() {
  raised_flag.store(false);
  install(raise_flag, static_cast<int>(SA_RESETHAND | SA_RESTART));
}

InterruptFlag::~InterruptFlag() {
  install(SIG_DFL, 0);
}

const std::atomic<bool>& InterruptFlag::raised() {
  return raised_flag;
}

}  // namespace fusescope::cli
