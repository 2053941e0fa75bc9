#pragma once
// A profile's numbers fitted to measured walls. The observations are split in halves by a seed: one half is
// fitted, the other only judges. Of the named numbers those are fitted that the data determine: they move the
// walls, and not just as another number does that is fitted already; the others stay as they were.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/sim/profile.hpp"
#include "layer/problem.hpp"

namespace fusescope::engine::sim {

struct Observation {
  Config config;  // legal on the profile's device
  double wall_us = 0;
};

// The numbers that are tried unless others are named.
const std::vector<std::string>& calibrated_numbers();

struct CalibrateOptions {
  std::uint64_t seed = 1;  // of the split
  std::size_t fit_configs =
      24;                 // of the fitted half, that many are simulated in each step of the fit
  int evaluations = 150;  // steps of the fit, at most
  std::size_t most_numbers = 6;
  std::vector<std::string> numbers;  // empty: calibrated_numbers()
};

struct FittedNumber {
  std::string key;
  double before = 0;
  double after = 0;
  double moves_wall = 0;  // relative change of the walls per relative change of the number, r.m.s.
};

// Predictions against observations.
struct FitQuality {
  std::size_t configs = 0;
  double median_error = 0;      // of |predicted / observed - 1|
  double worst_error = 0;       // the same
  double rank_correlation = 0;  // Spearman's, ties given their mean rank
};

struct Calibration {
  Profile
      profile;  // with the fitted numbers; their origins say "fitted", the source is the caller's to write
  std::vector<FittedNumber> fitted;       // most telling first
  std::vector<std::string> undetermined;  // of the named numbers, those that stay
  FitQuality before, after;               // on the half that only judges
  std::size_t training = 0;               // configs of the other half
  std::size_t fitted_on = 0;              // of these, simulated in the fit
  int evaluations = 0;
};

// Throws InputError for an unknown number or fewer than 8 observations. Deterministic.
Calibration calibrate(const Problem& problem, const Profile& base,
                      std::vector<Observation> observations, const CalibrateOptions& options);

FitQuality judge(const Problem& problem, const Profile& profile,
                 const std::vector<Observation>& observations);
double spearman(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace fusescope::engine::sim
