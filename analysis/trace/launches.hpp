#pragma once
// Which call on which thread launched a slice, by correlation id.

#include <cstdint>
#include <utility>
#include <vector>

#include "timeline/import/trace.hpp"

namespace fusescope::analysis {

class Launches {
 public:
  explicit Launches(const timeline::Trace& trace);

  // The call that launched the slice, or nullptr.
  const timeline::HostSlice* of(const timeline::GpuSlice& slice) const;
  bool empty() const { return calls_.empty(); }

 private:
  struct Key {
    std::int64_t process;
    std::int64_t correlation;
    std::uint32_t call;
  };
  const timeline::Trace& trace_;
  std::vector<Key> calls_;  // by process and correlation
};

}  // namespace fusescope::analysis
