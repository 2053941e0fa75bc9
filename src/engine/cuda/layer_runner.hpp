#pragma once
// One problem on its devices: runs iterations of any config, checks their outputs, times them.

#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/cuda/devices.hpp"
#include "engine/cuda/iteration.hpp"
#include "engine/cuda/launch_threads.hpp"
#include "engine/cuda/layer_memory.hpp"
#include "engine/cuda/plan.hpp"
#include "engine/cuda/record_memory.hpp"
#include "engine/engine.hpp"

namespace fusescope::engine::cuda {

class StagedRuns;
class Verifier;
struct OutputError;

class LayerRunner {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::uint64_t deadline_ns = 2'000'000'000;  // of every device wait
  };

  // Allocates everything. `devices` may be more than the ranks need: only those in use must be able
  // to map each other's memory, else InputError names the pair.
  LayerRunner(const Problem& problem, const std::vector<Device>& devices, Options options);
  ~LayerRunner();
  LayerRunner(const LayerRunner&) = delete;
  LayerRunner& operator=(const LayerRunner&) = delete;

  // Who gathers and reduces for the serial layer, from the next `configure` on; null = peer copies.
  // It takes one device per rank: those in use, in the order of the ranks. After an aborted launch it may
  // itself be aborted: then this runner is not to go on with it.
  void use_nccl(NcclCollectives* nccl) { nccl_ = nccl; }

  // Makes `config` the one that runs; builds its graphs if it wants graphs. The config must be legal.
  void configure(const Config& config, const Faults& faults = {});

  // One iteration on all ranks; blocks until it has ended. Throws CheckFailure with every rank's
  // diagnosis when a wait was given up; the runner is then reset and can go on. Throws what a launch
  // threw, a CudaError with the diagnoses that there are; after that a new runner is the way to go on.
  // The devices rest for `rest` first.
  Sample run_once(std::chrono::milliseconds rest = {});

  // All iterations of `staged`, with nothing of the host between them: no start line, no wait. Blocks
  // until the last has ended; throws as run_once does, and the inputs are then those of some feed. The
  // configured study must be `full`.
  void run_back_to_back(const StagedRuns& staged);

  // Buffers and kernels for run_recorded, of the configured config, which must be fused and no study;
  // until the next `configure`. `most_per_writer`: see RecordMemory. Throws CudaError.
  void prepare_records(int most_per_writer = 0);
  // As run_once, by the kernels that write down what they do.
  Sample run_recorded();
  const RecordMemory& records() const { return *records_; }

  // The phases of one more iteration, by device in use, as the configured one runs them. The devices rest for
  // `rest` before it, and before the one that it follows.
  std::vector<std::vector<PhaseTime>> time_phases(std::chrono::milliseconds rest = {});

  // Ids and weights of the next iterations; shape as before.
  void set_routing(const Routing& routing);
  // Other random inputs of the next iterations.
  void set_input(std::uint64_t seed);

  // Of the last iteration's outputs, against the naive reference.
  OutputError output_error();
  double relative_error();  // over all ranks; infinity if any output is not finite
  // The same 64 bits for bitwise equal outputs of all ranks.
  std::uint64_t output_checksum();

  LayerMemory& memory() { return memory_; }
  const RankPlan& plan(int rank) const { return plans_[static_cast<std::size_t>(rank)]; }
  const std::vector<Device>& devices() const { return devices_; }  // those in use

 private:
  struct DeviceRun {
    Lane lane;
    kernels::CudaEvent begin;
    kernels::CudaEvent end;
    kernels::GraphExec graph;
    kernels::GraphExec recorded_graph;
    PhaseMarks marks;
  };

  // One of the two forms of an iteration: by kernels that write nothing down, and by those that do.
  struct Form {
    const std::vector<RankPlan>& plans;
    kernels::GraphExec DeviceRun::*graph;
    bool recorded;
  };
  Form plain() const { return {plans_, &DeviceRun::graph, false}; }
  Form recorded() const { return {recorded_plans_, &DeviceRun::recorded_graph, true}; }

  kernels::GraphExec capture(DeviceRun& run, const std::vector<RankPlan>& plans,
                             void (Iteration::*step)() const) const;
  void build_graphs();
  void keep_graph(DeviceRun& run, kernels::GraphExec DeviceRun::*graph,
                  kernels::GraphExec captured);
  Sample run(const Form& form);
  void launch(DeviceRun& run, const Form& form, std::barrier<>& in_step);
  std::ptrdiff_t lanes_taking_part() const;
  void launch_iteration(DeviceRun& run, const Form& form);
  void enqueue_staged(DeviceRun& run, const StagedRuns& staged, int iteration);
  void await(DeviceRun& run, int iterations);
  void on_lanes(const std::function<void(DeviceRun&)>& work);
  std::string abandon();
  std::string failure() const;
  void check_health();
  Sample read_sample() const;

  NcclCollectives* nccl_ = nullptr;
  std::uint64_t deadline_ns_ = 0;
  std::vector<Device> devices_;  // those in use
  LayerMemory memory_;
  Config config_;
  std::vector<RankPlan> plans_;  // by rank
  std::unique_ptr<RecordMemory> records_;
  std::vector<RankPlan> recorded_plans_;  // those that write into it
  std::int64_t iterations_ = 0;           // run so far
  std::vector<DeviceRun> runs_;           // by device in use
  bool marked_ = false;                   // iterations record the ends of their phases
  std::unique_ptr<LaunchThreads> threads_;
  std::unique_ptr<Verifier> verifier_;
};

}  // namespace fusescope::engine::cuda
