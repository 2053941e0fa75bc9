#pragma once
// A device profile: the numbers that the model runs on, each with its unit and its provenance. Read from
// sweeps/profiles/*.json; a missing number, an unknown key, a wrong unit or a value out of range is
// refused with file and path.

#include <string>
#include <vector>

namespace fusescope::engine::sim {

enum class NumberProvenance { measured, datasheet, assumed, fitted };

// Where one number of a profile comes from.
struct NumberOrigin {
  NumberProvenance provenance = NumberProvenance::assumed;
  std::string source;
};

// A figure that somebody published about this machine, to hold the model's prediction against.
struct ReferenceFigure {
  std::string name;  // a name of figures.hpp
  double value = 0;
  std::string unit;
  std::string source;
  bool fitted = false;  // the profile was fitted to it, so it is no prediction
};

struct Profile {
  std::string name;
  std::string description;
  std::string path;

  // Device.
  double sms = 0;                   // per GPU
  double smem_per_block = 0;        // [KiB] opt-in maximum
  double l2 = 0;                    // [MiB]
  double dram_peak = 0;             // [GB/s]
  double dram_copy_fraction = 0;    // of the peak, that a copy reaches
  double dram_gemm_fraction = 0;    // of a copy's rate, that weight tiles reach
  double dram_gather_fraction = 0;  // of a copy's rate, that row gathers and scatters reach

  // GEMM. Rates are of all SMs, in the main loop.
  double gemm_m128n256 = 0;  // [TFLOP/s]
  double gemm_m128n128 = 0;  // [TFLOP/s]
  // The power limit lowers the clock with the number of SMs that compute: n of N run a tile's products
  // (n/N)^power_exponent times as long as all N do; not where kernels overlap.
  double power_exponent = 0;
  // What is left of a 128x256 tile's rate where all of its rows are gathered. Copies add to the products' time, by
  // the row.
  double gemm_gather = 0;
  double tile_fill = 0;            // [us] pipeline fill, before the first product
  double tile_epilogue = 0;        // [us] registers to memory, not overlapped
  double activation_epilogue = 0;  // [us] more of it with the activation fused in

  // What one SM can move.
  double sm_pull_remote = 0;  // [GB/s]
  double sm_pull_local = 0;   // [GB/s]
  double sm_store = 0;        // [GB/s] scatter stores
  double sm_job_read = 0;     // [GB/s] rows read and summed by a job
  double sm_push = 0;         // [GB/s]

  // Latencies of operations inside a kernel.
  double pull_latency = 0;       // [us] issue to first byte, with the loop around it
  double store_latency = 0;      // [us] last store to its completion
  double arrive_latency = 0;     // [us] the K counter increments of a token
  double poll_latency = 0;       // [us] from a counter's change to the poller's next step
  double claim_latency = 0;      // [us] one atomic and a block barrier
  double job_latency = 0;        // [us] of a sum, without its rows' transfer
  double push_latency = 0;       // [us] last byte to completion
  double elect_latency = 0;      // [us] one local atomic
  double watermark_latency = 0;  // [us] system-scope release until visible on the peer
  double block_launch = 0;       // [us] one short-lived block: scheduling and set-up
  double job_blocks_per_sm = 0;  // short-lived blocks at a time on a communication SM of kernel 2
  double job_blocks_per_freed_sm = 0;  // ... and on an SM whose compute block has ended

  // Links: each GPU's own, per direction.
  double link_pull = 0;           // [GB/s] rows read by SMs
  double link_push = 0;           // [GB/s] rows written by SMs
  double fabric = 0;              // [GB/s] between all GPUs of the machine together
  double collective_rate = 0;     // [GB/s] serial layer: all-gather, reduce-scatter
  double collective_latency = 0;  // [us]

  // The stream.
  double ids_exchange = 0;           // [us]
  double schedule_device = 0;        // [us] table rebuild in a graph
  double schedule_device_eager = 0;  // [us] the same, launched kernel by kernel
  double schedule_host = 0;          // [us] synchronise, copy down, copy up
  double schedule_host_per_hit = 0;  // [ns] the host loops
  double prologue_exchange = 0;  // [us] schedule fused: the last rank's begin to everybody's ids
  double prologue_schedule = 0;  // [us] schedule fused: the tables of no hits
  double prologue_per_hit = 0;   // [ns] what each hit adds
  double barrier_latency = 0;    // [us] last rank in to all out
  double small_kernel = 0;       // [us] the least that a kernel or copy takes
  double launch_gap_graph = 0;   // [us] between two phases
  double launch_gap_eager = 0;   // [us]
  double activation_passes = 0;  // intermediate-sized arrays that the activation moves

  double jitter = 0;  // relative standard deviation of tile and copy times

  std::vector<NumberOrigin> origins;  // one per row of profile_numbers()
  std::vector<ReferenceFigure> reference_figures;
};

// One row per number of a profile: what readers, writers and tests of profiles share.
struct ProfileNumber {
  const char* key;
  const char* unit;
  double least;
  double most;
  double Profile::*member;
};
const std::vector<ProfileNumber>& profile_numbers();
const char* name(NumberProvenance provenance);

inline constexpr const char* kSeedProfile = "rtx-pro-5000-pcie5";

// A name in the profiles folder ("h200-nvlink") or a JSON file's path; "" is the seed machine's.
// Throws InputError.
Profile load_profile(const std::string& name_or_path);
// The names in the profiles folder, sorted.
std::vector<std::string> list_profiles();

}  // namespace fusescope::engine::sim
