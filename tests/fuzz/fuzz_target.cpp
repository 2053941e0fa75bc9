// libFuzzer's entry to the target that the build names; what leaves it ends the program.
//   fuzz_sweep_json corpus/sweep_json -dict=sweep_json.dict -max_len=16384

#include <cstddef>
#include <cstdint>

#include "targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fusescope::fuzz::FUSESCOPE_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
