#include "engine/cuda/record_turns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/error.hpp"

namespace fusescope::engine::cuda {
namespace {

// Of the last iteration: cycles over time of a kernel, over all ranks.
double clock_mhz(LayerRunner& runner, std::size_t kernel) {
  double cycles = 0;
  double ns = 0;
  for (int r = 0; r < runner.memory().ranks(); ++r) {
    const kernels::ClockStamp& stamp = runner.memory().rank(r).words->clock[kernel];
    cycles += static_cast<double>(stamp.end_cycles - stamp.begin_cycles);
    ns += static_cast<double>(stamp.end_ns - stamp.begin_ns);
  }
  return ns > 0 ? 1e3 * cycles / ns : 0;
}

// Which of the two goes first alternates, so that neither always follows the pause of the reading back.
class TurnTaker {
 public:
  TurnTaker(LayerRunner& runner, const IterationChoice& choice, int iterations,
            std::chrono::milliseconds rest, CounterSampling* counters)
      : runner_(runner),
        choice_(choice),
        iterations_(iterations),
        rest_(rest),
        counters_(counters) {}

  Turns take() {
    for (int number = 0; number < iterations_; ++number) {
      if (number % 2 == 1) {
        record(number);
      }
      std::this_thread::sleep_for(rest_);
      if (counters_ != nullptr) {
        runner_.run_once();  // after the pause of reading samples, as before what is recorded
      }
      turns_.unrecorded_us.push_back(runner_.run_once().wall_us);
      if (number % 2 == 0) {
        record(number);
      }
      read_back();
    }
    return std::move(turns_);
  }

 private:
  void record(int number) {
    Recorded recorded;
    recorded.number = number;
    std::this_thread::sleep_for(rest_);
    sample(recorded, [&] { counters_->begin(); });
    if (counters_ != nullptr) {
      runner_.run_once();  // takes what starting costs the first launch after it, some 100 us
    }
    recorded.wall_us = runner_.run_recorded().wall_us;
    sample(recorded, [&] { recorded.counters = counters_->end(); });
    recorded.clock_mhz = {clock_mhz(runner_, 0), clock_mhz(runner_, 1)};
    turns_.recorded.push_back(std::move(recorded));
  }

  // Counters are a gift: without them the iterations go on.
  template <class Step>
  void sample(Recorded& recorded, Step step) {
    if (counters_ == nullptr || !recorded.why_no_counters.empty()) {
      return;
    }
    try {
      step();
    } catch (const CheckFailure& refused) {
      recorded.why_no_counters = refused.what();
    }
  }

  void read_back() {
    Recorded& last = turns_.recorded.back();
    if (choice_.pick == IterationChoice::Pick::number && last.number != choice_.number) {
      return;
    }
    if (choice_.pick == IterationChoice::Pick::slowest) {
      for (Recorded& other : turns_.recorded) {
        if (other.number != last.number && other.wall_us >= last.wall_us) {
          return;
        }
      }
      for (Recorded& other : turns_.recorded) {
        other.tapes.clear();
      }
    }
    for (int r = 0; r < runner_.memory().ranks(); ++r) {
      last.tapes.push_back(runner_.records().read(r));
    }
  }

  LayerRunner& runner_;
  const IterationChoice& choice_;
  int iterations_;
  std::chrono::milliseconds rest_;
  CounterSampling* counters_;
  Turns turns_;
};

}  // namespace

Turns take_turns(LayerRunner& runner, const IterationChoice& choice, int iterations,
                 std::chrono::milliseconds rest, CounterSampling* counters) {
  return TurnTaker(runner, choice, iterations, rest, counters).take();
}

const Recorded& chosen_of(const Turns& turns, const IterationChoice& choice) {
  std::vector<const Recorded*> by_wall;
  for (const Recorded& recorded : turns.recorded) {
    by_wall.push_back(&recorded);
  }
  std::stable_sort(by_wall.begin(), by_wall.end(),
                   [](const Recorded* a, const Recorded* b) { return a->wall_us < b->wall_us; });
  switch (choice.pick) {
    case IterationChoice::Pick::median:
      return *by_wall[(by_wall.size() - 1) / 2];
    case IterationChoice::Pick::slowest:
      return **std::find_if(by_wall.begin(), by_wall.end(), [&](const Recorded* recorded) {
        return recorded->wall_us == by_wall.back()->wall_us;
      });
    case IterationChoice::Pick::number:
      break;
  }
  return turns.recorded[static_cast<std::size_t>(choice.number)];
}

std::string describe_choice(const Turns& turns, const IterationChoice& choice) {
  const Recorded& chosen = chosen_of(turns, choice);
  std::string why = "as asked";
  if (choice.pick == IterationChoice::Pick::median) {
    why = "whose wall is the median";
  } else if (choice.pick == IterationChoice::Pick::slowest) {
    why = "the slowest";
  }
  return fmt::format("number {} (from 0) of {} recorded iterations, {}: {:.1f} us", chosen.number,
                     turns.recorded.size(), why, chosen.wall_us);
}

}  // namespace fusescope::engine::cuda
