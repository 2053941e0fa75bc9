#pragma once
// The simulator as an Engine: a (problem, config) in, samples and a timeline out. Deterministic per seed;
// everything that it returns says "simulated".

#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "engine/sim/profile.hpp"

namespace fusescope::engine::sim {

class SimEngine final : public Engine {
 public:
  explicit SimEngine(Profile profile);

  std::string name() const override { return "sim"; }
  const DeviceLimits& device() const override { return device_; }
  std::string identity() const override;
  int parallel_runs() const override;
  // Thread-safe: every run has its own world. One sample when nothing is random (no jitter), because
  // every further one would be the same.
  RunResult run(const RunRequest& request) override;

  const Profile& profile() const { return profile_; }

 private:
  std::vector<RungSamples> sample_rungs(const RunRequest& request) const;

  Profile profile_;
  DeviceLimits device_;
};

// `profile`: a name or a path; "" is the seed machine's. Throws InputError.
std::unique_ptr<Engine> make_sim_engine(const std::string& profile);

}  // namespace fusescope::engine::sim
