#include "protocol/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <string_view>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/suggest.hpp"
#include "layer/problem.hpp"
#include "protocol/clock.hpp"
#include "protocol/layer/layer.hpp"

namespace fusescope::protocol {
namespace {

constexpr std::array kFaults = {
    "none",           "dead_rank",    "frozen_rank",    "lost_ids",         "lost_barrier",
    "lost_pull",      "lost_arrival", "lost_begun",     "lost_activations", "lost_tile",
    "lost_residency", "lost_push",    "lost_watermark", "impatience"};

constexpr std::array kSubjects = {"layer", "gemm_reduce_scatter"};

struct Field {
  const char* name;
  int Scenario::*member;
  int least, most;
};
constexpr std::array kFields = {
    Field{"ranks", &Scenario::ranks, 1, 8},
    Field{"devices", &Scenario::devices, 1, 8},
    Field{"tokens_per_rank", &Scenario::tokens_per_rank, 1, 12},
    Field{"experts", &Scenario::experts, 1, 32},
    Field{"topk", &Scenario::topk, 1, 8},
    Field{"row_block", &Scenario::row_block, 2, 8},
    Field{"sms", &Scenario::sms, 1, 8},
    Field{"k_steps", &Scenario::k_steps, 1, 8},
    Field{"block_group", &Scenario::block_group, 1, 8},
    Field{"job_groups", &Scenario::job_groups, 1, kMostJobGroups},
    Field{"push_rows", &Scenario::push_rows, 1, kMostPushRows},
    Field{"iterations", &Scenario::iterations, 1, 8},
    Field{"fault_rank", &Scenario::fault_rank, 0, 7},
    Field{"fault_iteration", &Scenario::fault_iteration, 0, 7},
    Field{"fault_step", &Scenario::fault_step, 0, 1'000'000},
};

// The knobs a scenario's text is relative to: everything at its smallest or simplest.
Config base_config() {
  Config config;
  config.dispatch_comm_sms = 1;
  config.combine_comm_sms = 1;
  config.tokens_per_block = 1;
  return config;
}

int between(Random& random, int least, int most) {
  const int choices = most - least + 1;
  return least + static_cast<int>(random.below(static_cast<std::uint64_t>(choices)));
}

template <class Choice>
Choice one_of(Random& random, std::initializer_list<Choice> choices) {
  return *(choices.begin() + random.below(choices.size()));
}

TileShape draw_tile(const Config& c, bool beside_tiles, Random& random) {
  constexpr TileShape kWide = TileShape::m128n256, kNarrow = TileShape::m128n128;
  constexpr TileShape kWideBySteps = TileShape::m160n256, kNarrowBySteps = TileShape::m288n128;
  if (beside_tiles) {
    return one_of(random, {kWideBySteps, kNarrowBySteps});
  }
  if (c.dispatch == Dispatch::scatter) {
    return one_of(random, {kWide, kNarrow, kWideBySteps, kNarrowBySteps});
  }
  return c.activation == Activation::fused ? one_of(random, {kWide, kNarrow, kWideBySteps})
                                           : one_of(random, {kWide, kNarrow});
}

void draw_knobs(Scenario& s, Random& random) {
  Config& c = s.config;
  c = base_config();
  c.dispatch_comm_sms = between(random, 0, s.sms - 1);
  c.combine_comm_sms = between(random, 0, s.sms - 1);
  c.tokens_per_block = between(random, 1, kMostTokensPerBlock);
  c.pull_order = one_of(random, {PullOrder::by_slot, PullOrder::by_token});
  c.job_order = one_of(random, {JobOrder::by_ready, JobOrder::by_token});
  c.slot_order = one_of(
      random, {SlotOrder::by_token, SlotOrder::interleave_sources, SlotOrder::rotate_from_self});
  const bool per_job = random.below(6) == 0;
  c.combine = per_job ? Combine::block_per_job : Combine::dispenser;
  c.all_hands = !per_job && random.below(3) != 0;
  c.watermark_chunks = between(random, 1, s.tokens_per_rank);
  c.activation = one_of(random, {Activation::separate, Activation::fused});
  c.dispatch = random.below(3) == 0 ? Dispatch::gather : Dispatch::scatter;
  const bool beside_tiles = c.dispatch == Dispatch::scatter && random.below(4) == 0;
  if (beside_tiles) {
    c.dispatch_comm_sms = 0;
    c.dispatch_head = one_of(random, {0, 0, 30, 60});
    c.activation = Activation::fused;
  }
  const bool may_overlap = !per_job && c.activation == Activation::fused;
  c.launch = may_overlap && random.below(3) != 0 ? LaunchOrder::programmatic : LaunchOrder::stream;
  c.tile_counter = one_of(random, {TileCounter::none, TileCounter::kernel_2, TileCounter::both});
  c.tile = draw_tile(c, beside_tiles, random);
  c.schedule = one_of(
      random, {ScheduleSite::host, ScheduleSite::device, ScheduleSite::fused, ScheduleSite::fused});
  c.graph = random.below(2) == 0;
}

// Where rows are gathered, all else that is legal with it is so with pushed tokens.
bool may_push_tokens(const Scenario& s) {
  return s.subject == Subject::layer && s.config.dispatch == Dispatch::gather &&
         s.config.schedule == ScheduleSite::fused && s.ranks > 1;
}

// Signals that are waited for in some configs only.
bool means_something(Fault fault, const Config& config) {
  if (fault == Fault::lost_residency) {
    return config.combine == Combine::block_per_job;
  }
  const bool is_of_overlap = fault == Fault::lost_begun || fault == Fault::lost_activations;
  return !is_of_overlap || config.launch == LaunchOrder::programmatic;
}

void draw_fault(Scenario& s, Random& random) {
  if (random.below(8) != 0) {
    return;
  }
  // Other waits run out when nothing moves any more: no copy is in flight then.
  if (s.fetches_beside_tiles() && random.below(2) == 0) {
    s.fault = Fault::impatience;
  }
  while (s.fault == Fault::none || !means_something(s.fault, s.config)) {
    s.fault = static_cast<Fault>(1 + random.below(kFaults.size() - 1));
  }
  s.fault_rank = between(random, 0, s.ranks - 1);
  s.fault_iteration = between(random, 0, s.iterations - 1);
  if (s.fault == Fault::frozen_rank) {
    s.fault_step = between(random, 1, 400 * s.ranks);
  }
}

int parse_number(std::string_view text, const Field& field, const std::string& option) {
  int value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || value < field.least ||
      value > field.most) {
    throw InputError({option, field.name, fmt::format("\"{}\" cannot be searched", text),
                      fmt::format("a number from {} to {}", field.least, field.most)});
  }
  return value;
}

}  // namespace

const char* to_string(Fault fault) {
  return kFaults[static_cast<std::size_t>(fault)];
}

const char* to_string(Subject subject) {
  return kSubjects[static_cast<std::size_t>(subject)];
}

Subject parse_subject(const std::string& text, const std::string& option) {
  const auto found = std::find(kSubjects.begin(), kSubjects.end(), text);
  if (found == kSubjects.end()) {
    throw InputError({option, "", fmt::format("\"{}\" cannot be searched", text),
                      spoken_list({kSubjects.begin(), kSubjects.end()})});
  }
  return static_cast<Subject>(found - kSubjects.begin());
}

std::string why_illegal(const Scenario& s) {
  Problem problem;
  problem.shape.ranks = s.ranks;
  problem.shape.tokens_per_rank = s.tokens_per_rank;
  problem.shape.hidden = 8;
  problem.shape.experts = s.experts;
  problem.shape.topk = s.topk;
  const DeviceLimits device{"the search's", s.sms, 232'448, true};
  if (std::string why = why_illegal(problem, s.config, device); !why.empty()) {
    return why;
  }
  if (s.topk > s.experts) {
    return fmt::format("topk {} of {} experts", s.topk, s.experts);
  }
  if (s.devices > s.ranks) {
    return fmt::format("{} devices for {} ranks", s.devices, s.ranks);
  }
  if (s.row_block % 2 != 0) {
    return fmt::format("row_block {} is odd: two consumers share a tile", s.row_block);
  }
  if (s.config.tokens_per_block > kMostTokensPerBlock) {
    return fmt::format("tokens_per_block {} is more than the {} row slots that are modelled",
                       s.config.tokens_per_block, kMostTokensPerBlock);
  }
  if (s.config.form != LayerForm::fused || s.config.study != Study::full) {
    return "only the full fused layer is searched";
  }
  if (s.subject == Subject::gemm_reduce_scatter && s.config.combine != Combine::dispenser) {
    return "gemm_reduce_scatter has a dispenser only";
  }
  if (s.fault_rank >= s.ranks || s.fault_iteration >= s.iterations) {
    return "the fault lies outside the ranks and iterations";
  }
  const MachineSize size = Layer::size_of(s);
  if (size.devices * (size.components_per_device + 8) > kMostComponents) {
    return "too many threads for the machine's clocks";
  }
  return "";
}

Scenario draw_scenario(Subject subject, const Limits& limits, std::uint64_t seed,
                       std::uint64_t index) {
  Random random(seed, index);
  Scenario s;
  do {
    s = Scenario{};
    s.subject = subject;
    s.ranks = between(random, 1, limits.ranks);
    s.devices = random.below(2) == 0 ? s.ranks : between(random, 1, s.ranks);
    s.tokens_per_rank =
        between(random, 1, std::max(1, std::min(limits.tokens_per_rank, limits.tokens / s.ranks)));
    s.experts = between(random, std::min(2, limits.experts), limits.experts);
    s.topk = between(random, 1, std::min(limits.topk, s.experts));
    s.row_block = one_of(random, {2, 2, 2, 4, 4, 6});
    s.sms = between(random, 2, s.ranks > 2 ? 2 : 3);
    s.k_steps = between(random, 1, 2);
    s.block_group = between(random, 1, 2);
    s.job_groups = random.below(4) == 0 ? 3 : between(random, 1, 2);
    if (subject == Subject::gemm_reduce_scatter) {
      s.push_rows = between(random, 1, kMostPushRows);
    }
    s.iterations = between(random, 1, limits.iterations);
    s.routing_seed = random.next() >> 32;
    draw_knobs(s, random);
    if (subject == Subject::gemm_reduce_scatter) {
      s.config.combine = Combine::dispenser;
    }
    draw_fault(s, random);
  } while (!why_illegal(s).empty());
  if (may_push_tokens(s) && random.below(2) == 0) {
    s.config.dispatch = Dispatch::push;
  }
  return s;
}

std::string to_string(const Scenario& s) {
  const Scenario base;
  std::string text =
      s.subject == base.subject ? "" : fmt::format("subject={} ", to_string(s.subject));
  for (const Field& field : kFields) {
    const bool always = field.member == &Scenario::ranks || field.member == &Scenario::devices ||
                        field.member == &Scenario::tokens_per_rank ||
                        field.member == &Scenario::experts || field.member == &Scenario::topk ||
                        field.member == &Scenario::iterations;
    if (always || s.*field.member != base.*field.member) {
      text += fmt::format("{}={} ", field.name, s.*field.member);
    }
  }
  text += fmt::format("routing_seed={}", s.routing_seed);
  if (s.fault != Fault::none) {
    text += fmt::format(" fault={}", to_string(s.fault));
  }
  if (const std::string knobs = describe(s.config, base_config()); knobs != "defaults") {
    text += " " + knobs;
  }
  return text;
}

Scenario parse_scenario(const std::string& text, const std::string& option) {
  Scenario s;
  s.config = base_config();
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    const auto field = std::find_if(kFields.begin(), kFields.end(),
                                    [&](const Field& each) { return each.name == name; });
    if (field != kFields.end()) {
      s.*field->member = parse_number(value, *field, option);
    } else if (name == "routing_seed") {
      const auto parsed =
          std::from_chars(value.data(), value.data() + value.size(), s.routing_seed);
      if (parsed.ec != std::errc{} || parsed.ptr != value.data() + value.size()) {
        throw InputError({option, name, fmt::format("\"{}\" is not a seed", value), "a number"});
      }
    } else if (name == "subject") {
      s.subject = parse_subject(value, option);
    } else if (name == "fault") {
      const auto fault = std::find(kFaults.begin(), kFaults.end(), value);
      if (fault == kFaults.end()) {
        throw InputError({option, name, fmt::format("unknown fault \"{}\"", value),
                          spoken_list({kFaults.begin(), kFaults.end()})});
      }
      s.fault = static_cast<Fault>(fault - kFaults.begin());
    } else {
      set_knob_text(s.config, word, option);
    }
  }
  if (const std::string why = why_illegal(s); !why.empty()) {
    throw InputError({option, "", why, "a scenario as a search prints it"});
  }
  return s;
}

}  // namespace fusescope::protocol
