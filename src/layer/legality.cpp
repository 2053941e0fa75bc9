// Which configs can run: one table of rules, each a small function that explains itself.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "layer/gemm_path.hpp"
#include "layer/problem.hpp"

namespace fusescope {
namespace {

constexpr int kBarrierBytes = 8;        // one mbarrier per token slot
constexpr int kThreadsPerBlock = 1024;  // one thread drives each token slot
constexpr int kElementBytes = 2;        // bf16

struct Case {
  const Shape& shape;
  const Config& config;
  const DeviceLimits& device;

  // The serial layer and the compute-only form have no communication blocks.
  bool splits_sms() const {
    return config.form == LayerForm::fused && config.study != Study::compute_all;
  }
};

std::string split_leaves_compute(const char* knob, int comm_sms, const DeviceLimits& device) {
  if (comm_sms < device.sms) {
    return "";
  }
  return fmt::format("{} {} leaves no compute SM on a {}-SM device", knob, comm_sms, device.sms);
}

std::string dispatch_split(const Case& c) {
  const int comm_sms = c.config.dispatch_comm_sms;
  if (comm_sms < (c.device.fetches_first ? 0 : 1)) {
    return fmt::format(
        "dispatch_comm_sms {} leaves no SM to fetch tokens: kernel 1 would wait for ever",
        comm_sms);
  }
  return split_leaves_compute("dispatch_comm_sms", comm_sms, c.device);
}

std::string combine_split(const Case& c) {
  const int comm_sms = c.config.combine_comm_sms;
  const bool compute_blocks_take_jobs =
      c.config.all_hands && c.config.combine == Combine::dispenser;
  if (comm_sms < 0) {
    return fmt::format("combine_comm_sms {} is negative", comm_sms);
  }
  if (comm_sms == 0 && !compute_blocks_take_jobs) {
    return "combine_comm_sms 0 leaves no SM to run combine jobs, unless combine is dispenser and "
           "all_hands is true";
  }
  return split_leaves_compute("combine_comm_sms", comm_sms, c.device);
}

std::string all_hands_needs_dispenser(const Case& c) {
  if (c.config.all_hands && c.config.combine == Combine::block_per_job) {
    return "all_hands true has no dispenser to join: combine is block_per_job (set all_hands to "
           "false, or combine to dispenser)";
  }
  return "";
}

std::string programmatic_launch(const Case& c) {
  if (c.config.launch == LaunchOrder::stream) {
    return "";
  }
  if (c.config.activation == Activation::separate) {
    return "launch programmatic lets kernel 2 begin while kernel 1 runs, and activation is "
           "separate, a "
           "kernel between them: set activation to fused, or launch to stream";
  }
  if (c.config.combine == Combine::block_per_job) {
    return "launch programmatic needs the SMs that kernel 1's blocks leave for kernel 2's blocks "
           "alone, "
           "and combine is block_per_job: set combine to dispenser, or launch to stream";
  }
  return "";
}

std::string token_slots(const Case& c) {
  const long long slots = c.config.tokens_per_block;
  if (slots < 1 || slots > kThreadsPerBlock) {
    return fmt::format("tokens_per_block {} is not from 1 to {}: one thread drives each slot",
                       slots, kThreadsPerBlock);
  }
  const long long row = static_cast<long long>(c.shape.hidden) * kElementBytes + kBarrierBytes;
  if (slots * row > c.device.smem_per_block) {
    return fmt::format(
        "tokens_per_block {} needs {} bytes of shared memory ({} per slot at H={}), and a block of "
        "this device has {}: at most {} slots",
        slots, slots * row, row, c.shape.hidden, c.device.smem_per_block,
        c.device.smem_per_block / row);
  }
  return "";
}

std::string fetched_beside_tiles(const Case& c) {
  constexpr int kAll = 100;
  const Config& config = c.config;
  if (config.dispatch_head < 0 || config.dispatch_head > kAll) {
    return fmt::format("dispatch_head {} is not a percentage: from 0 to {}", config.dispatch_head,
                       kAll);
  }
  if (config.dispatch_head == kAll) {
    return "";
  }
  if (config.dispatch_comm_sms > 0) {
    return fmt::format(
        "dispatch_head {} is for blocks that fetch and compute, and dispatch_comm_sms {} sets "
        "blocks apart for fetching: set dispatch_head to {}, or dispatch_comm_sms to 0",
        config.dispatch_head, config.dispatch_comm_sms, kAll);
  }
  if (config.dispatch != Dispatch::scatter) {
    return fmt::format(
        "dispatch_head {}: the tiles that rows are gathered for leave no shared memory for a token "
        "beside them: set dispatch to scatter, or dispatch_head to {}",
        config.dispatch_head, kAll);
  }
  const bool by_row_steps =
      config.tile == TileShape::m160n256 || config.tile == TileShape::m288n128;
  if (!by_row_steps || config.activation == Activation::separate) {
    return fmt::format(
        "dispatch_head {}: only tiles of 160x256 and 288x128 with activation fused leave shared "
        "memory for a token beside them: set tile and activation so, or dispatch_head to {}",
        config.dispatch_head, kAll);
  }
  return "";
}

std::string pushed_tokens(const Case& c) {
  if (c.config.dispatch != Dispatch::push) {
    return "";
  }
  if (c.shape.ranks == 1) {
    return "dispatch push: one rank has nobody to push tokens to: set dispatch to gather";
  }
  if (c.config.schedule != ScheduleSite::fused) {
    return "dispatch push: the prologue pushes the tokens, and schedule fused is what runs it: set "
           "schedule to fused, or dispatch to gather";
  }
  if (c.config.link_gbps > 0) {
    return fmt::format(
        "dispatch push: link_gbps {} paces what kernels 1 and 2 copy, and tokens are pushed before "
        "them: set link_gbps to 0, or dispatch to gather",
        c.config.link_gbps);
  }
  return "";
}

std::string gemm_runs(const Case& c) {
  return why_no_gemm(c.config, c.device);
}

std::string watermark_parts(const Case& c) {
  const int chunks = c.config.watermark_chunks;
  if (chunks < 1 || chunks > c.shape.tokens_per_rank) {
    return fmt::format(
        "watermark_chunks {} is not from 1 to {}: a staging plane has {} rows, one per token of "
        "the rank",
        chunks, c.shape.tokens_per_rank, c.shape.tokens_per_rank);
  }
  return "";
}

std::string link_cap(const Case& c) {
  constexpr double kSlowest = 0.001;  // walls of seconds; far below, more than a clock can count
  const double cap = c.config.link_gbps;
  if (!std::isfinite(cap) || (cap != 0 && cap < kSlowest)) {
    return fmt::format("link_gbps {} is not a bandwidth: 0 (no cap), or {} or more", cap, kSlowest);
  }
  return "";
}

std::string injection(const Case& c) {
  const Inject& inject = c.config.inject;
  if (inject.point == InjectPoint::none) {
    return "";
  }
  // A delay that nothing would run through is refused: it would be taken for one that costs nothing.
  if (c.config.form == LayerForm::serial) {
    return "inject names an operation of the fused kernels, and form is serial: set inject to "
           "none, or form to fused";
  }
  if (c.config.study == Study::compute_all || c.config.study == Study::compute_split) {
    return "inject delays communication, and this study computes only: set inject to none, or "
           "study to another";
  }
  const bool stores_none = c.config.dispatch == Dispatch::push ||
                           (c.config.dispatch == Dispatch::gather && c.shape.ranks == 1);
  if (inject.point == InjectPoint::scatter && stores_none) {
    return fmt::format(
        "inject delays kernel 1's stores of rows, and with dispatch {} {} has none: set inject to "
        "none, or dispatch to scatter",
        knob_text(c.config, "dispatch"), c.shape.ranks == 1 ? "one rank" : "it");
  }
  if (inject.delay_ns < 0) {
    return fmt::format("inject delays by {} ns: 0 or more", inject.delay_ns);
  }
  if (inject.point == InjectPoint::source_rank &&
      (inject.rank < 0 || inject.rank >= c.shape.ranks)) {
    return fmt::format("inject names source rank {}, and the shape has ranks 0 to {}", inject.rank,
                       c.shape.ranks - 1);
  }
  if (inject.point == InjectPoint::expert &&
      (inject.expert < 0 || inject.expert >= c.shape.experts)) {
    return fmt::format("inject names expert {}, and the shape has experts 0 to {}", inject.expert,
                       c.shape.experts - 1);
  }
  if (inject.point == InjectPoint::token &&
      (inject.token < 0 || inject.token >= c.shape.tokens())) {
    return fmt::format("inject names token {}, and the shape has tokens 0 to {}", inject.token,
                       c.shape.tokens() - 1);
  }
  return "";
}

struct Rule {
  bool fused_only;  // knobs of the fused kernels mean nothing to the serial layer
  std::string (*why_broken)(const Case&);
};

constexpr Rule kRules[] = {
    {true, dispatch_split},  {true, combine_split},        {true, all_hands_needs_dispenser},
    {true, token_slots},     {true, fetched_beside_tiles}, {true, pushed_tokens},
    {true, watermark_parts}, {true, programmatic_launch},  {false, link_cap},
    {false, injection},      {false, gemm_runs},
};

}  // namespace

std::string why_illegal(const Problem& problem, const Config& config, const DeviceLimits& device) {
  const Case c{problem.shape, config, device};
  for (const Rule& rule : kRules) {
    if (rule.fused_only && !c.splits_sms()) {
      continue;
    }
    if (std::string why = rule.why_broken(c); !why.empty()) {
      return why;
    }
  }
  return "";
}

}  // namespace fusescope
