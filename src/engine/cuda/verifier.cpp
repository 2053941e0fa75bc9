#include "engine/cuda/verifier.hpp"

#include <cmath>
#include <limits>

#include "kernels/reference_layer.hpp"

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

double Verifier::relative_error() {
  if (!current_) {
    compute_reference();
  }
  const Shape& s = memory_.shape();
  const std::int64_t count = static_cast<std::int64_t>(s.tokens_per_rank) * s.hidden;
  double error = 0;
  double norm = 0;
  for (int r = 0; r < memory_.ranks(); ++r) {
    const kernels::OnDevice on(memory_.rank(r).device);
    std::vector<const float*> expected;
    for (const kernels::DeviceBlock& part : parts_) {
      expected.push_back(static_cast<const float*>(part.get()) + r * count);
    }
    const Result<kernels::Difference> result;
    kernels::launch_compare(memory_.rank(r).args.output, expected.data(),
                            static_cast<int>(expected.size()), count, result.get(), nullptr);
    const kernels::Difference difference = result.read();
    if (difference.not_finite > 0) {
      return std::numeric_limits<double>::infinity();
    }
    error += difference.squared_error;
    norm += difference.squared_norm;
  }
  return std::sqrt(error / norm);
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
