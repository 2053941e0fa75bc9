#pragma once
// The configs that the axes of a sweep span, numbered: index 0 has every axis at its first value,
// and the last axis varies fastest.

#include <cstdint>
#include <vector>

#include "sweep/sweep_config.hpp"

namespace fusescope::sweep {

class SearchSpace {
 public:
  // `config` must outlive the space.
  SearchSpace(const SweepConfig& config, const DeviceLimits& device);

  long long size() const { return size_; }  // before constraints
  Config at(long long index) const;         // the base with the axes' values
  bool holds(const Config& config) const;   // all constraints
  // Do all constraints hold, and is the config of the sweep's shard?
  bool allowed(const Config& config) const;
  std::vector<long long> allowed_indices() const;  // walks the whole space

  // Which value each axis has there.
  std::vector<long long> positions(long long index) const;

  // The configs that differ in one axis: by one step where the axis' values are numbers (in their
  // order, whatever the file's), by any other value where they are not. Where a constraint forbids such
  // a config, in its place those that a second axis makes possible: two knobs that a constraint ties
  // would be a wall to a search that turns one at a time. Shards are not looked at.
  std::vector<long long> neighbours(long long index) const;

 private:
  std::vector<long long> steps_on(std::size_t axis, long long index) const;

  struct Steps {
    long long stride = 1;                           // of the axis in the index
    std::vector<std::vector<long long>> reachable;  // by position on the axis
  };

  const SweepConfig* config_;
  DeviceLimits device_;
  long long size_ = 1;
  std::vector<Steps> steps_;  // by axis
};

// How many configs of the space each constraint excludes (each counted by itself), and how many
// remain, of all shards. Walks the whole space.
struct ConstraintCount {
  long long allowed = 0;
  std::vector<long long> excluded;  // by constraint, in the file's order
};
ConstraintCount count_constraints(const SearchSpace& space, const SweepConfig& config,
                                  const DeviceLimits& device);

// Whether a config belongs to the shard; every config belongs to exactly one of `shards`.
bool in_shard(const Config& config, const Shard& shard);

}  // namespace fusescope::sweep
