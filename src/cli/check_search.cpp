#include "cli/check_search.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "cli/command.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"
#include "protocol/minimise.hpp"
#include "protocol/search.hpp"

namespace fusescope::cli {
namespace {

using nlohmann::ordered_json;
using protocol::Found;
using protocol::Limits;
using protocol::Minimised;
using protocol::Schedule;
using protocol::SearchResult;

struct LimitName {
  const char* name;
  int Limits::*member;
  int most;
};
constexpr std::array kLimits = {
    LimitName{"ranks", &Limits::ranks, 4},
    LimitName{"tokens", &Limits::tokens, 12},
    LimitName{"tokens_per_rank", &Limits::tokens_per_rank, 12},
    LimitName{"experts", &Limits::experts, 8},
    LimitName{"topk", &Limits::topk, 4},
    LimitName{"iterations", &Limits::iterations, 4},
};

Limits limits_of(const std::vector<std::string>& texts) {
  Limits limits;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const auto known = std::find_if(kLimits.begin(), kLimits.end(),
                                    [&](const LimitName& each) { return each.name == name; });
    if (known == kLimits.end() || equals == std::string::npos) {
      std::vector<std::string> names;
      for (const LimitName& each : kLimits) {
        names.emplace_back(each.name);
      }
      throw InputError({"--limit", "", fmt::format("\"{}\" limits nothing", text),
                        "NAME=NUMBER with " + spoken_list(names)});
    }
    int value = 0;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + equals + 1, end, value);
    if (parsed.ec != std::errc{} || parsed.ptr != end || value < 1 || value > known->most) {
      throw InputError({"--limit", name, fmt::format("\"{}\"", text.substr(equals + 1)),
                        fmt::format("a number from 1 to {}", known->most)});
    }
    limits.*known->member = value;
  }
  return limits;
}

// One line that renews itself on a terminal, a line every ten seconds elsewhere.
class Progress {
 public:
  ~Progress() {
    if (terminal_ && shown_) {
      std::fputc('\n', stderr);
    }
  }
  void show(const protocol::SearchProgress& progress) {
    constexpr double kPlainEvery = 10;  // [s]
    if (!terminal_ && progress.seconds - last_ < kPlainEvery) {
      return;
    }
    last_ = progress.seconds;
    shown_ = true;
    const double rate = static_cast<double>(progress.done) / progress.seconds;
    const double left = static_cast<double>(progress.planned - progress.done) / rate;
    const std::string text = fmt::format("search: schedule {}/{}, {:.0f} a second, {:.0f} s left",
                                         progress.done, progress.planned, rate, left);
    std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", text.c_str());
    std::fflush(stderr);
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  double last_ = 0;
};

ordered_json json_of(const protocol::Finding& finding) {
  return {
      {"kind", protocol::to_string(finding.kind)}, {"what", finding.what}, {"step", finding.step}};
}

std::string coverage(const SearchResult& result) {
  std::string ranks;
  for (std::size_t r = 1; r < result.by_ranks.size(); ++r) {
    if (result.by_ranks[r] > 0) {
      ranks += fmt::format("{}R={}: {}", ranks.empty() ? "" : ", ", r, result.by_ranks[r]);
    }
  }
  return fmt::format("{}; with a fault on a rank: {}, of which {} ended in an abort", ranks,
                     result.faults, result.aborted);
}

std::string replay_command(const Schedule& schedule) {
  return fmt::format("fusescope check --replay '{}'", to_string(schedule));
}

void print_found(const Found& found, const Minimised& small) {
  constexpr std::size_t kShown = 30;
  std::printf("schedule %lld (strategy %s) breaks the protocol: %s\n  %s\n",
              static_cast<long long>(found.index), protocol::to_string(found.strategy),
              protocol::to_string(found.finding.kind), wrapped(found.finding.what, 2).c_str());
  std::printf("minimised in %lld runs: %s\n  %s\n  %s\n", static_cast<long long>(small.runs),
              protocol::to_string(small.finding.kind), wrapped(small.finding.what, 2).c_str(),
              wrapped(to_string(small.schedule.scenario), 2).c_str());
  protocol::Machine machine;
  std::vector<std::string> trace;
  protocol::replay(machine, small.schedule, &trace);
  const std::size_t first = trace.size() > kShown ? trace.size() - kShown : 0;
  std::printf("its last operations (step, thread, operation; %zu before them):\n", first);
  for (std::size_t i = first; i < trace.size(); ++i) {
    std::printf("%s\n", trace[i].c_str());
  }
  std::printf("all of them: %s\n", replay_command(small.schedule).c_str());
}

int run_replay(const std::string& text, bool json) {
  const Schedule schedule = protocol::parse_schedule(text, "--replay");
  protocol::Machine machine;
  std::vector<std::string> trace;
  const protocol::Outcome outcome = protocol::replay(machine, schedule, &trace);
  if (json) {
    const ordered_json document = {
        {"schedule", to_string(schedule)},
        {"passed", !outcome.finding},
        {"steps", outcome.steps},
        {"finding", outcome.finding ? json_of(*outcome.finding) : ordered_json(nullptr)},
        {"trace", trace}};
    std::printf("%s\n", document.dump(2).c_str());
  } else {
    for (const std::string& line : trace) {
      std::printf("%s\n", line.c_str());
    }
    std::printf("%s\n", outcome.finding ? "the schedule breaks the protocol"
                                        : "the schedule keeps the protocol");
  }
  return outcome.finding ? kCheckFailed : kFine;
}

int list_bugs(protocol::Subject subject) {
  for (const protocol::BugEntry& entry : protocol::bugs()) {
    const protocol::Effect effect = effect_on(entry, subject);
    if (effect != protocol::Effect::absent) {
      std::printf("%-28s  %s%s\n", std::string(entry.name).c_str(), std::string(entry.what).c_str(),
                  effect == protocol::Effect::implied ? " (implied: nothing is found)" : "");
    }
  }
  return kFine;
}

ordered_json json_of(const SearchResult& result, const protocol::SearchOptions& options,
                     const Minimised* small) {
  ordered_json document = {{"kernel", protocol::to_string(options.subject)},
                           {"seed", options.seed},
                           {"bug", std::string(protocol::name(options.bug))},
                           {"schedules", result.schedules},
                           {"steps", result.steps},
                           {"seconds", result.seconds},
                           {"with_fault", result.faults},
                           {"aborted", result.aborted},
                           {"interrupted", result.interrupted},
                           {"passed", !result.found},
                           {"found", nullptr}};
  if (result.found) {
    document["found"] = {{"index", result.found->index},
                         {"strategy", protocol::to_string(result.found->strategy)},
                         {"finding", json_of(result.found->finding)},
                         {"schedule", to_string(result.found->schedule)},
                         {"minimised",
                          {{"finding", json_of(small->finding)},
                           {"schedule", to_string(small->schedule)},
                           {"runs", small->runs}}}};
  }
  return document;
}

}  // namespace

void SearchFlags::add_to(CLI::App& command) {
  const char* group = "Search of the protocol";
  const std::array options = {
      command
          .add_option(
              "--search", schedules,
              "Run so many schedules of small problems through the kernels' protocol, instead")
          ->check(CLI::Range(1LL, 1'000'000'000'000LL)),
      command
          .add_option("--kernel", kernel,
                      "What is searched: layer, or gemm_reduce_scatter, the third kernel")
          ->capture_default_str(),
      command.add_option("--bug", bug, "Plant a bug, to see it found (\"list\" shows them)")
          ->capture_default_str(),
      command.add_option("--limit", limits,
                         "NAME=NUMBER: the most that a drawn problem has of ranks, tokens, "
                         "tokens_per_rank, experts, topk, iterations"),
      command.add_option("--threads", threads, "Threads of the search; 0 = one per core")
          ->check(CLI::Range(0, 4096))
          ->capture_default_str()};
  CLI::Option* replayed =
      command.add_option("--replay", replay, "Run one schedule again, as a search printed it")
          ->group(group);
  for (CLI::Option* option : options) {
    option->group(group);
    replayed->excludes(option);  // its text says what it runs
  }
}

bool SearchFlags::asked() const {
  if (schedules > 0 || !replay.empty() || bug != "none") {
    return true;
  }
  for (const auto& [option, given] :
       {std::pair{"--limit", !limits.empty()}, std::pair{"--threads", threads != 0},
        std::pair{"--kernel", kernel != "layer"}}) {
    if (given) {
      throw InputError({option, "", "is for a search only, and none is asked for",
                        "together with --search N, --bug NAME or --replay TEXT"});
    }
  }
  return false;
}

int execute_search(const SearchFlags& flags, std::uint64_t seed, bool json) {
  const protocol::Subject subject = protocol::parse_subject(flags.kernel, "--kernel");
  if (flags.bug == "list") {
    return list_bugs(subject);
  }
  if (!flags.replay.empty()) {
    return run_replay(flags.replay, json);
  }
  protocol::SearchOptions options;
  options.schedules = flags.schedules > 0 ? flags.schedules : 10'000;
  options.seed = seed;
  options.subject = subject;
  options.bug = protocol::parse_bug(flags.bug, "--bug");
  options.limits = limits_of(flags.limits);
  options.threads = flags.threads;

  const InterruptFlag interrupt;
  SearchResult result;
  {
    Progress progress;
    result = protocol::search(
        options, [&](const protocol::SearchProgress& now) { progress.show(now); },
        &InterruptFlag::raised());
  }
  Minimised small;
  if (result.found) {
    small = protocol::minimise(result.found->schedule, result.found->finding);
  }
  if (json) {
    std::printf("%s\n", json_of(result, options, &small).dump(2).c_str());
  } else {
    std::printf("%lld schedules, %llu steps, %.1f s (seed %llu%s)\n%s\n",
                static_cast<long long>(result.schedules),
                static_cast<unsigned long long>(result.steps), result.seconds,
                static_cast<unsigned long long>(seed),
                options.bug == protocol::Bug::none
                    ? ""
                    : (", bug " + std::string(protocol::name(options.bug))).c_str(),
                coverage(result).c_str());
    if (result.found) {
      print_found(*result.found, small);
    } else {
      std::printf("%s\n",
                  result.interrupted ? "interrupted; nothing found so far" : "nothing found");
    }
  }
  if (result.found) {
    return kCheckFailed;
  }
  return result.interrupted ? kInterrupted : kFine;
}

}  // namespace fusescope::cli
