#pragma once
// The error that a user can act on: where the bad value is, what it is, what would be accepted.

#include <stdexcept>
#include <string>

namespace fusescope {

// Bad input (exit code 2). `what()` reads "file: place: problem; accepted: ...".
// Any part may be empty when it does not apply.
class InputError : public std::runtime_error {
 public:
  struct Parts {
    std::string file;      // path as the user gave it, or "--option"
    std::string place;     // JSON path ("/axes/dispatch_comm_sms"), "row 12", "line 3"
    std::string problem;   // the value and what is wrong with it
    std::string accepted;  // what would be accepted
  };

  explicit InputError(Parts parts);
  const Parts& parts() const { return parts_; }

 private:
  Parts parts_;
};

// A check that ran and failed (exit code 1). Whoever catches it can tell what failed without reading the
// text: a trial log's verdict depends on it.
class CheckFailure : public std::runtime_error {
 public:
  enum class Kind {
    broken_rule,  // an invariant or a protocol that does not hold, a result that cannot be right
    wrong_output,  // the layer ran to its end, and its outputs are not the reference's, or not repeatable
    aborted,  // a launch did not end: a wait was given up at its deadline
  };

  explicit CheckFailure(const std::string& what, Kind kind = Kind::broken_rule)
      : std::runtime_error(what), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

}  // namespace fusescope
