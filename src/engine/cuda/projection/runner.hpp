#pragma once
// One projection on its devices: runs iterations of any config, checks their outputs, times them.

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/devices.hpp"
#include "engine/cuda/launch_threads.hpp"
#include "engine/cuda/projection/check.hpp"
#include "engine/cuda/projection/iteration.hpp"
#include "engine/cuda/projection/records.hpp"
#include "engine/cuda/projection/staged.hpp"
#include "engine/engine.hpp"

namespace fusescope::engine::cuda::projection {

class Runner {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::uint64_t deadline_ns = kDefaultDeadlineNs;  // of every device wait
  };

  // Allocates everything. `devices` may be more than the ranks need; those in use must be able to map
  // each other's memory, else InputError names the pair.
  Runner(const Shape& shape, const std::vector<Device>& devices, Options options);

  // Who reduces for the serial form, from the next `configure` on; null = peer copies. One device per
  // rank: those in use, in the order of the ranks.
  void use_nccl(NcclCollectives* nccl) { nccl_ = nccl; }

  // Makes `config` the one that runs; builds its graphs if it wants graphs. The config must be legal.
  void configure(const Config& config, const Faults& faults = {});
  // The same for the fused form with kernels that record. Records are of the last run_once.
  void configure_recorded(const Config& config);

  // One iteration on all ranks; blocks until it has ended. Throws CheckFailure with every rank's
  // diagnosis when a wait was given up; the runner is then reset and can go on. Throws what a launch
  // threw; after that a new runner is the way to go on.
  Sample run_once();

  // All iterations of `staged`, with nothing of the host between them. Blocks; throws as run_once does.
  // The inputs are then again those of the last set_input.
  void run_back_to_back(const Staged& staged);

  // Other random inputs of the next iterations.
  void set_input(std::uint64_t seed);

  // Of the last run_once, against the reference.
  OutputError output_error() { return check_.output_error(); }

  Memory& memory() { return memory_; }
  const std::vector<Device>& devices() const { return devices_; }  // those in use
  const Records& records() const { return *records_; }

 private:
  struct DeviceRun {
    Lane lane;
    kernels::CudaEvent begin;
    kernels::CudaEvent end;
    kernels::GraphExec graph;
  };

  kernels::GraphExec capture(DeviceRun& run, void (Iteration::*step)() const) const;
  void prepare(const Config& config, const Faults& faults, bool recorded);
  void build_graphs();
  void arrange_inputs();
  void launch(DeviceRun& run, std::barrier<>& in_step);
  std::ptrdiff_t lanes_taking_part() const;
  void launch_iteration(DeviceRun& run);
  void await(DeviceRun& run, int iterations);
  void on_lanes(const std::function<void(DeviceRun&)>& work);
  void abandon();
  std::string failure() const;
  Sample read_sample() const;

  NcclCollectives* nccl_ = nullptr;
  std::uint64_t deadline_ns_ = 0;
  std::vector<Device> devices_;  // those in use
  Memory memory_;
  Check check_;
  Config config_;
  std::vector<Plan> plans_;  // by rank
  std::unique_ptr<Records> records_;
  std::vector<DeviceRun> runs_;  // by device in use
  std::unique_ptr<LaunchThreads> threads_;
};

}  // namespace fusescope::engine::cuda::projection
