#pragma once
// What the fuzzers feed. Each target takes the bytes of one input through everything that reads such a
// file and returns whether they were accepted; a refusal is an InputError, and it is caught. Anything
// else that leaves a target is a finding: another exception, a crash, a promise that does not hold
// (std::logic_error).

#include <string_view>

namespace fusescope::fuzz {

// A sweep's JSON file, its constraints and its search space; what does not begin with "{" is the text
// of one constraint.
bool sweep_json(std::string_view input);

// A routing file (.npy, JSON lines). Behind the line "--weights--" stands the file of its weights.
bool routing_file(std::string_view input);

// A trial log: read, resumed, appended to, refused to another sweep, merged.
bool trial_log(std::string_view input);

// A stored timeline, packed or not, its checks and its attribution.
bool stored_timeline(std::string_view input);

// A schedule of the protocol search, as it is printed and replayed; a small one is run, and without a planted
// bug nothing may be found.
bool schedule_text(std::string_view input);

// Throws std::logic_error with `promise` where it does not hold.
void require(bool holds, const char* promise);

}  // namespace fusescope::fuzz
