#include "protocol/minimise.hpp"

#include <algorithm>
#include <functional>
#include <vector>

namespace fusescope::protocol {
namespace {

// Ways to make a scenario smaller, the most effective first. Each may leave it as it is.
using Reduction = std::function<void(Scenario&)>;

std::vector<Reduction> reductions() {
  const auto less = [](int Scenario::*member, int least) {
    return [=](Scenario& s) { s.*member = std::max(least, s.*member - 1); };
  };
  std::vector<Reduction> list = {
      [](Scenario& s) {
        if (s.fault != Fault::none) {
          s.fault = Fault::none;
          s.fault_rank = s.fault_iteration = s.fault_step = 0;
        }
      },
      less(&Scenario::iterations, 1),
      [](Scenario& s) {
        s.ranks = std::max(1, s.ranks - 1);
        s.devices = std::min(s.devices, s.ranks);
      },
      [](Scenario& s) {
        s.tokens_per_rank = std::max(1, s.tokens_per_rank - 1);
        s.config.watermark_chunks = std::min(s.config.watermark_chunks, s.tokens_per_rank);
      },
      [](Scenario& s) { s.topk = std::max(1, s.topk - 1); },
      [](Scenario& s) { s.experts = std::max(std::max(2, s.topk), s.experts - 1); },
      [](Scenario& s) {
        s.sms = std::max(2, s.sms - 1);
        s.config.dispatch_comm_sms = std::min(s.config.dispatch_comm_sms, s.sms - 1);
        s.config.combine_comm_sms = std::min(s.config.combine_comm_sms, s.sms - 1);
      },
      less(&Scenario::devices, 1),
      less(&Scenario::job_groups, 1),
      less(&Scenario::k_steps, 1),
      less(&Scenario::push_rows, 1),
      [](Scenario& s) { s.row_block = 2; },
      [](Scenario& s) { s.block_group = 2; },
      [](Scenario& s) { s.config.watermark_chunks = 1; },
      [](Scenario& s) { s.config.tokens_per_block = 1; },
      [](Scenario& s) { s.config.dispatch_head = 0; },
      [](Scenario& s) {
        s.config.dispatch_head = 100;
        s.config.tile = TileShape::m128n256;
      },
      [](Scenario& s) { s.config.tile_counter = TileCounter::none; },
      [](Scenario& s) {
        if (s.config.dispatch == Dispatch::push) {
          s.config.dispatch = Dispatch::gather;
        }
      },
      [](Scenario& s) { s.config.dispatch = Dispatch::scatter; },
      [](Scenario& s) { s.config.launch = LaunchOrder::stream; },
      [](Scenario& s) { s.config.activation = Activation::separate; },
      [](Scenario& s) { s.config.schedule = ScheduleSite::device; },
      [](Scenario& s) { s.config.slot_order = SlotOrder::by_token; },
      [](Scenario& s) { s.config.pull_order = PullOrder::by_slot; },
      [](Scenario& s) { s.config.job_order = JobOrder::by_ready; },
      [](Scenario& s) { s.config.graph = true; },
      [](Scenario& s) { s.config.dispatch_comm_sms = 1; },
      [](Scenario& s) { s.config.combine_comm_sms = 1; },
      [](Scenario& s) { s.routing_seed = 1; },
  };
  return list;
}

class Minimiser {
 public:
  Minimiser(const Schedule& failing, const Finding& finding, int effort)
      : best_{failing, finding, 0}, effort_(effort) {}

  Minimised run() {
    // A reduction may become possible through another one.
    for (bool smaller = true; smaller;) {
      smaller = false;
      for (const Reduction& reduce : reductions()) {
        while (try_scenario(reduce)) {
          smaller = true;
        }
      }
    }
    cut_behind_finding();
    calm_choices();
    return best_;
  }

 private:
  // Searches the smaller scenario anew: its schedules have nothing to do with those of the larger one.
  bool try_scenario(const Reduction& reduce) {
    Scenario s = best_.schedule.scenario;
    reduce(s);
    s.fault_rank = std::min(s.fault_rank, s.ranks - 1);
    s.fault_iteration = std::min(s.fault_iteration, s.iterations - 1);
    if (s == best_.schedule.scenario || !why_illegal(s).empty()) {
      return false;
    }
    for (int i = 0; i < effort_; ++i) {
      StrategyChooser chooser(target_of(s), 1, static_cast<std::uint64_t>(i));
      const Outcome outcome = run_schedule(machine_, s, best_.schedule.bug, chooser);
      ++best_.runs;
      if (outcome.finding && outcome.finding->kind == best_.finding.kind) {
        best_.schedule.scenario = s;
        best_.schedule.choices = chooser.choices();
        best_.finding = *outcome.finding;
        return true;
      }
    }
    return false;
  }

  bool try_choices(const Choices& choices) {
    const Outcome outcome =
        replay(machine_, {best_.schedule.scenario, best_.schedule.bug, choices});
    ++best_.runs;
    if (!outcome.finding || outcome.finding->kind != best_.finding.kind) {
      return false;
    }
    best_.schedule.choices = choices;
    best_.finding = *outcome.finding;
    return true;
  }

  static Choices trimmed(Choices choices) {
    while (!choices.empty() && choices.back() == 0) {
      choices.pop_back();
    }
    return choices;
  }

  void cut_behind_finding() {
    for (std::size_t length = best_.schedule.choices.size() / 2; length > 0; length /= 2) {
      while (best_.schedule.choices.size() > length) {
        Choices shorter = best_.schedule.choices;
        shorter.resize(shorter.size() - length);
        if (!try_choices(shorter)) {
          break;
        }
      }
    }
  }

  // Delta debugging: sets ever smaller runs of choices to 0, until no single one can be.
  void calm_choices() {
    constexpr std::int64_t kMostRuns = 10'000;
    const std::int64_t most = best_.runs + kMostRuns;
    for (Choices before; before != best_.schedule.choices && best_.runs < most;) {
      before = best_.schedule.choices;
      calm_once(most);
    }
    best_.schedule.choices = trimmed(best_.schedule.choices);
  }

  void calm_once(std::int64_t most) {
    for (std::size_t run = best_.schedule.choices.size(); run > 0; run /= 2) {
      for (std::size_t at = 0; at < best_.schedule.choices.size() && best_.runs < most; at += run) {
        Choices calmer = best_.schedule.choices;
        const auto begin = calmer.begin() + static_cast<std::ptrdiff_t>(at);
        const auto end =
            calmer.begin() + static_cast<std::ptrdiff_t>(std::min(at + run, calmer.size()));
        if (std::all_of(begin, end, [](std::uint16_t choice) { return choice == 0; })) {
          continue;
        }
        std::fill(begin, end, std::uint16_t{0});
        try_choices(trimmed(calmer));
      }
    }
  }

  Machine machine_;
  Minimised best_;
  int effort_;
};

}  // namespace

Minimised minimise(const Schedule& failing, const Finding& finding, int effort) {
  return Minimiser(failing, finding, effort).run();
}

}  // namespace fusescope::protocol
