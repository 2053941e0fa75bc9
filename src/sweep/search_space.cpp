#include "sweep/search_space.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <variant>

#include "base/error.hpp"
#include "base/random.hpp"

namespace fusescope::sweep {
namespace {

// A number's place among numbers; nothing for a name or a switch.
std::optional<double> number_of(const KnobValue& value) {
  if (const auto* integer = std::get_if<long long>(&value)) {
    return static_cast<double>(*integer);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return *real;
  }
  return std::nullopt;
}

// Which positions of the axis are one step away, by position.
std::vector<std::vector<long long>> reachable(const std::vector<KnobValue>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::vector<long long>> steps(values.size());
  if (!number_of(values.front())) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (const std::size_t other : order) {
        if (other != i) {
          steps[i].push_back(static_cast<long long>(other));
        }
      }
    }
    return steps;
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return *number_of(values[a]) < *number_of(values[b]);
  });
  for (std::size_t place = 0; place < order.size(); ++place) {
    if (place > 0) {
      steps[order[place]].push_back(static_cast<long long>(order[place - 1]));
    }
    if (place + 1 < order.size()) {
      steps[order[place]].push_back(static_cast<long long>(order[place + 1]));
    }
  }
  return steps;
}

}  // namespace

SearchSpace::SearchSpace(const SweepConfig& config, const DeviceLimits& device)
    : config_(&config), device_(device), steps_(config.axes.size()) {
  for (std::size_t axis = config.axes.size(); axis-- > 0;) {
    steps_[axis] = {size_, reachable(config.axes[axis].values)};
    size_ *= static_cast<long long>(config.axes[axis].values.size());
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
  return in_shard(config, config_->shard) && holds(config);
}

bool SearchSpace::holds(const Config& config) const {
  return std::all_of(config_->constraints.begin(), config_->constraints.end(),
                     [&](const Constraint& constraint) {
                       return constraint.holds(config, device_, config_->shape);
                     });
}

std::vector<long long> SearchSpace::allowed_indices() const {
  std::vector<long long> indices;
  for (long long index = 0; index < size_; ++index) {
    if (allowed(at(index))) {
      indices.push_back(index);
    }
  }
  return indices;
}

std::vector<long long> SearchSpace::positions(long long index) const {
  std::vector<long long> found;
  for (const Steps& steps : steps_) {
    found.push_back(index / steps.stride % static_cast<long long>(steps.reachable.size()));
  }
  return found;
}

std::vector<long long> SearchSpace::steps_on(std::size_t axis, long long index) const {
  const Steps& steps = steps_[axis];
  const auto position = index / steps.stride % static_cast<long long>(steps.reachable.size());
  std::vector<long long> reached;
  for (const long long other : steps.reachable[static_cast<std::size_t>(position)]) {
    reached.push_back(index + (other - position) * steps.stride);
  }
  return reached;
}

std::vector<long long> SearchSpace::neighbours(long long index) const {
  std::vector<long long> near;
  const auto add = [&](long long reached) {
    if (std::find(near.begin(), near.end(), reached) == near.end()) {
      near.push_back(reached);
    }
  };
  for (std::size_t axis = 0; axis < steps_.size(); ++axis) {
    for (const long long reached : steps_on(axis, index)) {
      if (holds(at(reached))) {
        add(reached);
        continue;
      }
      for (std::size_t second = 0; second < steps_.size(); ++second) {
        for (const long long both : steps_on(second, reached)) {
          if (second != axis && holds(at(both))) {
            add(both);
          }
        }
      }
    }
  }
  return near;
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

bool in_shard(const Config& config, const Shard& shard) {
  // Mixed once more, so that shards are even whatever the hash's low bits are.
  return mix64(hash(config)) % static_cast<std::uint64_t>(shard.count) ==
         static_cast<std::uint64_t>(shard.index - 1);
}

}  // namespace fusescope::sweep
