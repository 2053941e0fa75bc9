#include "cli/parse_errors.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/suggest.hpp"

namespace fusescope::cli {
namespace {

const CLI::App* parsed_subcommand(const CLI::App& app) {
  const std::vector<const CLI::App*> given =
      app.get_subcommands([](const CLI::App* each) { return each->parsed(); });
  return given.empty() ? nullptr : given.front();
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  // Those without a group are hidden from --help, and so from here.
  for (const CLI::App* each :
       app.get_subcommands([](const CLI::App* any) { return !any->get_group().empty(); })) {
    names.push_back(each->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option :
       app.get_options([](const CLI::Option* any) { return !any->get_group().empty(); })) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

std::string unknown(const std::string& what, const std::string& given,
                    const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(given, known);
  return "unknown " + what + " \"" + given + "\"" +
         (nearest.empty() ? "" : ", did you mean \"" + nearest + "\"?") +
         "; accepted: " + spoken_list(known);
}

// What is said of a value out of range, in one form: "1 to 8" or, of later versions of CLI11, "[1 - 8]". A range
// without an upper end has the largest number there.
std::string range_in_words(std::string what) {
  static const std::string kRange = " not in range ";
  static const std::string kDash = " - ";
  const std::size_t at = what.find(kRange);
  if (at == std::string::npos) {
    return what;
  }
  const std::size_t first = at + kRange.size();
  const std::size_t dash = what.find(kDash, first);
  if (what[first] == '[' && what.back() == ']' && dash != std::string::npos) {
    what.pop_back();
    what.replace(dash, kDash.size(), " to ");
    what.erase(first, 1);
  }
  const std::size_t upper = what.rfind(' ');
  return std::strtod(what.c_str() + upper, nullptr) < 1e300 ? what
                                                            : what.substr(0, at) + " is too small";
}

bool plain(const std::string& argument) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
  return !argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos;
}

}  // namespace

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = parsed_subcommand(app);
  const std::vector<std::string> left = app.remaining(true);
  if (command == nullptr) {
    if (left.empty()) {
      return "no command is given; accepted: " + spoken_list(subcommand_names(app)) +
             "; \"fusescope --help\" explains them";
    }
    const bool option = left.front().starts_with("-");
    return unknown(option ? "option" : "command", left.front(),
                   option ? option_names(app) : subcommand_names(app));
  }
  const std::string place = command->get_name() + ": ";
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) && !left.empty()) {
    const auto option = std::find_if(left.begin(), left.end(),
                                     [](const std::string& each) { return each.starts_with("-"); });
    if (option != left.end()) {
      return place +
             unknown("option", option->substr(0, option->find('=')), option_names(*command));
    }
    return place + "unexpected argument \"" + left.front() + "\"; \"fusescope " +
           command->get_name() + " --help\" explains the command";
  }
  return place + range_in_words(error.what()) + "; \"fusescope " + command->get_name() +
         " --help\" explains the command";
}

std::string shell_line(int argc, char** argv) {
  std::string line = "fusescope";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (plain(argument)) {
      line += " " + argument;
      continue;
    }
    line += " '";
    for (const char character : argument) {
      line += character == '\'' ? std::string("'\\''") : std::string(1, character);
    }
    line += "'";
  }
  return line;
}

}  // namespace fusescope::cli
