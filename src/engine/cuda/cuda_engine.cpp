#include "engine/cuda/cuda_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <mutex>

#include "base/error.hpp"
#include "engine/cuda/devices.hpp"
#include "engine/cuda/gpu_check.hpp"
#include "engine/cuda/layer_runner.hpp"
#include "engine/cuda/nccl_choice.hpp"
#include "engine/cuda/plan.hpp"
#include "engine/cuda/recorder.hpp"
#include "engine/cuda/rung_turns.hpp"
#include "layer/gemm_path.hpp"
#include "timeline/collect/nvtx.hpp"

namespace fusescope::engine::cuda {
namespace {

// bf16 through two GEMMs, an activation, a combine and a reduction lands near 4e-3.
constexpr double kMaxRelativeError = 6e-3;

// Half of the 95% interval of the median (by order statistics), relative to it.
double relative_half_interval(const std::vector<Sample>& samples) {
  std::vector<double> walls;
  walls.reserve(samples.size());
  for (const Sample& sample : samples) {
    walls.push_back(sample.wall_us);
  }
  std::sort(walls.begin(), walls.end());
  const auto n = static_cast<double>(walls.size());
  const double reach = 0.98 * std::sqrt(n);
  if (n / 2 - reach < 1) {
    return std::numeric_limits<double>::infinity();
  }
  const auto low = static_cast<std::size_t>(n / 2 - reach);
  const auto high = std::min(walls.size() - 1, static_cast<std::size_t>(n / 2 + reach));
  return (walls[high] - walls[low]) / 2 / walls[walls.size() / 2];
}

class CudaEngine : public Engine {
 public:
  explicit CudaEngine(std::vector<Device> devices)
      : devices_(std::move(devices)), limits_(limits_of(devices_.front())) {}

  std::string name() const override { return "cuda"; }
  const DeviceLimits& device() const override { return limits_; }
  int parallel_runs() const override { return 1; }
  std::string identity() const override {
    std::string text =
        fmt::format("cuda {} x {}, {}", devices_.size(), limits_.name, driver_version());
    for (const std::string& link : describe_links(devices_)) {
      text += "; " + link;
    }
    return text;
  }

  RunResult run(const RunRequest& request) override {
    const std::lock_guard lock(mutex_);
    refuse_illegal(request);
    const timeline::NvtxRange range(timeline::RangeLevel::run, "run");
    RunResult result;
    result.provenance = timeline::Provenance::measured;
    result.source = source(request.problem->shape);
    result.gemm = describe_gemm(with_gemm_chosen(request.config, limits_));
    const std::vector<int> of_rank = devices_of_ranks(devices_, request.problem->shape.ranks);
    std::unique_copy(of_rank.begin(), of_rank.end(), std::back_inserter(result.gpus));
    try {
      LayerRunner& runner = runner_for(request);
      const NcclChoice::Chosen chosen = nccl_.choose(request.config, of_rank);
      result.collectives = chosen.said;
      runner.use_nccl(chosen.nccl);
      result.relative_error = check_outputs(runner, request);
      result.samples = take_samples(runner, request);
      if (request.timeline) {
        record(runner, request, result);
      }
      if (request.rung_rounds > 0) {
        result.rungs =
            take_rung_turns(runner, request.config, request.rung_rounds, rest_of(request));
      }
      if (request.phases) {
        result.phases = time_phases(runner, result.gpus, rest_of(request));
      }
    } catch (const CheckFailure&) {
      if (nccl_.aborted()) {  // else the runner is reset and can go on
        runner_.reset();
        nccl_.drop();
      }
      throw;
    } catch (...) {
      runner_.reset();  // in an unknown state
      throw;
    }
    return result;
  }

 private:
  // What runs, and what its outputs are checked with: a study may be legal where the full layer is not.
  void refuse_illegal(const RunRequest& request) const {
    if (request.deadline_ms < 1) {
      throw InputError({"", "deadline",
                        std::to_string(request.deadline_ms) + " ms: no wait is that short",
                        "1 ms or more"});
    }
    const auto refuse = [&](const Config& config, const std::string& because) {
      if (const std::string why =
              why_illegal_on_device(*request.problem, config, limits_, deadline_ns(request));
          !why.empty()) {
        throw InputError({"", "config", because + why, "a config that this device can run"});
      }
    };
    refuse(request.config, "");
    refuse(checked_config(request.config), "outputs are checked with study full: ");
    if (request.rung_rounds > 0) {
      if (const std::string why = why_no_rungs(request.config); !why.empty()) {
        throw InputError({"", "rungs", why, "form fused, study full, inject none"});
      }
    }
  }

  static std::uint64_t deadline_ns(const RunRequest& request) {
    return static_cast<std::uint64_t>(request.deadline_ms) * 1'000'000;
  }

  static std::chrono::milliseconds rest_of(const RunRequest& request) {
    return std::chrono::milliseconds(request.rest_ms);
  }

  static Config checked_config(Config config) {
    config.study = Study::full;
    return config;
  }

  // The buffers of the last problem are kept: sweeps run many configs of one problem.
  LayerRunner& runner_for(const RunRequest& request) {
    const std::uint64_t key =
        (hash(*request.problem) * 31 + request.seed) * 31 + deadline_ns(request);
    if (!runner_ || key != runner_key_) {
      runner_.reset();  // frees its memory before the next problem's is allocated
      runner_ = std::make_unique<LayerRunner>(
          *request.problem, devices_,
          LayerRunner::Options{.seed = request.seed, .deadline_ns = deadline_ns(request)});
      runner_key_ = key;
    }
    return *runner_;
  }

  // Before any time counts: poisoned buffers, one iteration, outputs against the reference. A study
  // takes waits away and computes nothing that could be checked; the full layer in its place also
  // leaves the tables and rows that the study then runs on.
  static double check_outputs(LayerRunner& runner, const RunRequest& request) {
    const timeline::NvtxRange range(timeline::RangeLevel::check, "outputs");
    const Config checked = checked_config(request.config);
    runner.configure(checked);
    runner.memory().poison();
    runner.run_once();
    const double error = runner.relative_error();
    if (!(error <= kMaxRelativeError)) {
      throw CheckFailure(
          fmt::format("wrong outputs: relative error {:.2e} against the reference, at most {:.0e} "
                      "is right ({})",
                      error, kMaxRelativeError, describe(checked)),
          CheckFailure::Kind::wrong_output);
    }
    if (checked != request.config) {
      runner.configure(request.config);
    }
    return error;
  }

  static void record(LayerRunner& runner, const RunRequest& request, RunResult& result) {
    result.why_no_timeline = why_not_recorded(request.config);
    if (result.why_no_timeline.empty()) {
      RecorderOptions options;
      options.choice = request.iteration;
      options.counters = request.counters;
      options.rest = rest_of(request);
      RecordedTimeline recorded =
          record_timeline(runner, *request.problem, request.config, options);
      result.timeline = std::move(recorded.timeline);
      result.timeline->meta.command = request.command;
      result.why_no_counters = std::move(recorded.why_no_counters);
    }
  }

  static std::vector<PhaseSpan> time_phases(LayerRunner& runner, const std::vector<int>& gpus,
                                            std::chrono::milliseconds rest) {
    std::vector<PhaseSpan> spans;
    const std::vector<std::vector<PhaseTime>> by_gpu = runner.time_phases(rest);
    for (std::size_t i = 0; i < by_gpu.size(); ++i) {
      for (const PhaseTime& phase : by_gpu[i]) {
        spans.push_back({gpus.at(i), phase.kind, phase.us});
      }
    }
    return spans;
  }

  static std::vector<Sample> take_samples(LayerRunner& runner, const RunRequest& request) {
    const std::uint64_t before = runner.output_checksum();
    for (int i = 0; i < request.warmup; ++i) {
      runner.run_once(rest_of(request));
    }
    std::vector<Sample> samples;
    const auto begin = std::chrono::steady_clock::now();
    for (bool more = true; more;) {
      samples.push_back(runner.run_once(rest_of(request)));
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      const bool enough = static_cast<int>(samples.size()) >= request.min_samples &&
                          relative_half_interval(samples) <= request.target_rel_ci;
      more = !enough && spent.count() < request.max_seconds;
    }
    // Every sum has a fixed order: the last iteration's outputs are the checked ones, bit by bit.
    if (request.config.study == Study::full && runner.output_checksum() != before) {
      throw CheckFailure(
          "outputs changed between repeated iterations (" + describe(request.config) + ")",
          CheckFailure::Kind::wrong_output);
    }
    return samples;
  }

  std::string source(const Shape& shape) const {
    const int used = std::min<int>(static_cast<int>(devices_.size()), shape.ranks);
    std::string text = fmt::format("measured on {} x {}", used, limits_.name);
    if (used < shape.ranks) {
      text += fmt::format(", {} ranks co-located: phase by phase, not a layer's wall time",
                          shape.ranks);
    }
    return text;
  }

  std::vector<Device> devices_;
  DeviceLimits limits_;
  std::mutex mutex_;
  NcclChoice nccl_;  // outlives the runner, whose graphs hold its collectives
  std::unique_ptr<LayerRunner> runner_;
  std::uint64_t runner_key_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_cuda_engine(const EngineOptions& options) {
  return std::make_unique<CudaEngine>(select_devices(options.devices));
}

bool is_usable(const EngineOptions& options) noexcept {
  try {
    select_devices(options.devices);
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace fusescope::engine::cuda
