#include "timeline/collect/nvtx.hpp"

#include <nvtx3/nvToolsExt.h>

#include <array>

namespace fusescope::timeline {
namespace {

// Named once, at the first range: whoever wants to listen is there by then.
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t kDomain = [] {
    const nvtxDomainHandle_t made = nvtxDomainCreateA("fusescope");
    constexpr std::array kNames = {"run", "iteration", "step", "check"};
    for (std::uint32_t level = 0; level < kNames.size(); ++level) {
      nvtxDomainNameCategoryA(made, level + 1, kNames[level]);
    }
    return made;
  }();
  return kDomain;
}

constexpr std::uint32_t colour(RangeLevel level) {
  constexpr std::array<std::uint32_t, 4> kColours = {0xff808080, 0xff4477aa, 0xff228833,
                                                     0xffccbb44};
  return kColours[static_cast<std::uint32_t>(level) - 1];
}

}  // namespace

NvtxRange::NvtxRange(RangeLevel level, const char* name, std::int64_t payload) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.category = static_cast<std::uint32_t>(level);
  attributes.colorType = NVTX_COLOR_ARGB;
  attributes.color = colour(level);
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  attributes.payload.llValue = payload;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  nvtxDomainRangePushEx(domain(), &attributes);
}

NvtxRange::~NvtxRange() {
  nvtxDomainRangePop(domain());
}

}  // namespace fusescope::timeline
