#include "engine/cuda/layer_memory.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>

#include "kernels/prologue.hpp"
#include "kernels/reference_layer.hpp"

namespace fusescope::engine::cuda {
namespace {

using kernels::Bf16;

// Lays arrays of the host out one behind the other; first to count, then to hand out.
class Layout {
 public:
  explicit Layout(char* base) : base_(base) {}

  template <class T>
  void place(T*& pointer, std::int64_t count) {
    pointer = reinterpret_cast<T*>(here());
    constexpr std::size_t kAlignment = 1024;
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::size_t used() const { return used_; }

 private:
  char* here() const { return base_ == nullptr ? nullptr : base_ + used_; }

  char* base_;
  std::size_t used_ = 0;
};

// Allocates an array on the current device, and keeps it with the rank.
template <class T>
void place(RankMemory& m, T*& pointer, std::int64_t count) {
  DeviceArray array;
  array.bytes = static_cast<std::size_t>(count) * sizeof(T);
  array.block = kernels::allocate_device(array.bytes);
  pointer = static_cast<T*>(array.block.get());
  m.arrays.push_back(std::move(array));
}

void allocate_arrays(RankMemory& m, const Shape& s, const TableSizes& sizes) {
  kernels::LayerArgs& a = m.args;
  kernels::Shared& shared = a.shared[a.rank];
  const std::int64_t h = s.hidden;
  const std::int64_t i = s.intermediate;
  const std::int64_t rows = sizes.max_rows();
  const std::int64_t tokens = s.tokens();
  const std::int64_t own = s.tokens_per_rank;

  place(m, m.gate_up_weights, 2LL * s.experts * i * h);
  place(m, m.down_weights, s.experts * h * i);
  place(m, m.own_input, own * h);
  place(m, m.own_ids, own * s.topk);
  place(m, m.own_weights, own * s.topk);
  place(m, shared.flags, 1);
  place(m, shared.stamped_ids, s.hits());  // of growing iterations, as flags
  place(m, a.counters, 1);
  char* workspace = nullptr;
  place(m, workspace,
        static_cast<std::int64_t>(
            std::max(table_workspace_bytes(sizes), kernels::prologue_workspace_bytes(sizes))));

  m.first_work_array = m.arrays.size();
  place(m, shared.ids, s.hits());
  place(m, shared.weights, s.hits());
  place(m, a.expert_rows, s.experts + 1);
  place(m, a.slots, s.hits());
  place(m, a.pull_order, tokens);
  place(m, a.job_order, tokens);
  place(m, a.slack, sizes.max_row_blocks());
  place(m, a.token_of_slot, sizes.max_rows());
  place(m, a.arrivals, sizes.max_row_blocks());
  place(m, a.computed, sizes.max_row_blocks());
  place(m, a.done, sizes.max_row_blocks());
  place(m, a.gathered, rows * h);
  place(m, a.gate_up, rows * 2 * i);
  place(m, a.act, rows * i);
  place(m, a.partial, rows * h);
  place(m, a.all_tokens, tokens * h);
  place(m, a.combined, tokens * h);
  place(m, shared.staging, s.ranks * own * h);
  place(m, a.output, own * h);

  a.input = m.own_input;
  a.own_ids = m.own_ids;
  a.own_weights = m.own_weights;
  // Rows of this rank in `all_tokens` are its shared tokens: all others are brought around them.
  a.copy_in_to = a.all_tokens + a.rank * own * h;
  shared.tokens = a.copy_in_to;
  shared.all_tokens = a.all_tokens;
  shared.partials = a.combined;
  m.table_workspace = workspace;
}

void host_tables(HostSchedule& host, const Shape& shape, const TableSizes& sizes, int rank) {
  host.shape = shape;
  host.rank = rank;
  Layout count(nullptr);
  const auto lay = [&](Layout& layout) {
    layout.place(host.ids, sizes.hits());
    layout.place(host.tables.expert_rows, sizes.experts + 1);
    layout.place(host.tables.slots, sizes.hits());
    layout.place(host.tables.pull_order, sizes.tokens());
    layout.place(host.tables.job_order, sizes.tokens());
    layout.place(host.tables.slack, sizes.max_row_blocks());
    layout.place(host.tables.token_of_slot, sizes.max_rows());
  };
  lay(count);
  host.memory = kernels::allocate_host(count.used());
  Layout real(static_cast<char*>(host.memory.get()));
  lay(real);
  // Tables of no rows, until a build has ended: the kernels run even when the first one fails.
  std::memset(host.memory.get(), 0, count.used());
}

// Random streams of a rank: 1 gate/up weights, 2 down weights, 3 input.
std::uint64_t first_stream(std::uint64_t seed, int rank) {
  return seed * 1000003 + static_cast<std::uint64_t>(rank) * 16;
}

template <class T>
std::vector<T> read_back(const T* from, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  FUSESCOPE_CUDA(
      cudaMemcpy(values.data(), from, values.size() * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

}  // namespace

LayerMemory::LayerMemory(const Problem& problem, std::vector<int> device_of_rank,
                         std::uint64_t seed, std::uint64_t deadline_ns)
    : shape_(problem.shape), sizes_(problem.shape) {
  ranks_.resize(static_cast<std::size_t>(shape_.ranks));
  for (int r = 0; r < shape_.ranks; ++r) {
    ranks_[static_cast<std::size_t>(r)].device = device_of_rank.at(static_cast<std::size_t>(r));
    const kernels::OnDevice on(ranks_[static_cast<std::size_t>(r)].device);
    allocate(r, deadline_ns);
    const RankMemory& m = rank(r);
    const std::int64_t h = shape_.hidden;
    const std::int64_t i = shape_.intermediate;
    const std::uint64_t base = first_stream(seed, r);
    kernels::launch_random_bf16(m.gate_up_weights, 2LL * shape_.experts * i * h,
                                1.0f / std::sqrt(static_cast<float>(h)), base + 1, nullptr);
    kernels::launch_random_bf16(m.down_weights, shape_.experts * h * i,
                                1.0f / std::sqrt(static_cast<float>(i)), base + 2, nullptr);
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
  }
  connect();
  set_input(seed);
  set_routing(problem.routing);
  reset_protocol();
}

void LayerMemory::allocate(int r, std::uint64_t deadline_ns) {
  RankMemory& m = ranks_[static_cast<std::size_t>(r)];
  kernels::LayerArgs& a = m.args;
  a.rank = r;
  a.ranks = shape_.ranks;
  a.tokens_per_rank = shape_.tokens_per_rank;
  a.tokens = shape_.tokens();
  a.hidden = shape_.hidden;
  a.experts = shape_.experts;
  a.topk = shape_.topk;
  a.intermediate = shape_.intermediate;
  a.row_blocks_capacity = sizes_.max_row_blocks();

  allocate_arrays(m, shape_, sizes_);

  m.host_block = kernels::allocate_host(sizeof(HostWords));
  m.words = new (m.host_block.get()) HostWords{};
  a.clock = &m.words->clock[0];

  a.guard.deadline_ns = deadline_ns;
  a.guard.rank = r;
  a.guard.ranks = shape_.ranks;
  a.guard.claimed = &a.counters->diagnosed;
  a.guard.diagnosis = &m.words->diagnosis;
  a.guard.abort_words[r] = &a.counters->abort;

  m.host_schedule = std::make_unique<HostSchedule>();
  host_tables(*m.host_schedule, shape_, sizes_, r);
}

void LayerMemory::connect() {
  for (RankMemory& to : ranks_) {
    for (const RankMemory& from : ranks_) {
      const int r = from.args.rank;
      to.args.shared[r] = from.args.shared[r];
      to.args.guard.abort_words[r] = from.args.guard.abort_words[r];
    }
  }
}

void LayerMemory::set_routing(const Routing& routing) {
  const auto words = static_cast<std::size_t>(shape_.tokens_per_rank) * shape_.topk;
  for (const RankMemory& m : ranks_) {
    const kernels::OnDevice on(m.device);
    const std::size_t first = static_cast<std::size_t>(m.args.rank) * words;
    FUSESCOPE_CUDA(
        cudaMemcpy(m.own_ids, routing.experts.data() + first, words * 4, cudaMemcpyHostToDevice));
    FUSESCOPE_CUDA(cudaMemcpy(m.own_weights, routing.weights.data() + first, words * 4,
                              cudaMemcpyHostToDevice));
    // A copy from pageable memory may return before it has reached the device.
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
  }
}

void LayerMemory::set_input(std::uint64_t seed) {
  for (const RankMemory& m : ranks_) {
    const kernels::OnDevice on(m.device);
    make_input(m.args.rank, seed, m.own_input);
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
  }
}

void LayerMemory::make_input(int r, std::uint64_t seed, Bf16* to) const {
  kernels::launch_random_bf16(to, static_cast<std::int64_t>(shape_.tokens_per_rank) * shape_.hidden,
                              1.0f, first_stream(seed, r) + 3, nullptr);
}

void LayerMemory::poison() {
  for (const RankMemory& m : ranks_) {
    const kernels::OnDevice on(m.device);
    for (std::size_t i = m.first_work_array; i < m.arrays.size(); ++i) {
      FUSESCOPE_CUDA(cudaMemset(m.arrays[i].block.get(), 0xFF, m.arrays[i].bytes));
    }
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
  }
}

void LayerMemory::reset_protocol() {
  for (const RankMemory& m : ranks_) {
    const kernels::OnDevice on(m.device);
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
  }
  for (const RankMemory& m : ranks_) {
    const kernels::OnDevice on(m.device);
    const kernels::Shared& shared = m.args.shared[m.args.rank];
    FUSESCOPE_CUDA(cudaMemset(shared.flags, 0, sizeof(kernels::Flags)));
    FUSESCOPE_CUDA(cudaMemset(shared.stamped_ids, 0,
                              static_cast<std::size_t>(sizes_.hits()) * sizeof(std::uint64_t)));
    FUSESCOPE_CUDA(cudaMemset(m.args.counters, 0, sizeof(kernels::Counters)));
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
    m.words->diagnosis = {};
    m.host_schedule->error.clear();
  }
}

std::vector<kernels::Diagnosis> LayerMemory::diagnoses() const {
  std::vector<kernels::Diagnosis> found;
  for (const RankMemory& m : ranks_) {
    if (m.words->diagnosis.valid != 0) {
      found.push_back(m.words->diagnosis);
    }
  }
  return found;
}

ScheduleTables LayerMemory::read_tables(int r) const {
  const RankMemory& m = rank(r);
  const kernels::OnDevice on(m.device);
  FUSESCOPE_CUDA(cudaDeviceSynchronize());
  ScheduleTables tables;
  tables.expert_rows = read_back(m.args.expert_rows, sizes_.experts + 1);
  tables.slots = read_back(m.args.slots, sizes_.hits());
  tables.pull_order = read_back(m.args.pull_order, sizes_.tokens());
  tables.job_order = read_back(m.args.job_order, sizes_.tokens());
  tables.slack = read_back(m.args.slack, sizes_.max_row_blocks());
  tables.token_of_slot = read_back(m.args.token_of_slot, tables.rows());
  // The device's array has room for the worst case; beyond the real row blocks it says 128.
  tables.slack.resize(static_cast<std::size_t>(tables.rows() / kRowBlock));
  return tables;
}

std::vector<Bf16> LayerMemory::read_output(int r) const {
  const RankMemory& m = rank(r);
  const kernels::OnDevice on(m.device);
  FUSESCOPE_CUDA(cudaDeviceSynchronize());
  return read_back(m.args.output,
                   static_cast<std::int64_t>(shape_.tokens_per_rank) * shape_.hidden);
}

}  // namespace fusescope::engine::cuda
