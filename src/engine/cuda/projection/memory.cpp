#include "engine/cuda/projection/memory.hpp"

#include <cmath>
#include <new>
#include <utility>

#include "kernels/reference_layer.hpp"

namespace fusescope::engine::cuda::projection {
namespace {

using kernels::Bf16;

// Allocates an array on the current device, and keeps it with the rank.
template <class T>
void place(Rank& rank, T*& pointer, std::int64_t count) {
  DeviceArray array;
  array.bytes = static_cast<std::size_t>(count) * sizeof(T);
  array.block = kernels::allocate_device(array.bytes);
  pointer = static_cast<T*>(array.block.get());
  rank.arrays.push_back(std::move(array));
}

void allocate_arrays(Rank& rank, const Shape& s) {
  kernels::LayerArgs& a = rank.args;
  kernels::Shared& shared = a.shared[a.rank];
  const std::int64_t padded = static_cast<std::int64_t>(s.row_blocks()) * kernels::kBlockRows;

  place(rank, rank.weights, static_cast<std::int64_t>(s.hidden) * s.rank_depth());
  place(rank, rank.x, static_cast<std::int64_t>(s.tokens()) * s.rank_depth());
  place(rank, rank.rows, padded * s.rank_depth());
  place(rank, shared.flags, 1);
  place(rank, a.counters, 1);
  place(rank, a.expert_rows, 2);
  place(rank, a.slack, s.row_blocks());

  rank.first_work_array = rank.arrays.size();
  place(rank, a.arrivals, s.row_blocks());
  place(rank, a.computed, s.row_blocks());
  place(rank, a.done, s.row_blocks());
  place(rank, a.partial, padded * s.hidden);
  place(rank, shared.staging, static_cast<std::int64_t>(s.tokens()) * s.hidden);
  place(rank, a.output, static_cast<std::int64_t>(s.tokens_per_rank) * s.hidden);
  shared.partials = a.partial;
}

// The dense GEMM's tables: one expert that has all rows, and nothing to wait for.
void write_tables(const Rank& rank, const Shape& s) {
  const std::int32_t expert_rows[2] = {0, s.row_blocks() * kernels::kBlockRows};
  FUSESCOPE_CUDA(
      cudaMemcpy(rank.args.expert_rows, expert_rows, sizeof(expert_rows), cudaMemcpyHostToDevice));
  FUSESCOPE_CUDA(cudaMemset(rank.args.slack, 0, static_cast<std::size_t>(s.row_blocks()) * 4));
}

// Random streams of a rank: 1 weights, 2 input.
std::uint64_t first_stream(std::uint64_t seed, int rank) {
  return seed * 1000003 + static_cast<std::uint64_t>(rank) * 16;
}

}  // namespace

Memory::Memory(const Shape& shape, std::vector<int> device_of_rank, std::uint64_t seed,
               std::uint64_t deadline_ns)
    : shape_(shape) {
  ranks_.resize(static_cast<std::size_t>(shape_.ranks));
  for (int r = 0; r < shape_.ranks; ++r) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    rank.device = device_of_rank.at(static_cast<std::size_t>(r));
    const kernels::OnDevice on(rank.device);
    allocate(r, deadline_ns);
    write_tables(rank, shape_);
    kernels::launch_random_bf16(
        rank.weights, static_cast<std::int64_t>(shape_.hidden) * shape_.rank_depth(),
        1.0f / std::sqrt(static_cast<float>(shape_.depth)), first_stream(seed, r) + 1, nullptr);
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
  }
  connect();
  set_input(seed);
  reset_protocol();
}

void Memory::allocate(int r, std::uint64_t deadline_ns) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  kernels::LayerArgs& a = rank.args;
  a.rank = r;
  a.ranks = shape_.ranks;
  a.tokens_per_rank = shape_.tokens_per_rank;
  a.tokens = shape_.tokens();
  a.hidden = shape_.hidden;
  a.intermediate = shape_.rank_depth();
  a.experts = 1;
  a.topk = 1;
  a.row_blocks_capacity = shape_.row_blocks();
  allocate_arrays(rank, shape_);

  rank.host_block = kernels::allocate_host(sizeof(HostWords));
  rank.words = new (rank.host_block.get()) HostWords{};
  a.clock = &rank.words->clock[0];

  a.guard.deadline_ns = deadline_ns;
  a.guard.rank = r;
  a.guard.ranks = shape_.ranks;
  a.guard.claimed = &a.counters->diagnosed;
  a.guard.diagnosis = &rank.words->diagnosis;
  a.guard.abort_words[r] = &a.counters->abort;
}

void Memory::connect() {
  for (Rank& to : ranks_) {
    for (const Rank& from : ranks_) {
      const int r = from.args.rank;
      to.args.shared[r] = from.args.shared[r];
      to.args.guard.abort_words[r] = from.args.guard.abort_words[r];
    }
  }
}

std::size_t Memory::input_bytes() const {
  return static_cast<std::size_t>(shape_.tokens()) * shape_.rank_depth() * sizeof(Bf16);
}

std::size_t Memory::output_bytes() const {
  return static_cast<std::size_t>(shape_.tokens_per_rank) * shape_.hidden * sizeof(Bf16);
}

void Memory::set_input(std::uint64_t seed) {
  for (const Rank& rank : ranks_) {
    const kernels::OnDevice on(rank.device);
    make_input(rank.args.rank, seed, rank.x);
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
  }
}

void Memory::make_input(int r, std::uint64_t seed, Bf16* to) const {
  kernels::launch_random_bf16(to, static_cast<std::int64_t>(shape_.tokens()) * shape_.rank_depth(),
                              1.0f, first_stream(seed, r) + 2, nullptr);
}

void Memory::arrange(int r, RowOrder order, const Bf16* from, Bf16* to, cudaStream_t stream) const {
  const std::size_t segment = input_bytes() / sizeof(Bf16) / static_cast<std::size_t>(ranks());
  for (int destination = 0; destination < ranks(); ++destination) {
    const int at = kernels::segment_of(order, r, ranks(), destination);
    FUSESCOPE_CUDA(cudaMemcpyAsync(to + static_cast<std::size_t>(at) * segment,
                                   from + static_cast<std::size_t>(destination) * segment,
                                   segment * sizeof(Bf16), cudaMemcpyDeviceToDevice, stream));
  }
}

void Memory::poison() {
  for (const Rank& rank : ranks_) {
    const kernels::OnDevice on(rank.device);
    for (std::size_t i = rank.first_work_array; i < rank.arrays.size(); ++i) {
      FUSESCOPE_CUDA(cudaMemset(rank.arrays[i].block.get(), 0xFF, rank.arrays[i].bytes));
    }
    const std::size_t padding =
        static_cast<std::size_t>(shape_.row_blocks()) * kernels::kBlockRows - shape_.tokens();
    if (padding > 0) {
      FUSESCOPE_CUDA(
          cudaMemset(rank.rows + input_bytes() / sizeof(Bf16), 0xFF,
                     padding * static_cast<std::size_t>(shape_.rank_depth()) * sizeof(Bf16)));
    }
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
  }
}

void Memory::reset_protocol() {
  for (const Rank& rank : ranks_) {
    const kernels::OnDevice on(rank.device);
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
  }
  for (const Rank& rank : ranks_) {
    const kernels::OnDevice on(rank.device);
    FUSESCOPE_CUDA(cudaMemset(rank.args.shared[rank.args.rank].flags, 0, sizeof(kernels::Flags)));
    FUSESCOPE_CUDA(cudaMemset(rank.args.counters, 0, sizeof(kernels::Counters)));
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
    rank.words->diagnosis = {};
  }
}

std::vector<kernels::Diagnosis> Memory::diagnoses() const {
  std::vector<kernels::Diagnosis> found;
  for (const Rank& rank : ranks_) {
    if (rank.words->diagnosis.valid != 0) {
      found.push_back(rank.words->diagnosis);
    }
  }
  return found;
}

std::vector<Bf16> Memory::read_output(int r) const {
  const kernels::OnDevice on(rank(r).device);
  FUSESCOPE_CUDA(cudaDeviceSynchronize());
  std::vector<Bf16> output(output_bytes() / sizeof(Bf16));
  FUSESCOPE_CUDA(
      cudaMemcpy(output.data(), rank(r).args.output, output_bytes(), cudaMemcpyDeviceToHost));
  return output;
}

}  // namespace fusescope::engine::cuda::projection
