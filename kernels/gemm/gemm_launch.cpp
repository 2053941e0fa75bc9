#include "gemm_launch.hpp"

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace fusescope::kernels {
namespace {

using Launcher = cudaError_t (*)(const GroupedGemmArgs&, int, cudaStream_t);

template <int... Index>
constexpr std::array<Launcher, sizeof...(Index)> make_launchers(
    std::integer_sequence<int, Index...>) {
  return {&launch_grouped_gemm_variant<Index>...};
}

constexpr auto kLaunchers =
    make_launchers(std::make_integer_sequence<int, static_cast<int>(kGemmVariants.size())>());

}  // namespace

void launch_grouped_gemm(const GroupedGemmArgs& args, const GemmVariant& variant, int workers,
                         cudaStream_t stream) {
  const int index = variant_index(variant);
  if (index < 0) {
    throw std::invalid_argument("grouped GEMM: no kernel was built for " + to_string(variant));
  }
  if (workers < 1) {
    throw std::invalid_argument("grouped GEMM: " + std::to_string(workers) +
                                " workers; at least one block must run");
  }
  const cudaError_t error = kLaunchers[static_cast<std::size_t>(index)](args, workers, stream);
  if (error != cudaSuccess) {
    throw std::runtime_error("grouped GEMM " + to_string(variant) + ": " +
                             cudaGetErrorString(error));
  }
}

GemmVariant choose_gemm_variant(std::int64_t n, Epilogue epilogue) {
  GemmVariant best{};
  std::int64_t best_columns = -1;
  for (const GemmVariant& v : kGemmVariants) {
    if (v.epilogue != epilogue || v.gathers || v.transposed)
      continue;
    const std::int64_t columns = (n + v.block_n - 1) / v.block_n * v.block_n;
    const bool better = best_columns < 0 || columns < best_columns ||
                        (columns == best_columns && v.block_n > best.block_n);
    if (!better)
      continue;
    best = v;
    best_columns = columns;
  }
  return best;
}

}  // namespace fusescope::kernels
