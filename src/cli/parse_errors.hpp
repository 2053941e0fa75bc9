#pragma once
// A command line that does not parse, in the form of every other error: what is wrong, what was meant,
// what would be accepted.

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace fusescope::cli {

// "sweep: unknown option --trails, did you mean --trials?; accepted: ..."
std::string explain(const CLI::App& app, const CLI::ParseError& error);

// The command line as a shell would take it again: quoted where needed, the program by its name alone.
std::string shell_line(int argc, char** argv);

}  // namespace fusescope::cli
