#pragma once
// Which knob to turn next, and why: changes of one knob that the attribution speaks for, each with its
// evidence. What a change does to the wall is asked of whoever can tell (trials of a sweep, a simulation of
// the neighbouring config); nothing here runs an engine.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/summary.hpp"
#include "layer/config.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::analysis {

// What a change does to the wall [us]; negative is faster.
struct Effect {
  double delta_us = 0;
  double half_ci_us = 0;  // 95%; 0 for a simulation without noise
};

struct Suggestion {
  std::string knob, from, to;
  Config config;                         // the run's, with that knob changed
  std::string evidence;                  // what the attribution says for it
  double at_most_us = 0;                 // time on the critical path that the change is against
  std::optional<Effect> measured = {};   // by trials of a sweep
  std::optional<Effect> simulated = {};  // the difference of two simulations

  // The measured effect where there is one, else the simulated one.
  const Effect* effect() const;
};

// Every change that the attribution speaks for, several values of one knob included; effects empty. Values
// may be illegal on the device. Empty where nothing is attributed.
std::vector<Suggestion> candidates(const timeline::Timeline& timeline,
                                   const Attribution& attribution, const Config& config);

struct Advice {
  // One per knob, its best value, largest gain first. A gain is beyond `noise_us` and its own interval; where
  // it was measured, only the measurement counts.
  std::vector<Suggestion> ranked;
  // The attribution speaks for them, and a measurement against them. One per knob.
  std::vector<Suggestion> refuted;
  double noise_us = 0;
  std::string profile;             // whose simulations these are; "" = none
  std::vector<std::string> notes;  // what could not be asked, and why
};

using AskEffect = std::function<std::optional<Effect>(const Config&)>;
Advice advise(std::vector<Suggestion> candidates, double noise_us, const AskEffect& measured,
              const AskEffect& simulated);

// "dispatch_comm_sms 8 -> 12: <evidence>; the simulator predicts -14.0 us, measured -11.0 us".
std::string sentence(const Suggestion& suggestion);

// The `--json` form; times in us.
std::string to_json(const Advice& advice);

}  // namespace fusescope::analysis
