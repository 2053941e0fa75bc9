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

  long long size() const { return size_; }   // before constraints
  Config at(long long index) const;          // the base with the axes' values
  bool allowed(const Config& config) const;  // do all constraints hold

 private:
  const SweepConfig* config_;
  DeviceLimits device_;
  long long size_ = 1;
};

// How many configs of the space each constraint excludes (each counted by itself), and how many
// remain. Walks the whole space.
struct ConstraintCount {
  long long allowed = 0;
  std::vector<long long> excluded;  // by constraint, in the file's order
};
ConstraintCount count_constraints(const SearchSpace& space, const SweepConfig& config,
                                  const DeviceLimits& device);

}  // namespace fusescope::sweep
