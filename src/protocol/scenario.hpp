#pragma once
// One small problem to search: sizes, knobs, and what goes wrong on purpose. All of it prints as one line
// and reads back.

#include <cstdint>
#include <string>

#include "layer/config.hpp"
#include "layer/row_tiles.hpp"

namespace fusescope::protocol {

// What goes wrong with a rank, for which every wait is bounded: all must end, and the next launch, after
// the host has cleared the protocol's words, must be right again.
enum class Fault {
  none,
  dead_rank,    // the rank takes no part in the iteration
  frozen_rank,  // nothing of the rank moves any more
  // A signal that the rank does not give (kernels/layer_args.hpp, Faults):
  lost_ids,
  lost_barrier,
  lost_pull,
  lost_arrival,
  lost_begun,
  lost_activations,
  lost_tile,
  lost_residency,
  lost_push,
  lost_watermark,
  impatience,  // waits give up although they could have gone on
};

// What runs: the fused layer, or the third kernel on the same primitives
// (kernels/gemm_reduce_scatter.hpp). The latter reads combine_comm_sms as the SMs that push from the start,
// tokens_per_block as pushers per block, slot_order by_token as row order by_rank; all_hands,
// watermark_chunks and tile mean the same; the other knobs mean nothing to it.
enum class Subject { layer, gemm_reduce_scatter };

struct Scenario {
  Subject subject = Subject::layer;
  int ranks = 1;
  int devices = 1;          // ranks are spread over them in turn; co-located ones share a stream
  int tokens_per_rank = 1;  // T
  int experts = 2;
  int topk = 1;
  int row_block = 4;    // rows of a block: the kernels' 128
  int sms = 2;          // per device
  int k_steps = 1;      // stages of the ring that a tile of the first GEMM takes
  int block_group = 2;  // row blocks whose N tiles are interleaved
  int job_groups = 1;   // warpgroups of a block that take jobs: the kernels' 3
  int push_rows = 1;    // gemm_reduce_scatter: rows of a push
  int iterations = 2;
  std::uint64_t routing_seed = 1;
  Config config;
  Fault fault = Fault::none;
  int fault_rank = 0;
  int fault_iteration = 0;
  int fault_step = 0;  // frozen_rank: the step after which nothing moves
  bool operator==(const Scenario&) const = default;

  int tokens() const { return ranks * tokens_per_rank; }
  int device_of(int rank) const { return rank % devices; }
  int n_tiles() const {
    return config.tile == TileShape::m128n128 || config.tile == TileShape::m288n128 ? 2 : 1;
  }
  // How the layer's tiles take an expert's row blocks. The kernels absorb a last one that holds at most a quarter of
  // its rows, the model half of them: its blocks are small.
  RowGrouping grouping() const {
    RowGrouping grouping = subject == Subject::layer ? row_grouping(config.tile) : RowGrouping{};
    grouping.absorbed = grouping.absorbed > 0 ? row_block / 2 : 0;
    return grouping;
  }
  // Halves of row blocks that a tile may have.
  int most_halves() const { return 2 * grouping().blocks + (grouping().absorbed > 0 ? 1 : 0); }
  bool fetches_beside_tiles() const {
    return subject == Subject::layer && config.dispatch_head < 100;
  }
};

// The most that a drawn scenario may have.
struct Limits {
  int ranks = 4;
  int tokens = 10;  // R*T
  int tokens_per_rank = 6;
  int experts = 6;
  int topk = 3;
  int iterations = 3;
};

// Scenario number `index` of a search, by chance within the limits, with knobs that the layer's legality
// rules allow.
Scenario draw_scenario(Subject subject, const Limits& limits, std::uint64_t seed,
                       std::uint64_t index);

// "" or the rule that is broken.
std::string why_illegal(const Scenario& scenario);

// "ranks=2 devices=1 ... dispatch_comm_sms=1 combine=block_per_job": every size, and the knobs that are
// not the base's.
std::string to_string(const Scenario& scenario);
// Throws InputError with `option` as its place.
Scenario parse_scenario(const std::string& text, const std::string& option);

const char* to_string(Fault fault);
const char* to_string(Subject subject);
// Throws InputError naming the option.
Subject parse_subject(const std::string& text, const std::string& option);

}  // namespace fusescope::protocol
