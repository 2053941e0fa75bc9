#pragma once
// The knobs of the layer (DESIGN: "Knobs"). A config says how a problem is run, never what it
// computes: outputs are bitwise equal across configs, except that `activation` fused rounds to bf16 once
// less, that the serial layer's reduce-scatter through NCCL rounds to bf16 after each of its additions, and
// that the two instructions of `gemm` add products in orders of their own. (`study` and `inject` are for
// measuring, not for outputs.)

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fusescope {

enum class LayerForm { fused, serial };
enum class Dispatch { scatter, gather, push };
enum class PullOrder { by_slot, by_token };
enum class JobOrder { by_ready, by_token };
enum class SlotOrder { by_token, interleave_sources, rotate_from_self };
enum class Combine { dispenser, block_per_job };
enum class Activation { separate, fused };
enum class ScheduleSite { device, host, fused };
enum class LaunchOrder { stream, programmatic };
enum class TileCounter { none, kernel_2, both };
enum class TileShape { automatic, m128n128, m128n256, m160n256, m288n128 };
enum class GemmPath { automatic, wgmma, mma, mma_small };
enum class Collectives { automatic, nccl, peer_copies };

// The counterfactual rungs (DESIGN: "Attribution", view 3): the same kernels with one cost taken
// away.
enum class Study {
  full,           // the layer as it is
  compute_all,    // compute only, on all SMs
  compute_split,  // compute only, on the split's SMs
  gates_open,     // communication runs, waits pre-satisfied
  ideal_order,    // waits on, every order ideal
  real_order,     // waits on, the config's orders
};

// In the order in which each adds one cost to the one before; the last is the layer as it is.
inline constexpr std::array<Study, 6> kRungs = {Study::compute_all, Study::compute_split,
                                                Study::gates_open,  Study::ideal_order,
                                                Study::real_order,  Study::full};

// A known delay at a named point, for the truth test of the attribution.
enum class InjectPoint { none, pull, scatter, job, push, watermark, source_rank, token, expert };
struct Inject {
  InjectPoint point = InjectPoint::none;
  int delay_ns = 0;  // added to each operation of that kind
  int rank = -1;     // source_rank: whose rows are late
  int token = -1;    // token: global id of the late token
  int expert = -1;   // expert: whose tokens are late
  bool operator==(const Inject&) const = default;
};

struct Config {
  LayerForm form = LayerForm::fused;
  Dispatch dispatch = Dispatch::scatter;
  int dispatch_comm_sms = 16;  // SMs of kernel 1 that communicate; the rest compute
  int combine_comm_sms = 16;   // SMs of kernel 2 that run jobs from the start
  int tokens_per_block = 12;   // token slots in a communication block's shared memory
  int dispatch_head = 100;     // all blocks fetch: percent of the tokens fetched before the GEMM
  PullOrder pull_order = PullOrder::by_slot;
  JobOrder job_order = JobOrder::by_ready;
  SlotOrder slot_order = SlotOrder::by_token;
  Combine combine = Combine::dispenser;
  bool all_hands = true;
  int watermark_chunks = 1;
  Activation activation = Activation::separate;
  TileShape tile = TileShape::automatic;
  GemmPath gemm = GemmPath::automatic;  // gemm_path.hpp
  TileCounter tile_counter = TileCounter::none;
  ScheduleSite schedule = ScheduleSite::device;
  LaunchOrder launch = LaunchOrder::stream;
  bool graph = true;
  Collectives collectives =
      Collectives::automatic;  // serial layer only; NCCL takes one GPU per rank
  double link_gbps = 0;        // pacing cap per direction and GPU; 0 = the link as it is
  Study study = Study::full;
  Inject inject;
  bool operator==(const Config&) const = default;
};

// Whether kernel 1's GEMM reads rows from where their tokens lie.
inline bool gathers_rows(const Config& config) {
  return config.form == LayerForm::fused && config.dispatch != Dispatch::scatter;
}
// Whether all tokens are there when kernel 1 begins.
inline bool pushes_tokens(const Config& config) {
  return config.form == LayerForm::fused && config.dispatch == Dispatch::push;
}

// One knob's value as users write it (JSON, --set name=value, axis of a sweep).
using KnobValue = std::variant<bool, long long, double, std::string>;
std::string to_string(const KnobValue& value);

// One row per knob: the registry that the CLI, sweep files, trial logs and tests share.
struct Knob {
  std::string_view name;
  std::string_view meaning;
  std::vector<std::string> choices;  // of an enumeration; empty for numbers and booleans
  KnobValue (*get)(const Config&);
  // Returns "" or what would be accepted instead.
  std::string (*set)(Config&, const KnobValue&);
};

std::span<const Knob> knobs();
const Knob* find_knob(std::string_view name);

// `place` names where the value was written, for the error: a JSON path, or "--set".
void set_knob(Config& config, std::string_view name, const KnobValue& value,
              const std::string& file, const std::string& place);
// Parses the value's text by the knob's type.
void set_knob_text(Config& config, const std::string& assignment, const std::string& option);

// "dispatch_comm_sms=8 all_hands=false": only what differs from `base`, in the registry's order.
std::string describe(const Config& config, const Config& base = Config{});
// A knob's value as users write it.
std::string knob_text(const Config& config, std::string_view knob);
// Why a config has no counterfactual rungs, in words; "" = it has.
std::string why_no_rungs(const Config& config);
// Stable across runs and machines: a trial log's key.
std::uint64_t hash(const Config& config);

}  // namespace fusescope
