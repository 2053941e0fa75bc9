#pragma once
// The trial log of a sweep: JSON lines, append-only. Line 1 says what was swept, where and by what;
// then one line per trial, failures included, written as it ends and forced
// to the disk while the next one runs.
//
// A line counts once its newline is there. A process that was killed leaves at most one torn line,
// the last: it held a trial that had not ended, and opening the log for appending cuts it off. Any
// other malformed line is refused, and the file is left as it is.

#include <optional>
#include <string>
#include <vector>

#include "layer/problem.hpp"
#include "sweep/trial.hpp"

namespace fusescope::sweep {

struct LogHeader {
  std::string fusescope;     // version and commit of the program
  std::string binary;        // hex hash of the program's file
  std::string engine;        // "sim", "cuda"
  std::string device;        // engine::Engine::identity(): device, driver, toolkit; or profile
  std::string problem;       // describe(problem)
  std::string problem_hash;  // hex(hash(problem))
  std::string sweep;         // the sweep's name; may differ on resuming
  std::string identity;      // sweep::identity(config), as JSON text
  std::string command;       // what started the log; may differ on resuming
  std::string started;       // UTC, ISO 8601
  DeviceLimits limits;       // what constraints and legality asked of the device
};

// Of the GPUs before each iteration, as the identity has it; 0 on the simulator, where nothing rests. Throws
// InputError where it is no number.
int rest_ms(const LogHeader& header);

struct LogContents {
  LogHeader header;
  std::vector<Trial> trials;
  std::size_t whole_bytes = 0;  // length up to and including the last whole line
  std::string torn;             // what stands after it; "" in a log that was closed in order
};

// Reads a log without touching it. Throws InputError naming file and line.
LogContents read_trial_log(const std::string& path);

class TrialLog {
 public:
  // Creates the log with `header`, or goes on with the one that is there. Throws InputError if it
  // cannot be read or written, is malformed, is open in another process, or was written by another
  // program, on another device, for another problem or another sweep; the message says what
  // differs.
  TrialLog(const std::string& path, const LogHeader& header);
  ~TrialLog();
  TrialLog(const TrialLog&) = delete;
  TrialLog& operator=(const TrialLog&) = delete;

  const std::string& path() const { return path_; }
  bool resumed() const { return resumed_; }              // it was there already
  const std::string& repair() const { return repair_; }  // what had to be cut off, in words; or ""
  // Those that were there, and appended.
  const std::vector<Trial>& trials() const { return trials_; }

  // Writes the line and waits for the disk. Throws InputError when that fails; the log then ends
  // with the trial before.
  void append(const Trial& trial);

 private:
  void create(const LogHeader& header);
  void resume(const LogHeader& header, const std::string& text);
  void write_line(const std::string& line);
  [[noreturn]] void refuse_write(int error_number) const;

  std::string path_;
  int file_ = -1;
  std::size_t size_ = 0;
  bool resumed_ = false;
  std::string repair_;
  std::vector<Trial> trials_;
};

// "" or what differs between two logs that are to be one: program, device, problem, sweep.
std::string differences(const LogHeader& log, const LogHeader& now);
// The first line of a log, without its newline.
std::string to_line(const LogHeader& header);

}  // namespace fusescope::sweep
