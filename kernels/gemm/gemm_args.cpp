#include "gemm_args.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <vector>

namespace fusescope::kernels {
namespace {

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                 const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                 const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

EncodeTiled find_encoder() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry,
                                                             12000, cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess || entry == nullptr) {
    throw std::runtime_error(
        "the driver has no cuTensorMapEncodeTiled (it needs CUDA 12.0 or newer): " +
        std::string(cudaGetErrorString(error)));
  }
  return reinterpret_cast<EncodeTiled>(entry);
}

struct Dimension {
  std::int64_t extent;
  std::int64_t pitch;  // [elements]
  int box;
};

// A bf16 tensor, fastest dimension first, which is contiguous. Boxes are 64 or 32 elements wide: one row of the
// 128-byte swizzle, or of the 64-byte one.
CUtensorMap encode(const char* name, const void* base, const std::vector<Dimension>& dimensions) {
  std::vector<cuuint64_t> extent;
  std::vector<cuuint64_t> pitch;  // [bytes], of all dimensions but the fastest
  std::vector<cuuint32_t> box;
  for (const Dimension& d : dimensions) {
    extent.push_back(static_cast<cuuint64_t>(d.extent));
    pitch.push_back(static_cast<cuuint64_t>(d.pitch) * 2);
    box.push_back(static_cast<cuuint32_t>(d.box));
  }
  const std::vector<cuuint32_t> step(extent.size(), 1);

  CUtensorMap map{};
  const CUresult result =
      find_encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, static_cast<cuuint32_t>(extent.size()),
                     const_cast<void*>(base), extent.data(), pitch.data() + 1, box.data(),
                     step.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
                     box[0] == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
                     CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw std::runtime_error(std::string("the driver refused the tensor map of ") + name +
                             " (CUresult " + std::to_string(result) + ")");
  }
  return map;
}

CUtensorMap encode_a(const GroupedGemmDesc& desc, const GemmVariant& variant, int steps) {
  const std::int64_t k = desc.k;
  const int depth = variant.block_k;
  if (variant.transposed)
    return encode("A", desc.a, {{k, 1, depth}, {desc.rows_capacity, k, steps * kRowStep}});
  return encode("A", desc.a,
                {{k, 1, depth},
                 {kConsumerRows, k, kConsumerRows},
                 {desc.rows_capacity / kConsumerRows, k * kConsumerRows, 1}});
}

CUtensorMap encode_b(const GroupedGemmDesc& desc, const GemmVariant& variant) {
  const std::int64_t k = desc.k;
  const int depth = variant.block_k;
  if (variant.epilogue == Epilogue::kSiluMul && blocks_per_tile(variant) == 2) {
    const std::int64_t half = desc.n / 2;
    return encode("B", desc.b,
                  {{k, 1, depth},
                   {8, k, 8},
                   {2, half * k, 2},
                   {half / 8, 8 * k, variant.out_cols() / 8},
                   {desc.experts, desc.n * k, 1}});
  }
  return encode("B", desc.b,
                {{k, 1, depth},
                 {desc.n, k, variant.block_n / b_boxes(variant)},
                 {desc.experts, desc.n * k, 1}});
}

CUtensorMap encode_d(const GroupedGemmDesc& desc, const GemmVariant& variant, std::int64_t columns,
                     int steps) {
  return encode(
      "D", desc.d,
      {{columns, 1, staged_cols(variant)},
       {desc.rows_capacity, columns, variant.transposed ? steps * kRowStep : kConsumerRows}});
}

std::string needs_multiple(const char* what, std::int64_t value, std::int64_t factor,
                           const char* why) {
  return std::string(what) + " " + std::to_string(value) + " is not a multiple of " +
         std::to_string(factor) + ": " + why;
}

std::int64_t columns_of_d(const GroupedGemmDesc& desc, const GemmVariant& variant) {
  return variant.epilogue == Epilogue::kSiluMul ? desc.n / 2 : desc.n;
}

std::int64_t n_tiles_of(const GroupedGemmDesc& desc, const GemmVariant& variant) {
  return (columns_of_d(desc, variant) + variant.out_cols() - 1) / variant.out_cols();
}

bool misaligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % 16 != 0;
}

}  // namespace

std::string why_unsupported(const GroupedGemmDesc& desc, const GemmVariant& variant) {
  const bool fused = variant.epilogue == Epilogue::kSiluMul;
  if (!is_valid(variant))
    return "the tile variant breaks its own validity rule";
  if (desc.experts < 1)
    return "a grouped GEMM needs at least one expert";
  if (desc.n < 1 || desc.k < 1 || desc.rows_capacity < 1) {
    return "N, K and the row capacity must be positive";
  }
  const std::int64_t limit = std::numeric_limits<std::int32_t>::max();
  if (desc.n > limit || desc.k > limit || desc.rows_capacity > limit) {
    return "N, K and the row capacity must each fit 31 bits: the copy engine's coordinates do";
  }
  if (desc.k % 8 != 0) {
    return needs_multiple("K", desc.k, 8, "rows of A and B must start on 16-byte boundaries");
  }
  if (fused && desc.n % 16 != 0) {
    return needs_multiple("N", desc.n, 16,
                          "the fused activation writes N/2 columns, whose rows must start on "
                          "16-byte boundaries");
  }
  if (!fused && desc.n % 8 != 0) {
    return needs_multiple("N", desc.n, 8, "rows of D must start on 16-byte boundaries");
  }
  if (desc.rows_capacity % kBlockRows != 0) {
    return needs_multiple("row capacity", desc.rows_capacity, kBlockRows,
                          "experts are padded to whole row blocks");
  }
  if (variant.transposed && desc.experts > kMostTransposedExperts) {
    return "experts " + std::to_string(desc.experts) +
           ": transposed variants count them in tables for " +
           std::to_string(kMostTransposedExperts);
  }
  if (variant.gathers && desc.k % variant.block_k != 0) {
    return needs_multiple("K", desc.k, variant.block_k,
                          "rows are gathered in pieces of a ring stage's depth");
  }
  if (misaligned(desc.a) || misaligned(desc.b) || misaligned(desc.d)) {
    return "A, B and D must start on 16-byte boundaries";
  }
  if (desc.column_groups < 1) {
    return "column groups " + std::to_string(desc.column_groups) + ": at least 1 is needed";
  }
  if (const std::int64_t n_tiles = n_tiles_of(desc, variant); n_tiles % desc.column_groups != 0) {
    return needs_multiple("the number of N tiles", n_tiles, desc.column_groups,
                          "column groups have equal numbers of tiles");
  }
  return {};
}

GroupedGemmArgs make_grouped_gemm_args(const GroupedGemmDesc& desc, const GemmVariant& variant) {
  if (const std::string why = why_unsupported(desc, variant); !why.empty()) {
    throw std::invalid_argument("grouped GEMM: " + why);
  }
  const std::int64_t d_cols = columns_of_d(desc, variant);

  GroupedGemmArgs args{};
  for (int i = 0; i < (variant.transposed ? kMostSteps : 1); ++i) {
    if (!variant.gathers)
      args.a[i] = encode_a(desc, variant, i + 1);
    args.d[i] = encode_d(desc, variant, d_cols, i + 1);
  }
  args.b = encode_b(desc, variant);
  args.expert_rows = desc.expert_rows;
  args.experts = desc.experts;
  args.n_tiles = static_cast<std::int32_t>(n_tiles_of(desc, variant));
  args.k_steps = static_cast<std::int32_t>((desc.k + variant.block_k - 1) / variant.block_k);
  args.d_cols = static_cast<std::int32_t>(d_cols);
  args.up_offset = static_cast<std::int32_t>(desc.n / 2);
  args.slack = desc.slack;
  args.next_tile = desc.next_tile;
  args.column_groups = desc.column_groups;
  args.block_group = 2;  // measured: gemm_bench
  args.a_rows = desc.a_rows;
  args.a_base = static_cast<const unsigned char*>(desc.a);
  args.a_row_units = static_cast<std::uint32_t>(desc.k / 8);
  return args;
}

}  // namespace fusescope::kernels
