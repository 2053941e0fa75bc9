#include "analysis/trace/launches.hpp"

#include <algorithm>
#include <tuple>

namespace fusescope::analysis {

using timeline::HostKind;
using timeline::HostSlice;

Launches::Launches(const timeline::Trace& trace) : trace_(trace) {
  // PyTorch traces are of one process, whose queues carry process 0.
  const bool one_process =
      std::all_of(trace.queues.begin(), trace.queues.end(),
                  [](const timeline::Queue& queue) { return queue.process == 0; });
  for (std::uint32_t i = 0; i < trace.host.size(); ++i) {
    const HostSlice& slice = trace.host[i];
    if (slice.kind == HostKind::call && slice.correlation != timeline::kNoCorrelation) {
      calls_.push_back(
          {one_process ? 0 : trace.threads[slice.thread].process, slice.correlation, i});
    }
  }
  std::sort(calls_.begin(), calls_.end(), [](const Key& a, const Key& b) {
    return std::tie(a.process, a.correlation, a.call) < std::tie(b.process, b.correlation, b.call);
  });
}

const HostSlice* Launches::of(const timeline::GpuSlice& slice) const {
  if (slice.correlation == timeline::kNoCorrelation) {
    return nullptr;
  }
  const std::int64_t process = trace_.queues[slice.queue].process;
  const auto found =
      std::lower_bound(calls_.begin(), calls_.end(), std::pair(process, slice.correlation),
                       [](const Key& key, const std::pair<std::int64_t, std::int64_t>& wanted) {
                         return std::pair(key.process, key.correlation) < wanted;
                       });
  if (found == calls_.end() || found->process != process ||
      found->correlation != slice.correlation) {
    return nullptr;
  }
  return &trace_.host[found->call];
}

}  // namespace fusescope::analysis
