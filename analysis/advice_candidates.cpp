// Which changes of one knob an attribution speaks for. Each rule looks at time on the critical path and at
// the accounting behind it; what the change is worth is not decided here.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>

#include "analysis/advice.hpp"
#include "analysis/findings.hpp"
#include "base/error.hpp"

namespace fusescope::analysis {
namespace {

class Rules {
 public:
  Rules(const timeline::Timeline& timeline, const Attribution& attribution, const Config& config)
      : timeline_(timeline), attribution_(attribution), config_(config) {}

  std::vector<Suggestion> all() {
    serial();
    if (config_.form == LayerForm::fused) {
      dispatch();
      spare_communication();
      waves();
      jobs();
      planes();
      activation();
    }
    around();
    return std::move(found_);
  }

 private:
  std::int64_t path(std::initializer_list<Step> steps) const {
    std::int64_t ns = 0;
    for (const Step step : steps) {
      ns += attribution_.path.by_step[static_cast<std::size_t>(step)];
    }
    return ns;
  }

  void suggest(const char* knob, const std::string& to, const std::string& evidence,
               std::int64_t at_most_ns) {
    const Knob* row = find_knob(knob);
    const std::string from = to_string(row->get(config_));
    if (from == to || at_most_ns <= 0) {
      return;
    }
    Suggestion suggestion{knob, from, to, config_, evidence, static_cast<double>(at_most_ns) / 1e3};
    try {
      set_knob_text(suggestion.config, std::string(knob) + "=" + to, "advice");
    } catch (const InputError&) {
      return;  // beyond the knob's range
    }
    found_.push_back(std::move(suggestion));
  }

  void suggest_counts(const char* knob, std::initializer_list<int> values,
                      const std::string& evidence, std::int64_t at_most_ns) {
    for (const int value : values) {
      if (value > 0) {
        suggest(knob, std::to_string(value), evidence, at_most_ns);
      }
    }
  }

  void serial() {
    if (config_.form == LayerForm::serial) {
      const std::int64_t exposed = attribution_.exposed_ns;
      suggest("form", "fused",
              fmt::format("{} of communication pass while nothing else runs", spoken_us(exposed)),
              exposed);
    }
  }

  // What the gates waited for, in words. The parts sum to the waits; the largest leads.
  std::string gate_evidence(std::int64_t exposed) const {
    struct Part {
      const char* lead;
      const char* name;
      std::int64_t ns = 0;
    };
    Part scatter{"gates wait for the scatter", "scatter"};
    Part link{"gates wait for the link", "link"};
    Part unissued{"gates wait for tokens that nobody has asked for yet", "not yet issued"};
    Part unseen{"gates wait to be seen open", "landed but not yet seen"};
    std::int64_t all = 0;
    for (const GateBlame& gate : attribution_.accounting.gates) {
      all += gate.wait_ns;
      scatter.ns += gate.scatter_ns;
      link.ns += gate.pull_ns;
      unissued.ns += gate.ns_by_blame[static_cast<std::size_t>(Blame::not_yet_issued)];
      unseen.ns += gate.ns_by_blame[static_cast<std::size_t>(Blame::landed_not_seen)];
    }
    std::string on_path =
        fmt::format("the dispatch exposes {} on the critical path", spoken_us(exposed));
    if (all <= 0) {
      return on_path;
    }
    const std::array parts = {scatter, link, unissued, unseen};
    const Part& largest = *std::max_element(
        parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.ns < b.ns; });
    std::string shares;
    for (const Part& part : parts) {
      shares += fmt::format("{}{} {}", shares.empty() ? "" : ", ", part.name,
                            spoken_share(static_cast<double>(part.ns) / static_cast<double>(all)));
    }
    return fmt::format("{} ({} of their time), and {}", largest.lead, shares, on_path);
  }

  // What an order is to blame for comes before what all gates waited for.
  static std::string convoy_evidence(const LinkLoad& load, const std::string& otherwise) {
    if (load.bottleneck < 0) {
      return otherwise;
    }
    std::string statement = load.statement;
    statement.front() =
        static_cast<char>(std::tolower(static_cast<unsigned char>(statement.front())));
    return statement;
  }

  // For a token beside them in shared memory.
  bool tiles_leave_room() const {
    return config_.dispatch == Dispatch::scatter && config_.activation == Activation::fused &&
           (config_.tile == TileShape::m160n256 || config_.tile == TileShape::m288n128);
  }

  // What a smaller head cuts, and what a larger one.
  std::string head_evidence(std::int64_t exposed) const {
    const std::int64_t before =
        attribution_.path.exposed_by_step[static_cast<std::size_t>(Step::dispatch_head)];
    return fmt::format(
        "the dispatch exposes {} on the critical path: {} before the first tile, {} after it",
        spoken_us(exposed), spoken_us(before), spoken_us(exposed - before));
  }

  // Rows stored to K slots each, or stored once and gathered by the tiles; there by kernel 1, or before.
  void rows(std::int64_t exposed) {
    if (config_.dispatch == Dispatch::scatter) {
      suggest("dispatch", "gather",
              fmt::format("the dispatch exposes {} on the critical path, and stores each token to "
                          "{} slots; gathered, to one place",
                          spoken_us(exposed), timeline_.wiring.topk),
              exposed);
    }
    suggest(
        "dispatch", "push",
        fmt::format("the dispatch exposes {} on the critical path; pushed, tokens that the GEMM "
                    "gathers come while the schedule is built",
                    spoken_us(exposed)),
        exposed);
    const std::int64_t gemm_1 = path({Step::gemm_1});
    suggest("dispatch", "scatter",
            fmt::format("tiles gather their rows themselves, which lengthens them where the "
                        "multiplication bounds them, and GEMM 1 holds the critical path for {}",
                        spoken_us(gemm_1)),
            gemm_1);
  }

  void dispatch() {
    const auto& exposed_by_step = attribution_.path.exposed_by_step;
    std::int64_t exposed = 0;
    for (const Step step : {Step::dispatch_head, Step::dispatch_order, Step::dispatch_bandwidth}) {
      exposed += exposed_by_step[static_cast<std::size_t>(step)];
    }
    rows(exposed);
    if (exposed <= 0) {
      return;
    }
    const std::string evidence = gate_evidence(exposed);
    const int sms = config_.dispatch_comm_sms;
    if (sms > 0) {
      suggest_counts("dispatch_comm_sms", {sms + 4, sms + 8, sms * 2}, evidence, exposed);
    } else if (tiles_leave_room()) {
      suggest_counts("dispatch_head", {25, 50, 75, 100}, head_evidence(exposed), exposed);
    }
    const int tokens = config_.tokens_per_block;
    suggest_counts("tokens_per_block", {tokens + 4, tokens - 4}, evidence, exposed);
    const std::string pulls = convoy_evidence(attribution_.pulls, evidence);
    suggest("pull_order", "by_slot", pulls,
            attribution_.pulls.bottleneck < 0 ? path({Step::dispatch_order}) : exposed);
    if (config_.slot_order == SlotOrder::by_token) {
      // By token id rows are pulled in one order whatever their slots are.
      const bool spreads = config_.pull_order == PullOrder::by_slot;
      for (const char* order : {"interleave_sources", "rotate_from_self"}) {
        suggest("slot_order", order, spreads ? pulls : evidence, exposed);
      }
    }
  }

  // Communication blocks of kernel 1 that are done early or wait: SMs that the GEMM could have.
  void spare_communication() {
    const int sms = config_.dispatch_comm_sms;
    std::int64_t idle = 0;
    std::int64_t all = 0;
    for (const RankAccounting& rank : attribution_.accounting.ranks) {
      const auto& uses = rank.by_role[static_cast<std::size_t>(timeline::Role::communication)];
      idle += uses[static_cast<std::size_t>(Use::idle)];
      all += std::accumulate(uses.begin(), uses.end(), std::int64_t{0});
    }
    constexpr double kWorthSaying = 0.1;
    const double share = all > 0 ? static_cast<double>(idle) / static_cast<double>(all) : 0;
    if (sms == 0 || share < kWorthSaying) {
      return;
    }
    suggest_counts("dispatch_comm_sms", {sms - 4, sms - 8, sms / 2},
                   fmt::format("communication blocks are idle {} of their time, while GEMM 1 holds "
                               "the critical path for {}",
                               spoken_share(share), spoken_us(path({Step::gemm_1}))),
                   path({Step::gemm_1}));
  }

  // Tiles go to SMs in waves; a few SMs more may save a whole one.
  void waves() {
    const int sms = timeline_.meta.sms;
    const int compute = sms - config_.dispatch_comm_sms;
    int tiles = 0;
    const timeline::Wiring& wiring = timeline_.wiring;
    for (std::size_t rank = 0; rank < wiring.expert_of_row_block.size(); ++rank) {
      tiles = std::max(tiles, wiring.row_tiles(static_cast<int>(rank)) * wiring.n_tiles_1);
    }
    if (config_.dispatch_comm_sms == 0 || compute <= 0 || tiles <= compute) {
      return;
    }
    const int present = (tiles + compute - 1) / compute;
    const int needed = (tiles + present - 2) / (present - 1);
    suggest_counts("dispatch_comm_sms", {sms - needed},
                   fmt::format("{} tiles of GEMM 1 take {} waves on {} compute SMs, and {} on {}",
                               tiles, present, compute, present - 1, needed),
                   path({Step::gemm_1}));
  }

  std::string reason_of(Step step) const {
    for (const Finding& finding : attribution_.findings) {
      if (finding.step == step) {
        return finding.reason;
      }
    }
    return {};
  }

  void jobs() {
    const std::int64_t time = path({Step::push_drain, Step::combine_work, Step::combine_wait});
    const std::string drain = reason_of(Step::push_drain);
    const std::string evidence =
        fmt::format("combine jobs hold the critical path for {}{}", spoken_us(time),
                    drain.empty() ? "" : " (push drain: " + drain + ")");
    const int sms = config_.combine_comm_sms;
    suggest_counts("combine_comm_sms", {sms + 8, sms * 2, sms - 8, sms / 2}, evidence, time);
    suggest("job_order", "by_ready", convoy_evidence(attribution_.pushes, evidence), time);
    if (config_.combine == Combine::dispenser) {
      suggest("all_hands", "true", evidence, time);
    } else {
      suggest("combine", "dispenser", evidence, time);
    }
  }

  void planes() {
    const std::int64_t time = path({Step::watermark, Step::final_reduce});
    for (const int chunks : {2, 4}) {
      if (chunks > config_.watermark_chunks) {
        suggest("watermark_chunks", std::to_string(chunks),
                fmt::format("watermarks and the final reduce, which starts when a plane is whole, "
                            "hold the critical path for {}",
                            spoken_us(time)),
                time);
      }
    }
  }

  void activation() {
    const std::int64_t time = path({Step::activation});
    suggest("activation", "fused",
            fmt::format("a kernel of its own for the activation takes {}", spoken_us(time)), time);
  }

  // What lies beside the kernels.
  void around() {
    const std::int64_t before =
        path({Step::ids_exchange, Step::schedule_build, Step::barrier, Step::copy_in});
    suggest("schedule", "fused",
            fmt::format("ids exchange, schedule build, barriers and copy-in, not in one kernel, "
                        "take {}",
                        spoken_us(before)),
            before);
    const std::int64_t gaps = path({Step::launch_gap});
    const std::string idle = fmt::format("gaps between launches take {}", spoken_us(gaps));
    suggest("graph", "true", idle, gaps);
    if (config_.activation == Activation::fused && config_.combine == Combine::dispenser) {
      suggest("launch", "programmatic", idle, gaps);
    }
  }

  const timeline::Timeline& timeline_;
  const Attribution& attribution_;
  const Config& config_;
  std::vector<Suggestion> found_;
};

}  // namespace

std::vector<Suggestion> candidates(const timeline::Timeline& timeline,
                                   const Attribution& attribution, const Config& config) {
  if (!attribution.refusal.empty()) {
    return {};
  }
  return Rules(timeline, attribution, config).all();
}

}  // namespace fusescope::analysis
