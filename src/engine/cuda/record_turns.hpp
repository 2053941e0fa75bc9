#pragma once
// Iterations that are recorded, in turns with as many that are not: what recording costs shows in their
// medians, whatever the machine's clocks do meanwhile.

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "engine/cuda/counter_sampling.hpp"
#include "engine/cuda/layer_runner.hpp"
#include "engine/cuda/record_memory.hpp"
#include "engine/engine.hpp"

namespace fusescope::engine::cuda {

// Clocks of the two kernels, and what all ranks wrote down.
struct Recorded {
  int number = 0;
  double wall_us = 0;
  std::array<double, 2> clock_mhz{};
  std::vector<RankTape> tapes;  // by rank; empty where this iteration cannot be the chosen one
  std::vector<DeviceCounters> counters;  // by device in use, where they are sampled ...
  std::string why_no_counters;           // ... and were asked for, but could not be
};

struct Turns {
  std::vector<Recorded> recorded;
  std::vector<double> unrecorded_us;
};

// The runner is prepared for records. `counters`: null where they are not sampled. The GPUs rest for `rest` before
// each iteration; with counters before the sampling of two, whose buffers have no room for a rest between them.
Turns take_turns(LayerRunner& runner, const IterationChoice& choice, int iterations,
                 std::chrono::milliseconds rest, CounterSampling* counters);

// One whose tapes are there, if the turns were taken with the same choice.
const Recorded& chosen_of(const Turns& turns, const IterationChoice& choice);
// "number 7 (from 0) of 20 recorded iterations, whose wall is the median: 812.3 us"
std::string describe_choice(const Turns& turns, const IterationChoice& choice);

}  // namespace fusescope::engine::cuda
