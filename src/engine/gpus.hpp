#pragma once
// What is asked of the GPUs themselves, not of a layer's run on them. Answers in every build; one without
// CUDA, or a machine without GPUs, says so.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "layer/check.hpp"

namespace fusescope::engine {

struct Gpu {
  int index = 0;
  std::string name;
  std::string lacks;  // "" = the cuda engine can use it, else what is missing
  std::string compute_capability;
  int sms = 0;
  int smem_per_block = 0;  // [bytes], opt-in maximum
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  int sm_clock_mhz = 0;  // as the device reports it: its highest
  int memory_clock_mhz = 0;
  std::string pci;  // "0000:1b:00.0"
};

// The GPUs that the kernels are compiled for: how their GEMMs multiply there (the knob gemm; the first is
// auto's), and whether anybody has run them there, or only compilers have seen them.
struct KernelTarget {
  const char* compute_capability;
  const char* gemm;
  const char* run_on;  // "" = no such GPU yet
};
inline constexpr std::array kKernelTargets = {
    KernelTarget{"9.0", "wgmma, mma, mma_small", "NVIDIA H200"},
    KernelTarget{"10.0", "mma, mma_small", ""},
    KernelTarget{"12.0", "mma_small", ""},
};

// From one GPU to another.
struct GpuLink {
  int from = 0;
  int to = 0;
  bool peer_access = false;     // `from` can map `to`'s memory
  bool native_atomics = false;  // NVLink has them, PCIe does not
  int performance_rank = 0;     // as the driver reports it; 0 is best
};

struct Machine {
  std::string driver;      // "580.159.04, CUDA 13.0"; "" where there is none
  std::string why_no_gpu;  // where `gpus` is empty
  std::vector<Gpu> gpus;
  std::vector<GpuLink> links;  // every ordered pair
  int most_ranks = 0;          // that the kernels are built for, co-located or not
  std::string nccl_file;       // "" = none
  std::string nccl_version;
  std::string why_no_nccl;
};
Machine describe_machine();

// The layer on the GPUs, end to end: tables on the device against the golden ones, outputs against a
// reference in fp32 that shares no kernel, repeats and knobs bit by bit. Of `request`: problem, config,
// seed, deadline. Checks that fail are results. Throws InputError where there is no GPU for it, and for a
// config that cannot run.
std::vector<CheckResult> check_on_gpus(const EngineOptions& options, const RunRequest& request);

}  // namespace fusescope::engine
