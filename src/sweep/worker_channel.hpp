#pragma once
// JSON lines over a socket: how a sweep and its worker process talk.
//
// To the worker: {"open": {...}} once, then {"run": {...}} or {"keep": {...}}, one at a time.
// From it: {"hello": {...}} or {"refused": {...}} to open; {"trial": {...}} or {"failed": "..."} to
// run; {"kept": true} or {"failed": "..."} to keep; and {"beat": n} in between, as a sign of life.

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "base/json_reader.hpp"

namespace fusescope::sweep {

class WorkerChannel {
 public:
  // Owns the socket.
  explicit WorkerChannel(int socket) : socket_(socket) {}
  ~WorkerChannel();
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  // False when the other side is gone. Thread-safe.
  bool send(const std::string& line);

  enum class Got { line, closed, late };
  // The next line, without its newline; late once the deadline has passed and no line has come, however late
  // this is called. One reader at a time.
  Got receive(std::string& line, std::chrono::steady_clock::time_point deadline);
  Got receive(std::string& line);  // waits for as long as it takes

 private:
  Got receive_until(std::string& line,
                    std::optional<std::chrono::steady_clock::time_point> deadline);

  int socket_;
  std::mutex sending_;
  std::string received_;  // beyond the last line
};

}  // namespace fusescope::sweep
