#include "sweep/worker_channel.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace fusescope::sweep {

WorkerChannel::~WorkerChannel() {
  ::close(socket_);
}

bool WorkerChannel::send(const std::string& line) {
  const std::lock_guard lock(sending_);
  const std::string bytes = line + "\n";
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t put = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put <= 0) {
      return false;
    }
    sent += static_cast<std::size_t>(put);
  }
  return true;
}

WorkerChannel::Got WorkerChannel::receive(std::string& line,
                                          std::chrono::steady_clock::time_point deadline) {
  return receive_until(line, deadline);
}

WorkerChannel::Got WorkerChannel::receive(std::string& line) {
  return receive_until(line, std::nullopt);
}

WorkerChannel::Got WorkerChannel::receive_until(
    std::string& line, std::optional<std::chrono::steady_clock::time_point> deadline) {
  using std::chrono::milliseconds;
  while (true) {
    if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
      line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return Got::line;
    }
    int wait_ms = -1;
    if (deadline) {
      const auto left =
          std::chrono::ceil<milliseconds>(*deadline - std::chrono::steady_clock::now());
      wait_ms =
          static_cast<int>(std::clamp<long long>(left.count(), 0, std::numeric_limits<int>::max()));
    }
    struct pollfd ready = {socket_, POLLIN, 0};
    const int events = ::poll(&ready, 1, wait_ms);
    if (events == 0 && wait_ms == 0) {
      return Got::late;
    }
    if (events <= 0) {
      continue;  // interrupted, or late: the clock above decides
    }
    char bytes[65536];
    const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return Got::closed;
    }
    received_.append(bytes, static_cast<std::size_t>(got));
  }
}

}  // namespace fusescope::sweep
