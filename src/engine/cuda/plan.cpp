#include "engine/cuda/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "engine/cuda/gemm_variant.hpp"
#include "engine/cuda/longest_wait.hpp"
#include "kernels/gemm/gemm_args.hpp"
#include "layer/gemm_path.hpp"

namespace fusescope::engine::cuda {
namespace {

using kernels::Epilogue;
using kernels::GemmVariant;
using kernels::GroupedGemmDesc;

Epilogue epilogue_of(Activation activation) {
  return activation == Activation::fused ? Epilogue::kSiluMul : Epilogue::kStore;
}

bool fetches_beside_tiles(const Config& config) {
  return config.form == LayerForm::fused && config.dispatch_head < 100;
}

// Of kernel 1.
GemmVariant variant_1(const Config& config) {
  return gemm_variant(
      config, epilogue_of(config.activation),
      {.gathers = gathers_rows(config), .leaves_room = fetches_beside_tiles(config)});
}

GroupedGemmDesc desc_1(const Shape& shape, std::int64_t rows) {
  GroupedGemmDesc desc;
  desc.rows_capacity = rows;
  desc.n = 2LL * shape.intermediate;
  desc.k = shape.hidden;
  desc.experts = shape.experts;
  return desc;
}

GroupedGemmDesc desc_2(const Shape& shape, std::int64_t rows) {
  GroupedGemmDesc desc;
  desc.rows_capacity = rows;
  desc.n = shape.hidden;
  desc.k = shape.intermediate;
  desc.experts = shape.experts;
  return desc;
}

kernels::Delays delays_of(const Inject& inject) {
  kernels::Delays delays;
  const auto ns = static_cast<std::uint32_t>(inject.delay_ns);
  switch (inject.point) {
    case InjectPoint::none:
      break;
    case InjectPoint::pull:
      delays.pull = ns;
      break;
    case InjectPoint::scatter:
      delays.scatter = ns;
      break;
    case InjectPoint::job:
      delays.job = ns;
      break;
    case InjectPoint::push:
      delays.push = ns;
      break;
    case InjectPoint::watermark:
      delays.watermark = ns;
      break;
    case InjectPoint::source_rank:
      delays.source_rank = ns;
      delays.rank = inject.rank;
      break;
    case InjectPoint::token:
      delays.one_token = ns;
      delays.token = inject.token;
      break;
    case InjectPoint::expert:
      delays.one_expert = ns;
      delays.expert = inject.expert;
      break;
  }
  return delays;
}

// Shared memory that a block without a GEMM may ask for.
int block_bytes(const Config& config) {
  return config.gemm == GemmPath::mma_small ? kernels::kSmallSharedBytes : kernels::kMaxSharedBytes;
}

// Tokens that slots fetch; the others are fetched beside tiles.
std::int32_t head_tokens(const Shape& shape, const Config& config) {
  const std::int64_t tokens = shape.tokens();
  return static_cast<std::int32_t>(tokens * config.dispatch_head / 100);
}

bool computes_only(Study study) {
  return study == Study::compute_all || study == Study::compute_split;
}

void plan_gemms(RankPlan& plan, const LayerMemory& memory, const Config& config) {
  const RankMemory& m = memory.rank(plan.layer.rank);
  const std::int64_t rows = memory.sizes().max_rows();

  plan.dispatch_variant = variant_1(config);
  GroupedGemmDesc one = desc_1(memory.shape(), rows);
  one.a = plan.dispatch_variant.gathers ? plan.layer.all_tokens : plan.layer.gathered;
  one.a_rows = plan.layer.token_of_slot;
  one.b = m.gate_up_weights;
  one.d = config.activation == Activation::fused ? plan.layer.act : plan.layer.gate_up;
  one.expert_rows = plan.layer.expert_rows;
  one.slack = plan.layer.slack;
  plan.dispatch.gemm = make_grouped_gemm_args(one, plan.dispatch_variant);
  plan.dispatch.gemm.clock = &m.words->clock[0];
  if (config.tile_counter == TileCounter::both) {
    plan.dispatch.gemm.next_tile = &plan.layer.counters->next_tile[0];
  }

  plan.combine_variant = gemm_variant(config, Epilogue::kStore);
  GroupedGemmDesc two = desc_2(memory.shape(), rows);
  two.a = plan.layer.act;
  two.b = m.down_weights;
  two.d = plan.layer.partial;
  two.expert_rows = plan.layer.expert_rows;
  two.slack = plan.layer.slack;
  plan.combine.gemm = make_grouped_gemm_args(two, plan.combine_variant);
  plan.combine.gemm.clock = &m.words->clock[1];
  if (config.tile_counter != TileCounter::none) {
    plan.combine.gemm.next_tile = &plan.layer.counters->next_tile[1];
  }
}

}  // namespace

SlotOrder slot_order(const Config& config) {
  return config.study == Study::ideal_order ? SlotOrder::interleave_sources : config.slot_order;
}

// A block's warpgroups share what the GEMM leaves of a block's shared memory; blocks of one job have an SM's, for
// three of them where three fit.
kernels::JobRing job_ring(const Shape& shape, const Config& config) {
  const GemmVariant variant = gemm_variant(config, Epilogue::kStore);
  const kernels::JobRing ring =
      kernels::widest_job_ring(shape.hidden, shape.topk, kernels::bytes_for_job_group(variant));
  return ring.pieces == 0 && config.combine == Combine::block_per_job
             ? kernels::widest_job_ring(shape.hidden, shape.topk, block_bytes(config))
             : ring;
}

RankPlan make_plan(const LayerMemory& memory, int rank, const Config& config, int sms,
                   const Faults& faults) {
  const RankMemory& m = memory.rank(rank);
  const bool ideal = config.study == Study::ideal_order;
  const bool alone = computes_only(config.study);
  const bool split = config.study != Study::compute_all;

  RankPlan plan;
  plan.layer = m.args;
  plan.layer.delays = delays_of(config.inject);
  if (rank == faults.rank) {
    plan.layer.faults = faults.lost;
  }
  plan.layer.link_row_time = link_row_time(memory.shape(), config.link_gbps);
  const bool programmatic =
      config.form == LayerForm::fused && config.launch == LaunchOrder::programmatic;
  if (programmatic) {
    plan.layer.launch = kernels::LaunchOrder::programmatic;
  }
  plan.layer.tokens_pushed = pushes_tokens(config);
  plan.prologue =
      make_prologue_args(plan.layer, memory.sizes(), slot_order(config), m.table_workspace);
  plan_gemms(plan, memory, config);

  plan.dispatch.layer = plan.layer;
  if (config.pull_order == PullOrder::by_token && !ideal) {
    plan.dispatch.layer.pull_order = nullptr;
  }
  plan.dispatch.compute_blocks = split ? sms - config.dispatch_comm_sms : sms;
  plan.dispatch_blocks =
      alone && config.form == LayerForm::fused ? plan.dispatch.compute_blocks : sms;
  plan.dispatch.tokens_per_block = config.tokens_per_block;
  plan.dispatch.head = head_tokens(memory.shape(), config);
  plan.dispatch.fetches_first = config.dispatch_comm_sms == 0 && !alone;
  if (alone || config.study == Study::gates_open) {
    plan.dispatch.open_at = 0;
  }

  plan.combine.layer = plan.layer;
  plan.combine.layer.clock = &m.words->clock[1];
  if (config.job_order == JobOrder::by_token && !ideal) {
    plan.combine.layer.job_order = nullptr;
  }
  const bool per_job = config.combine == Combine::block_per_job;
  plan.combine.combine.done_at =
      config.study == Study::gates_open ? 0 : static_cast<std::uint32_t>(plan.combine.gemm.n_tiles);
  plan.combine.combine.watermark_chunks = config.watermark_chunks;
  plan.combine.combine.ring = job_ring(memory.shape(), config);
  if (programmatic) {
    plan.combine.open_at = static_cast<std::uint32_t>(plan.dispatch.gemm.n_tiles);
  }
  plan.combine.compute_blocks = split ? sms - config.combine_comm_sms : sms;
  plan.combine.all_hands = config.all_hands;
  plan.combine.runs_jobs = !alone && !per_job;
  plan.combine.announces_residency = !alone && per_job;
  const bool all_sms = plan.combine.runs_jobs || config.form == LayerForm::serial;
  plan.combine_blocks = all_sms ? sms : plan.combine.compute_blocks;

  plan.reduce.layer = plan.layer;
  plan.reduce.watermark_chunks = config.form == LayerForm::serial ? 1 : config.watermark_chunks;
  plan.reduce.waits = config.form == LayerForm::fused;
  return plan;
}

std::uint64_t link_row_time(const Shape& shape, double link_gbps) {
  if (link_gbps <= 0 || shape.ranks < 2) {
    return 0;
  }
  const double line = link_gbps / (shape.ranks - 1);  // [bytes / ns]
  const double units = std::ldexp(2.0 * shape.hidden / line, kernels::kLinkFraction);
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(units)));
}

std::string why_illegal_on_device(const Problem& problem, const Config& wanted,
                                  const DeviceLimits& device, std::uint64_t deadline_ns) {
  if (std::string why = why_illegal(problem, wanted, device); !why.empty()) {
    return why;
  }
  const Config config = with_gemm_chosen(wanted, device);
  const Shape& shape = problem.shape;
  if (std::string why = why_past_deadline(shape, config, device, deadline_ns); !why.empty()) {
    return why;
  }
  if (shape.ranks > kernels::kMaxRanks) {
    return fmt::format("{} ranks: the kernels are built for at most {}", shape.ranks,
                       kernels::kMaxRanks);
  }
  if (config.schedule == ScheduleSite::fused) {
    if (std::string why = kernels::why_no_prologue(TableSizes(shape)); !why.empty()) {
      return why;
    }
  }
  const std::int64_t rows = TableSizes(shape).max_rows();
  // Combine finds a partial row by its first 16-byte unit (Hits::first_unit).
  constexpr std::int64_t kMostUnits = std::numeric_limits<std::int32_t>::max();
  if (const std::int64_t units = rows * (shape.hidden / 8); units > kMostUnits) {
    return fmt::format(
        "{} rows of H={} are {} units of 16 bytes, and the kernels count them in 32 bits: at most "
        "{}",
        rows, shape.hidden, units, kMostUnits);
  }
  if (gathers_rows(config) && config.gemm != GemmPath::wgmma) {
    return fmt::format(
        "dispatch {} is built for the GEMMs with wgmma, and here they run with mma.sync: set "
        "dispatch to scatter",
        knob_text(config, "dispatch"));
  }
  const GemmVariant one = variant_1(config);
  if (one.gathers && shape.hidden % one.block_k != 0) {
    return fmt::format(
        "dispatch {} copies rows in pieces of {} columns, and H={} is no multiple of that: set "
        "dispatch to scatter",
        knob_text(config, "dispatch"), one.block_k, shape.hidden);
  }
  const GemmVariant two = gemm_variant(config, Epilogue::kStore);
  if (std::string why = why_unsupported(desc_1(shape, rows), one); !why.empty()) {
    return "gate/up GEMM: " + why;
  }
  if (std::string why = why_unsupported(desc_2(shape, rows), two); !why.empty()) {
    return "down GEMM: " + why;
  }
  if (config.form == LayerForm::serial) {
    return "";
  }
  const bool fetches_first = config.dispatch_comm_sms == 0;
  const int threads = fetches_first ? copy_thread(one) : gemm_threads(one);
  if (config.tokens_per_block > threads) {
    return fmt::format("tokens_per_block {} is more than a block's {} threads{}",
                       config.tokens_per_block, threads,
                       fetches_first ? " that fetch before they multiply" : "");
  }
  const long long fetched = kernels::communication_bytes(config.tokens_per_block, shape.hidden);
  // The room beside tiles is in use from the begin.
  const int left = work_bytes(one) > 0 ? work_at(one) : reusable_bytes(one);
  if (fetches_first && fetched > left) {
    return fmt::format(
        "tokens_per_block {} takes {} bytes of shared memory, and the GEMM leaves {} of a block "
        "that fetches before it multiplies: set tokens_per_block to at most {}, or "
        "dispatch_comm_sms above 0",
        config.tokens_per_block, fetched, left,
        left / kernels::communication_bytes(1, shape.hidden));
  }
  if (config.watermark_chunks > kernels::kMaxWatermarkChunks) {
    return fmt::format("watermark_chunks {} is more than the {} flags that a plane has",
                       config.watermark_chunks, kernels::kMaxWatermarkChunks);
  }
  if (job_ring(shape, config).pieces == 0) {
    const bool per_job = config.combine == Combine::block_per_job;
    return fmt::format(
        "combine {} needs {} bytes of shared memory for a job at H={}, K={}, and {} {}",
        per_job ? "block_per_job" : "dispenser",
        kernels::job_group_bytes(shape.hidden, shape.topk, {8, 1}), shape.hidden, shape.topk,
        per_job ? "a block has" : "the GEMM leaves a warpgroup",
        per_job ? block_bytes(config) : kernels::bytes_for_job_group(two));
  }
  return "";
}

}  // namespace fusescope::engine::cuda
