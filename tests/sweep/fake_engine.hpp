#pragma once
// A test double of an engine: a formula for the wall time, and misbehaviour on request. It simulates
// nothing and says so in its source line.

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>

#include "base/error.hpp"
#include "engine/engine.hpp"

namespace fusescope::sweep::test {

class FakeEngine : public engine::Engine {
 public:
  std::string name() const override { return "fake"; }
  const DeviceLimits& device() const override { return device_; }
  std::string identity() const override { return identity_; }
  int parallel_runs() const override { return 4; }

  // Fastest at 24 communication SMs in kernel 1; the other knobs only shift it.
  static double wall_us(const Config& config) {
    const double off = config.dispatch_comm_sms - 24;
    return 1000 + off * off + config.tokens_per_block * 0.5 + (config.all_hands ? 0 : 100);
  }

  engine::RunResult run(const engine::RunRequest& request) override {
    ++runs;
    rest_ms = request.rest_ms;
    if (misbehave) {
      misbehave(request.config);
    }
    engine::RunResult result;
    result.source = "made up by a test";
    for (int i = 0; i < samples; ++i) {
      engine::Sample sample;
      sample.wall_us = wall_us(request.config) + spread_us * (i % 3 - 1);
      result.samples.push_back(sample);
    }
    return result;
  }

  DeviceLimits device_{"fake device", 110, 101376};
  std::string identity_ = "fake device, no driver";
  int samples = 1;
  double spread_us = 0;
  std::function<void(const Config&)> misbehave;  // may throw or sleep
  std::atomic<int> runs = 0;
  std::atomic<int> rest_ms = 0;  // of the last run
};

}  // namespace fusescope::sweep::test
