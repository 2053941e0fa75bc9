#include "engine/cuda/verifier.hpp"

#include <cmath>
#include <limits>

namespace fusescope::engine::cuda {
namespace {

template <class T>
kernels::DeviceBlock upload(const std::vector<T>& values) {
  kernels::DeviceBlock block = kernels::allocate_device(values.size() * sizeof(T));
  FUSESCOPE_CUDA(
      cudaMemcpy(block.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return block;
}

// A zeroed T in device memory, read back after the launch.
template <class T>
class Result {
 public:
  Result() : block_(kernels::allocate_device(sizeof(T))) {
    FUSESCOPE_CUDA(cudaMemset(block_.get(), 0, sizeof(T)));
  }
  T* get() const { return static_cast<T*>(block_.get()); }
  T read() const {
    T value{};
    FUSESCOPE_CUDA(cudaMemcpy(&value, block_.get(), sizeof(T), cudaMemcpyDeviceToHost));
    return value;
  }

 private:
  kernels::DeviceBlock block_;
};

// Of one row. A row of zeros may only be found as zeros.
double relative(const kernels::RowDifference& row) {
  if (row.not_finite > 0 || (row.squared_norm == 0 && row.squared_error > 0)) {
    return std::numeric_limits<double>::infinity();
  }
  return row.squared_norm == 0 ? 0 : std::sqrt(row.squared_error / row.squared_norm);
}

}  // namespace

Verifier::Verifier(const LayerMemory& memory, const Routing& routing)
    : memory_(memory), routing_(routing) {}

void Verifier::set_routing(const Routing& routing) {
  routing_ = routing;
  current_ = false;
}

void Verifier::compute_reference() {
  const Shape& s = memory_.shape();
  for (int r = 0; r < memory_.ranks(); ++r) {
    const kernels::OnDevice on(memory_.rank(r).device);
    if (static_cast<int>(parts_.size()) == r) {
      parts_.push_back(kernels::allocate_device(static_cast<std::size_t>(s.tokens()) * s.hidden *
                                                sizeof(float)));
    }
    compute_part(r);
  }
  current_ = true;
}

void Verifier::compute_part(int rank) {
  const Shape& s = memory_.shape();
  const RankMemory& m = memory_.rank(rank);
  const std::size_t plane = static_cast<std::size_t>(s.tokens_per_rank) * s.hidden;
  const kernels::DeviceBlock tokens =
      kernels::allocate_device(plane * s.ranks * sizeof(kernels::Bf16));
  for (int r = 0; r < s.ranks; ++r) {
    FUSESCOPE_CUDA(cudaMemcpy(static_cast<kernels::Bf16*>(tokens.get()) + r * plane,
                              memory_.rank(r).args.input, plane * sizeof(kernels::Bf16),
                              cudaMemcpyDefault));
  }
  const kernels::DeviceBlock experts = upload(routing_.experts);
  const kernels::DeviceBlock weights = upload(routing_.weights);
  const kernels::DeviceBlock activated =
      kernels::allocate_device(static_cast<std::size_t>(s.hits()) * s.intermediate * sizeof(float));

  kernels::ReferenceArgs args;
  args.tokens = static_cast<const kernels::Bf16*>(tokens.get());
  args.experts = static_cast<const std::int32_t*>(experts.get());
  args.weights = static_cast<const float*>(weights.get());
  args.gate_up = m.gate_up_weights;
  args.down = m.down_weights;
  args.activated = static_cast<float*>(activated.get());
  args.partial = static_cast<float*>(parts_[static_cast<std::size_t>(rank)].get());
  args.token_count = s.tokens();
  args.topk = s.topk;
  args.hidden = s.hidden;
  args.intermediate = s.intermediate;
  // A peer copy may still be under way when cudaMemcpy returns.
  FUSESCOPE_CUDA(cudaDeviceSynchronize());
  launch_reference_layer(args, nullptr);
  FUSESCOPE_CUDA(cudaDeviceSynchronize());
}

OutputError Verifier::output_error() {
  if (!current_) {
    compute_reference();
  }
  OutputError found;
  double error = 0;
  double norm = 0;
  for (int r = 0; r < memory_.ranks(); ++r) {
    const std::vector<kernels::RowDifference> rows = compare(r);
    for (std::size_t t = 0; t < rows.size(); ++t) {
      const double off = relative(rows[t]);
      if (off > found.worst_row) {
        found.worst_row = off;
        found.worst_rank = r;
        found.worst_token = static_cast<int>(t);
      }
      error += rows[t].squared_error;
      norm += rows[t].squared_norm;
    }
  }
  found.relative = std::isinf(found.worst_row) ? found.worst_row : std::sqrt(error / norm);
  return found;
}

std::vector<kernels::RowDifference> Verifier::compare(int rank) const {
  const Shape& s = memory_.shape();
  const kernels::OnDevice on(memory_.rank(rank).device);
  const std::int64_t plane = static_cast<std::int64_t>(s.tokens_per_rank) * s.hidden;
  std::vector<const float*> expected;
  for (const kernels::DeviceBlock& part : parts_) {
    expected.push_back(static_cast<const float*>(part.get()) + rank * plane);
  }
  std::vector<kernels::RowDifference> rows(static_cast<std::size_t>(s.tokens_per_rank));
  const std::size_t bytes = rows.size() * sizeof(kernels::RowDifference);
  const kernels::DeviceBlock on_device = kernels::allocate_device(bytes);
  kernels::launch_compare(memory_.rank(rank).args.output, expected.data(),
                          static_cast<int>(expected.size()), s.tokens_per_rank, s.hidden,
                          static_cast<kernels::RowDifference*>(on_device.get()), nullptr);
  FUSESCOPE_CUDA(cudaMemcpy(rows.data(), on_device.get(), bytes, cudaMemcpyDeviceToHost));
  return rows;
}

std::uint64_t Verifier::checksum() const {
  const Shape& s = memory_.shape();
  std::uint64_t sum = 0;
  for (int r = 0; r < memory_.ranks(); ++r) {
    const kernels::OnDevice on(memory_.rank(r).device);
    const Result<std::uint64_t> result;
    kernels::launch_checksum(memory_.rank(r).args.output,
                             static_cast<std::int64_t>(s.tokens_per_rank) * s.hidden, result.get(),
                             nullptr);
    sum = sum * 0x9E3779B97F4A7C15ULL + result.read();
  }
  return sum;
}

}  // namespace fusescope::engine::cuda
