#include "kernels/guard.hpp"

#include <fmt/format.h>

namespace fusescope::kernels {
namespace {

std::string subject(const Diagnosis& d) {
  switch (d.what) {
    case Wait::ids:
      return fmt::format("the ids of rank {}", d.index);
    case Wait::barrier:
      return fmt::format("rank {} to arrive at the device barrier", d.index);
    case Wait::start:
      return fmt::format("rank {} to arrive at the start line", d.index);
    case Wait::pull:
      return fmt::format("the row of token {} to land (bulk copy)", d.index);
    case Wait::gate:
      return fmt::format("row block {} to be filled (arrival counter)", d.index);
    case Wait::begun:
      return "kernel 1 to begin";
    case Wait::computed:
      return fmt::format("row block {} of the gate/up GEMM (computed counter)", d.index);
    case Wait::ready:
      return fmt::format("row block {} of the down GEMM (done counter)", d.index);
    case Wait::residency:
      return fmt::format(
          "the GEMM's {} blocks to be resident (beside the jobs' stream: is "
          "CUDA_DEVICE_MAX_CONNECTIONS 1?)",
          d.index);
    case Wait::watermark:
      return fmt::format("the watermark of sending rank {}", d.index);
    case Wait::clock:
      return fmt::format("the end of an injected delay or of an emulated transfer{} [ns]",
                         d.index < 0 ? "" : fmt::format(" of token {}", d.index));
  }
  return "an unknown condition";
}

}  // namespace

std::string to_string(const Diagnosis& d) {
  return fmt::format("rank {} block {}: waited {:.1f} ms for {}: expected {}, seen {}", d.rank,
                     d.block, static_cast<double>(d.waited_ns) / 1e6, subject(d), d.expected,
                     d.seen);
}

}  // namespace fusescope::kernels
