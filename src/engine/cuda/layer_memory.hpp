#pragma once
// All memory of one problem: per rank the weights, inputs, tables, activations, flags and counters on
// its device; and the page-locked words that the device reports to. Allocated once, reused by every
// iteration of every config. Every array is an allocation of its own, so that tools that check accesses
// know where each one ends.

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda_check.hpp"
#include "kernels/layer_args.hpp"
#include "layer/problem.hpp"
#include "layer/tables.hpp"
#include "layer/tables_device.hpp"

namespace fusescope::engine::cuda {

// Page-locked words of one rank.
struct HostWords {
  kernels::Diagnosis diagnosis;
  kernels::ClockStamp clock[2];  // kernel 1, kernel 2
};

// What the host builds tables in, for `schedule: host`.
struct HostSchedule {
  Shape shape;
  SlotOrder slot_order = SlotOrder::by_token;
  int rank = 0;
  kernels::HostBlock memory;
  std::int32_t* ids = nullptr;  // [R*T, K], copied from the device
  TablePointers tables;         // row_block_experts is not used
  std::string error;            // what the build threw, if it did
};

struct DeviceArray {
  kernels::DeviceBlock block;
  std::size_t bytes = 0;
};

struct RankMemory {
  int device = 0;
  std::vector<DeviceArray> arrays;
  std::size_t first_work_array = 0;  // from here on: what every iteration writes before it reads
  kernels::HostBlock host_block;
  kernels::LayerArgs args;                   // pointers and sizes; knobs at rest
  kernels::Bf16* gate_up_weights = nullptr;  // [E, 2I, H]
  kernels::Bf16* down_weights = nullptr;     // [E, H, I]
  kernels::Bf16* own_input = nullptr;        // [T, H]
  std::int32_t* own_ids = nullptr;           // [T, K]
  float* own_weights = nullptr;              // [T, K]
  void* table_workspace = nullptr;
  HostWords* words = nullptr;
  std::unique_ptr<HostSchedule> host_schedule;
};

class LayerMemory {
 public:
  // Fills weights and inputs with random values from `seed`; what iterations write stays as it comes.
  // `device_of_rank` has one entry per rank.
  // Throws CudaError, e.g. when the memory does not suffice.
  LayerMemory(const Problem& problem, std::vector<int> device_of_rank, std::uint64_t seed,
              std::uint64_t deadline_ns);

  const Shape& shape() const { return shape_; }
  const TableSizes& sizes() const { return sizes_; }
  int ranks() const { return shape_.ranks; }
  const RankMemory& rank(int r) const { return ranks_[static_cast<std::size_t>(r)]; }

  // Replaces ids and weights; the shape stays. Blocks until they are there.
  void set_routing(const Routing& routing);
  // Other random inputs, of all ranks. Blocks until they are there.
  void set_input(std::uint64_t seed);
  // What set_input(seed) gives this rank, [T, H], made on its device, which is the current one.
  void make_input(int r, std::uint64_t seed, kernels::Bf16* to) const;
  // Fills every buffer that an iteration must write itself with NaN (tables: -1). Blocks.
  void poison();
  // After a launch was aborted: flags, counters and diagnoses as at the start. Blocks.
  void reset_protocol();
  // Of the last launches, which must have ended.
  std::vector<kernels::Diagnosis> diagnoses() const;

  // The tables that rank r's last iteration used, read back. Blocks.
  ScheduleTables read_tables(int r) const;
  // [T, H] bf16 of rank r. Blocks.
  std::vector<kernels::Bf16> read_output(int r) const;

 private:
  void allocate(int r, std::uint64_t deadline_ns);
  void connect();

  Shape shape_;
  TableSizes sizes_;
  std::vector<RankMemory> ranks_;
};

}  // namespace fusescope::engine::cuda
