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

// A check that ran and failed (exit code 1): wrong output, broken invariant, protocol violation.
class CheckFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace fusescope
