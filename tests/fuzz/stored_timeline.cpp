#include <numeric>
#include <string>

#include "analysis/summary.hpp"
#include "base/error.hpp"
#include "targets.hpp"
#include "timeline/gzip.hpp"
#include "timeline/store.hpp"

namespace fusescope::fuzz {
namespace {

template <typename Parts>
std::int64_t sum(const Parts& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
}

void check_attribution(const timeline::Timeline& timeline) {
  const analysis::Attribution attribution = analysis::attribute(timeline);
  require(!analysis::to_json(attribution, timeline).empty(), "an attribution is JSON");
  if (!attribution.refusal.empty()) {
    return;
  }
  require(sum(attribution.path.by_step) == timeline.wall_ns(), "the path sums to the wall");
  for (const analysis::RankAccounting& rank : attribution.accounting.ranks) {
    require(sum(rank.by_use) == rank.area_ns, "the accounting sums to the area");
    require(rank.area_ns == timeline.meta.sms * timeline.wall_ns(), "the area is SMs x wall");
  }
  for (const analysis::GateBlame& gate : attribution.accounting.gates) {
    require(sum(gate.ns_by_blame) == gate.wait_ns, "the blames sum to the gate's wait");
  }
}

}  // namespace

bool stored_timeline(std::string_view input) {
  // Unpacked inputs are what the fuzzer can change to a purpose.
  const bool packed = input.starts_with("\x1f\x8b");
  const std::string bytes = packed ? std::string(input) : timeline::gzip(input);
  try {
    const timeline::Timeline timeline = timeline::decode_timeline(bytes, "input");
    const std::string stored = timeline::encode_timeline(timeline);
    require(timeline::encode_timeline(timeline::decode_timeline(stored, "stored")) == stored,
            "a timeline survives its file");
    if (timeline::check(timeline).empty()) {
      check_attribution(timeline);
    }
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace fusescope::fuzz
