#pragma once
// A constraint of a sweep: an expression over a config, the device and the shape that must hold.
//
//   dispatch_comm_sms + 32 <= device.sms
//   tokens_per_block * shape.hidden * 2 <= device.smem_per_block
//   combine == "dispenser" or not all_hands
//
// Names: every knob; device.sms, .smem_per_block, and device.wgmma: the config's GEMMs multiply with wgmma
// there; shape.ranks, .tokens_per_rank, .tokens, .hidden, .experts, .topk, .intermediate. Operators, loosest
// first: or, and, not, comparisons (== != < <= > >=), + -, * / %, unary -. Strings stand in single or double
// quotes. Names and types are checked when the text is parsed, so that a config never meets a malformed
// constraint.

#include <memory>
#include <string>

#include "layer/problem.hpp"

namespace fusescope::sweep {

class Constraint {
 public:
  // `file` and `place` (a JSON path) name where the text stands. Throws InputError with the column
  // and what was expected there.
  Constraint(const std::string& text, const std::string& file, const std::string& place);

  // Throws InputError on a division by zero.
  bool holds(const Config& config, const DeviceLimits& device, const Shape& shape) const;
  const std::string& text() const { return text_; }

  struct Node;

 private:
  std::string text_;
  std::string file_;
  std::string place_;
  std::shared_ptr<const Node> root_;
};

}  // namespace fusescope::sweep
