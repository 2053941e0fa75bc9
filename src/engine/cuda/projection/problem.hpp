#pragma once
// Attention's output projection under tensor parallelism, as a problem of its own for the third kernel:
// dense GEMM + ReduceScatter. What is computed (Shape) and how (Config), and the rules of both.
//
//   out[d, :] = sum over ranks r of  x_r[d, K/R] * W_r[H, K/R]^T
//
// A config never changes the outputs: they are bitwise equal across all of them, but for the serial form
// through NCCL, which rounds to bf16 after each addition.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/gemm_reduce_scatter.hpp"
#include "layer/config.hpp"
#include "layer/problem.hpp"

namespace fusescope::engine::cuda::projection {

using kernels::RowOrder;

struct Shape {
  int ranks = 2;
  int tokens_per_rank = 1024;  // T
  int hidden = 4096;           // H, columns of the output
  int depth = 4096;            // K over all ranks: attention's heads x head size
  bool operator==(const Shape&) const = default;

  int tokens() const { return ranks * tokens_per_rank; }
  int rank_depth() const { return depth / ranks; }
  int row_blocks() const { return (tokens() + kernels::kBlockRows - 1) / kernels::kBlockRows; }
};

struct Config {
  LayerForm form = LayerForm::fused;
  RowOrder row_order = RowOrder::rotate_from_self;  // fused form
  int push_sms = 4;       // SMs that push from the start; the rest compute
  int pushers = 12;       // per block, one thread and one buffer each
  int rows_per_push = 0;  // 0 = as many as shared memory holds, at most 8
  bool all_hands = true;  // compute blocks push once their tiles are done
  int watermark_chunks = 1;
  TileShape tile = TileShape::automatic;
  GemmPath gemm = GemmPath::automatic;               // layer/gemm_path.hpp
  Collectives collectives = Collectives::automatic;  // serial form
  bool graph = true;
  bool operator==(const Config&) const = default;
};

// "R=2 T=1024 H=4096 K=4096"
std::string describe(const Shape& shape);
// The knobs that differ from the default, "push_sms=8 graph=false"; "" for none.
std::string describe(const Config& config);
// "push_sms: SMs that push from the start ..." for each knob.
std::vector<std::string> knob_help();

// KNOB=VALUE. Throws InputError; `option` is where the text came from.
void set_knob_text(Config& config, const std::string& assignment, const std::string& option);

// "" if the config can run, else the rule that it breaks, with the numbers in it.
std::string why_illegal(const Shape& shape, const Config& config, const DeviceLimits& device);

// What rows_per_push comes to.
int rows_of_push(const Shape& shape, const Config& config);

// The serial form keeps rank order, as NCCL and the peers' copies expect it.
RowOrder row_order(const Config& config);

// `gemm` and `tile` no longer automatic. What is asked of a config that is not so chosen, here and in plans
// and records, is answered for a device with wgmma.
Config with_gemm_chosen(Config config, const DeviceLimits& device);

kernels::GemmVariant variant_of(const Config& config);

}  // namespace fusescope::engine::cuda::projection
