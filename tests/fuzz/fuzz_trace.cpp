// One input through reader and attribution: an InputError or an attribution that adds up, nothing else.
//   fuzz_kineto CORPUS -dict=tests/fuzz/kineto.dict -max_len=65536
//   fuzz_nsys   CORPUS -max_len=131072

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "analysis/trace/attribution.hpp"
#include "base/error.hpp"
#include "timeline/import/read_trace.hpp"

namespace {

void attribute(const fusescope::timeline::Trace& trace, const char* rules_name) {
  using namespace fusescope::analysis;
  static const Rules kDefault = load_rules("default");
  static const Rules kHta = load_rules("hta");
  const Rules& rules = *rules_name == 'h' ? kHta : kDefault;
  const TraceAttribution attribution = attribute_traces({&trace, 1}, rules);
  for (const DeviceAttribution& device : attribution.devices) {
    if (const std::string failure = check_closing(device); !failure.empty()) {
      std::fprintf(stderr, "%s rules: %s\n", rules_name, failure.c_str());
      std::abort();
    }
  }
  if (to_json(attribution, {&trace, 1}, 10).empty()) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto trace =
        fusescope::timeline::read_trace("input", reinterpret_cast<const char*>(data), size);
    attribute(trace, "default");
    attribute(trace, "hta");
  } catch (const fusescope::InputError&) {
    return 0;
  }
  return 0;
}
