#include "analysis/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace fusescope::analysis {
namespace {

using Json = nlohmann::ordered_json;

bool gains(const Effect& effect, double noise_us) {
  return effect.delta_us < -std::max(noise_us, effect.half_ci_us);
}

// By what is expected of it; ties keep the order in which the attribution brought them up.
void order(std::vector<Suggestion>& suggestions) {
  std::stable_sort(suggestions.begin(), suggestions.end(),
                   [](const Suggestion& a, const Suggestion& b) {
                     return a.effect()->delta_us < b.effect()->delta_us;
                   });
}

void keep_best_per_knob(std::vector<Suggestion>& suggestions, std::set<std::string>& knobs) {
  order(suggestions);
  std::erase_if(suggestions,
                [&](const Suggestion& each) { return !knobs.insert(each.knob).second; });
}

Json effect_json(const std::optional<Effect>& effect) {
  return effect ? Json{{"delta_us", effect->delta_us}, {"half_ci_us", effect->half_ci_us}} : Json();
}

Json list(const std::vector<Suggestion>& suggestions) {
  Json json = Json::array();
  for (const Suggestion& each : suggestions) {
    json.push_back({{"knob", each.knob},
                    {"from", each.from},
                    {"to", each.to},
                    {"evidence", each.evidence},
                    {"at_most_us", each.at_most_us},
                    {"measured", effect_json(each.measured)},
                    {"simulated", effect_json(each.simulated)}});
  }
  return json;
}

}  // namespace

const Effect* Suggestion::effect() const {
  return measured ? &*measured : simulated ? &*simulated : nullptr;
}

Advice advise(std::vector<Suggestion> candidates, double noise_us, const AskEffect& measured,
              const AskEffect& simulated) {
  Advice advice;
  advice.noise_us = noise_us;
  for (Suggestion& each : candidates) {
    each.measured = measured ? measured(each.config) : std::nullopt;
    each.simulated = simulated ? simulated(each.config) : std::nullopt;
    if (each.effect() == nullptr) {
      continue;
    }
    if (gains(*each.effect(), noise_us)) {
      advice.ranked.push_back(std::move(each));
    } else if (each.measured) {
      advice.refuted.push_back(std::move(each));
    }
  }
  std::set<std::string> knobs;
  keep_best_per_knob(advice.ranked, knobs);
  keep_best_per_knob(advice.refuted, knobs);
  return advice;
}

std::string sentence(const Suggestion& suggestion) {
  std::string text = fmt::format("{} {} -> {}: {}", suggestion.knob, suggestion.from, suggestion.to,
                                 suggestion.evidence);
  const char* between = "; ";
  if (suggestion.simulated) {
    text +=
        fmt::format("{}the simulator predicts {:+.1f} us", between, suggestion.simulated->delta_us);
    between = ", ";
  }
  if (suggestion.measured) {
    text += fmt::format("{}measured {:+.1f} us", between, suggestion.measured->delta_us);
    if (suggestion.measured->half_ci_us > 0) {
      text += fmt::format(" +-{:.1f}", suggestion.measured->half_ci_us);
    }
  }
  return text;
}

std::string to_json(const Advice& advice) {
  Json json;
  json["noise_us"] = advice.noise_us;
  json["simulated_on"] = advice.profile;
  json["suggestions"] = list(advice.ranked);
  json["refuted"] = list(advice.refuted);
  json["notes"] = advice.notes;
  return json.dump(2);
}

}  // namespace fusescope::analysis
