#include "sweep/worker_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/error.hpp"

namespace fusescope::sweep {
namespace {

constexpr off_t kLastWords = 2000;            // [bytes] of what a worker said that are kept
constexpr std::chrono::seconds kPatience{5};  // with a worker whose channel is closed

std::string spoken_status(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return fmt::format("killed by signal {} ({})", signal, ::strsignal(signal));
  }
  return fmt::format("ended by itself with exit code {}", WEXITSTATUS(status));
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& command) {
  std::array<int, 2> sockets = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    throw CheckFailure(fmt::format("no channel to a worker: {}", std::strerror(errno)));
  }
  channel_ = std::make_unique<WorkerChannel>(sockets[0]);
  said_ = ::memfd_create("worker-output", MFD_CLOEXEC);

  // The child gets its socket as kWorkerSocket, and nothing else of ours: all our descriptors close
  // on exec, those of other workers too. A descriptor that is dup2'ed onto itself would stay
  // close-on-exec, so that the socket is moved out of the way first.
  const int far_socket = ::fcntl(sockets[1], F_DUPFD_CLOEXEC, 64);
  ::close(sockets[1]);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, said_, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, said_, STDERR_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, far_socket, kWorkerSocket);

  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  const int failed =
      ::posix_spawn(&pid_, command.front().c_str(), &files, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::close(far_socket);
  if (failed != 0) {
    ::close(said_);
    throw CheckFailure(
        fmt::format("the worker {} cannot be started: {}", command.front(), std::strerror(failed)));
  }
}

WorkerProcess::~WorkerProcess() {
  if (!ended_) {
    end(true);
  }
  ::close(said_);
}

std::string WorkerProcess::end(bool kill) {
  if (kill) {
    ::kill(pid_, SIGKILL);
  }
  int status = 0;
  const auto patience = std::chrono::steady_clock::now() + kPatience;
  while (::waitpid(pid_, &status, kill ? 0 : WNOHANG) != pid_) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!kill && std::chrono::steady_clock::now() > patience) {
      kill = true;
      ::kill(pid_, SIGKILL);
    }
  }
  ended_ = true;
  const std::string words = last_words();
  return spoken_status(status) + (words.empty() ? "" : "; it said: " + words);
}

std::string WorkerProcess::last_words() const {
  const off_t size = ::lseek(said_, 0, SEEK_END);
  if (size <= 0) {
    return "";
  }
  std::string text(static_cast<std::size_t>(std::min(size, kLastWords)), '\0');
  const ssize_t got =
      ::pread(said_, text.data(), text.size(), std::max<off_t>(0, size - kLastWords));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  text.erase(text.find_last_not_of(" \r\n\t") + 1);
  return text;
}

}  // namespace fusescope::sweep
