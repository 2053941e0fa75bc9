#include "engine/cuda/projection/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "engine/cuda/gemm_variant.hpp"
#include "layer/gemm_path.hpp"
#include "layer/row_tiles.hpp"

namespace fusescope::engine::cuda::projection {
namespace {

struct Knob {
  const char* name;
  const char* meaning;
  const char* accepted;
  std::string (*get)(const Config&);
  bool (*set)(Config&, const std::string&);  // false: not one of the accepted
};

// What is refused changes nothing.
bool to_int(const std::string& text, int& value) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc{} || parsed.ptr != end) {
    return false;
  }
  value = number;
  return true;
}

std::string bool_name(bool value) {
  return value ? "true" : "false";
}

bool to_bool(const std::string& text, bool& value) {
  if (text != "true" && text != "false") {
    return false;
  }
  value = text == "true";
  return true;
}

// An enumeration's names in the order of its values, from 0.
template <class Enum, std::size_t Count>
bool to_enum(const std::string& text, const std::array<const char*, Count>& names, Enum& value) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    return false;
  }
  value = static_cast<Enum>(found - names.begin());
  return true;
}
template <class Enum, std::size_t Count>
std::string enum_name(const std::array<const char*, Count>& names, Enum value) {
  return names.at(static_cast<std::size_t>(value));
}

constexpr std::array kForms = {"fused", "serial"};
constexpr std::array kOrders = {"rotate_from_self", "by_rank"};
constexpr std::array kTiles = {"auto", "m128n128", "m128n256"};
constexpr std::array kPaths = {"auto", "wgmma", "mma", "mma_small"};
constexpr std::array kCollectives = {"auto", "nccl", "peer_copies"};

const std::vector<Knob>& knobs() {
  using Text = const std::string&;
  static const std::vector<Knob> all = {
      {"form", "one kernel, or GEMM and then reduce-scatter", "fused or serial",
       [](const Config& c) { return enum_name(kForms, c.form); },
       [](Config& c, Text t) { return to_enum(t, kForms, c.form); }},
      {"row_order", "whose rows a rank computes and pushes first", "rotate_from_self or by_rank",
       [](const Config& c) { return enum_name(kOrders, c.row_order); },
       [](Config& c, Text t) { return to_enum(t, kOrders, c.row_order); }},
      {"push_sms", "SMs that push from the start; the rest compute", "a number",
       [](const Config& c) { return std::to_string(c.push_sms); },
       [](Config& c, Text t) { return to_int(t, c.push_sms); }},
      {"pushers", "threads of a block that push, each with a buffer", "a number",
       [](const Config& c) { return std::to_string(c.pushers); },
       [](Config& c, Text t) { return to_int(t, c.pushers); }},
      {"rows_per_push", "rows that one push moves; 0 = as many as fit, at most 8", "a number",
       [](const Config& c) { return std::to_string(c.rows_per_push); },
       [](Config& c, Text t) { return to_int(t, c.rows_per_push); }},
      {"all_hands", "compute blocks push once their tiles are done", "true or false",
       [](const Config& c) { return bool_name(c.all_hands); },
       [](Config& c, Text t) { return to_bool(t, c.all_hands); }},
      {"watermark_chunks", "watermarks of a plane", "a number",
       [](const Config& c) { return std::to_string(c.watermark_chunks); },
       [](Config& c, Text t) { return to_int(t, c.watermark_chunks); }},
      {"tile", "the GEMM's tile; auto is the widest that runs", "auto, m128n128 or m128n256",
       [](const Config& c) { return enum_name(kTiles, c.tile); },
       [](Config& c, Text t) { return to_enum(t, kTiles, c.tile); }},
      {"gemm", "the GEMM's instructions, as the layer's knob", "auto, wgmma, mma or mma_small",
       [](const Config& c) { return enum_name(kPaths, c.gemm); },
       [](Config& c, Text t) { return to_enum(t, kPaths, c.gemm); }},
      {"collectives", "who reduces for the serial form", "auto, nccl or peer_copies",
       [](const Config& c) { return enum_name(kCollectives, c.collectives); },
       [](Config& c, Text t) { return to_enum(t, kCollectives, c.collectives); }},
      {"graph", "an iteration is one CUDA graph per device", "true or false",
       [](const Config& c) { return bool_name(c.graph); },
       [](Config& c, Text t) { return to_bool(t, c.graph); }},
  };
  return all;
}

std::string bad_shape(const Shape& s) {
  if (s.ranks < 1 || s.ranks > kernels::kMaxRanks) {
    return fmt::format("{} ranks: from 1 to {}", s.ranks, kernels::kMaxRanks);
  }
  if (s.tokens_per_rank < 1 || s.hidden < 1 || s.depth < 1) {
    return fmt::format("T={} H={} K={}: each must be 1 or more", s.tokens_per_rank, s.hidden,
                       s.depth);
  }
  constexpr long long kMostRows = 1 << 24;
  if (static_cast<long long>(s.ranks) * s.tokens_per_rank > kMostRows) {
    return fmt::format("{} x {} tokens: at most {}", s.ranks, s.tokens_per_rank, kMostRows);
  }
  if (s.depth % s.ranks != 0) {
    return fmt::format("K={} does not divide into {} ranks", s.depth, s.ranks);
  }
  constexpr int kMostDepth = 48 * 1024;
  if (s.rank_depth() > kMostDepth) {
    return fmt::format("K/R={}: the reference keeps a row of at most {} in shared memory",
                       s.rank_depth(), kMostDepth);
  }
  return "";
}

}  // namespace

std::string describe(const Shape& s) {
  return fmt::format("R={} T={} H={} K={}", s.ranks, s.tokens_per_rank, s.hidden, s.depth);
}

std::string describe(const Config& config) {
  std::string text;
  const Config usual;
  for (const Knob& knob : knobs()) {
    if (knob.get(config) != knob.get(usual)) {
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", knob.name, knob.get(config));
    }
  }
  return text;
}

std::vector<std::string> knob_help() {
  std::vector<std::string> lines;
  const Config usual;
  for (const Knob& knob : knobs()) {
    lines.push_back(fmt::format("{:<17} {} ({}; default {})", knob.name, knob.meaning,
                                knob.accepted, knob.get(usual)));
  }
  return lines;
}

void set_knob_text(Config& config, const std::string& assignment, const std::string& option) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos) {
    throw InputError({option, "", fmt::format("\"{}\" is not an assignment", assignment),
                      "KNOB=VALUE, such as push_sms=8"});
  }
  const std::string name = assignment.substr(0, equals);
  const std::string text = assignment.substr(equals + 1);
  std::vector<std::string> names;
  for (const Knob& knob : knobs()) {
    if (knob.name == name) {
      if (!knob.set(config, text)) {
        throw InputError({option, name, fmt::format("\"{}\"", text), knob.accepted});
      }
      return;
    }
    names.emplace_back(knob.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw InputError({option, "", fmt::format("there is no knob \"{}\"", name),
                    nearest.empty() ? spoken_list(names) : nearest});
}

int rows_of_push(const Shape& shape, const Config& config) {
  if (config.rows_per_push > 0) {
    return config.rows_per_push;
  }
  // Longer pushes take fewer fences and counts for as many bytes under way; too long, and the last ones
  // leave most pushers without work.
  constexpr long long kMostRows = 8;
  const long long room = kernels::bytes_for_pushes(variant_of(config)) -
                         kernels::push_bytes(config.pushers, 0, shape.hidden);
  return static_cast<int>(std::clamp(room / (2LL * shape.hidden * config.pushers), 1LL, kMostRows));
}

RowOrder row_order(const Config& config) {
  return config.form == LayerForm::serial ? RowOrder::by_rank : config.row_order;
}

Config with_gemm_chosen(Config config, const DeviceLimits& device) {
  fusescope::Config layer;
  layer.gemm = config.gemm;
  layer.tile = config.tile;
  layer = fusescope::with_gemm_chosen(layer, device);
  config.gemm = layer.gemm;
  config.tile = layer.tile;
  return config;
}

kernels::GemmVariant variant_of(const Config& config) {
  const DeviceLimits roomy{"", 1, kLargeGemmBytes};
  const Config chosen = with_gemm_chosen(config, roomy);
  return gemm_variant(chosen.gemm, chosen.tile, kernels::Epilogue::kStore);
}

std::string why_illegal(const Shape& shape, const Config& wanted, const DeviceLimits& device) {
  if (std::string why = bad_shape(shape); !why.empty()) {
    return why;
  }
  const Config config = with_gemm_chosen(wanted, device);
  fusescope::Config layer;
  layer.gemm = wanted.gemm;
  layer.tile = wanted.tile;
  if (row_grouping(config.tile).row_step > 0) {
    return fmt::format(
        "tile {} is built for the layer's kernels alone (auto, m128n128 or m128n256)",
        tile_text(config.tile));
  }
  if (std::string why = why_no_gemm(layer, device); !why.empty()) {
    return why;
  }
  const kernels::GemmVariant variant = variant_of(config);
  kernels::GroupedGemmDesc desc;
  desc.rows_capacity = static_cast<std::int64_t>(shape.row_blocks()) * kernels::kBlockRows;
  desc.n = shape.hidden;
  desc.k = shape.rank_depth();
  desc.experts = 1;
  if (std::string why = why_unsupported(desc, variant); !why.empty()) {
    return "GEMM of K/R: " + why;
  }
  if (shared_bytes(variant) > device.smem_per_block) {
    return fmt::format("the GEMM's tile needs {} bytes of shared memory, a block has {}",
                       shared_bytes(variant), device.smem_per_block);
  }
  if (config.form == LayerForm::serial) {
    return "";
  }
  if (config.push_sms < 0 || config.push_sms >= device.sms) {
    return fmt::format("push_sms {} leaves no compute SM on a {}-SM device", config.push_sms,
                       device.sms);
  }
  if (config.push_sms == 0 && !config.all_hands && shape.ranks > 1) {
    return "push_sms 0 without all_hands: nobody would push";
  }
  if (const int threads = gemm_threads(variant); config.pushers < 1 || config.pushers > threads) {
    return fmt::format("pushers {}: from 1 to the {} threads of a block", config.pushers, threads);
  }
  if (config.rows_per_push < 0 || config.rows_per_push > kernels::kBlockRows) {
    return fmt::format("rows_per_push {}: from 1 to {}, or 0 for as many as fit",
                       config.rows_per_push, kernels::kBlockRows);
  }
  if (config.watermark_chunks < 1 || config.watermark_chunks > kernels::kMaxWatermarkChunks) {
    return fmt::format("watermark_chunks {}: from 1 to the {} flags that a plane has",
                       config.watermark_chunks, kernels::kMaxWatermarkChunks);
  }
  const int rows = rows_of_push(shape, config);
  const long long bytes = kernels::push_bytes(config.pushers, rows, shape.hidden);
  if (bytes > kernels::bytes_for_pushes(variant)) {
    return fmt::format(
        "{} pushers of {} rows need {} bytes of shared memory at H={}, and the GEMM leaves {}",
        config.pushers, rows, bytes, shape.hidden, kernels::bytes_for_pushes(variant));
  }
  return "";
}

}  // namespace fusescope::engine::cuda::projection
