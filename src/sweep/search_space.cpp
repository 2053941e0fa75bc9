#include "sweep/search_space.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace fusescope::sweep {

SearchSpace::SearchSpace(const SweepConfig& config, const DeviceLimits& device)
    : config_(&config), device_(device) {
  for (const Axis& axis : config.axes) {
    size_ *= static_cast<long long>(axis.values.size());
  }
}

Config SearchSpace::at(long long index) const {
  Config config = config_->base;
  for (auto axis = config_->axes.rbegin(); axis != config_->axes.rend(); ++axis) {
    const auto count = static_cast<long long>(axis->values.size());
    set_knob(config, axis->knob, axis->values[static_cast<std::size_t>(index % count)],
             config_->file, "/axes/" + axis->knob);
    index /= count;
  }
  return config;
}

bool SearchSpace::allowed(const Config& config) const {
  return std::all_of(config_->constraints.begin(), config_->constraints.end(),
                     [&](const Constraint& constraint) {
                       return constraint.holds(config, device_, config_->shape);
                     });
}

ConstraintCount count_constraints(const SearchSpace& space, const SweepConfig& config,
                                  const DeviceLimits& device) {
  ConstraintCount count;
  count.excluded.resize(config.constraints.size());
  for (long long index = 0; index < space.size(); ++index) {
    const Config candidate = space.at(index);
    bool allowed = true;
    for (std::size_t i = 0; i < config.constraints.size(); ++i) {
      if (!config.constraints[i].holds(candidate, device, config.shape)) {
        ++count.excluded[i];
        allowed = false;
      }
    }
    count.allowed += allowed ? 1 : 0;
  }
  return count;
}

}  // namespace fusescope::sweep
