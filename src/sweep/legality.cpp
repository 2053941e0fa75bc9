#include "sweep/legality.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "sweep/knob_json.hpp"
#include "sweep/search_space.hpp"

namespace fusescope::sweep {
namespace {

constexpr const char* kLegalBase =
    "knobs that can run together; \"fusescope list knobs\" explains them";

void require_legal_base(const SweepConfig& config, const Problem& problem,
                        const DeviceLimits& device) {
  const std::string reason = why_illegal(problem, config.base, device);
  if (reason.empty()) {
    return;
  }
  const Json base = config.document.value("base", Json::object());
  for (const auto& item : base.items()) {
    Config alone;
    const JsonReader value(config.file, item.value(), "/base/" + item.key());
    set_knob(alone, item.key(), knob_value(value), value.file(), value.path());
    const std::string own = why_illegal(problem, alone, device);
    if (!own.empty() && why_illegal(problem, Config{}, device).empty()) {
      value.refuse(own, kLegalBase);
    }
  }
  throw InputError({config.file, "/base", "the base config cannot run: " + reason, kLegalBase});
}

}  // namespace

void require_legal(const SweepConfig& config, const Problem& problem, const DeviceLimits& device) {
  require_legal_base(config, problem, device);
  const SearchSpace space(config, device);
  const ConstraintCount count = count_constraints(space, config, device);
  if (count.allowed == 0) {
    std::string detail;
    for (std::size_t i = 0; i < config.constraints.size(); ++i) {
      detail += fmt::format("{}\"{}\" excludes {}", i == 0 ? "" : ", ",
                            config.constraints[i].text(), count.excluded[i]);
    }
    throw InputError({config.file, "/constraints",
                      fmt::format("none of the {} configs is left on {} ({} SMs): {}", space.size(),
                                  device.name, device.sms, detail),
                      "constraints that leave at least one config"});
  }
  std::string first;
  for (long long index = 0; index < space.size(); ++index) {
    const Config candidate = space.at(index);
    if (!space.allowed(candidate)) {
      continue;
    }
    const std::string reason = why_illegal(problem, candidate, device);
    if (reason.empty()) {
      return;
    }
    if (first.empty()) {
      first = reason;
    }
  }
  throw InputError({config.file, "/axes",
                    fmt::format("none of the {} configs can run on {}, the first because {}",
                                count.allowed, device.name, first),
                    "axes with at least one config that can run"});
}

}  // namespace fusescope::sweep
