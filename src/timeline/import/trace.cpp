#include "timeline/import/trace.hpp"

#include <algorithm>

namespace fusescope::timeline {
namespace {

template <typename Slice>
void sort_by_begin(std::vector<Slice>& slices) {
  const auto before = [](const Slice& a, const Slice& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  };
  if (!std::is_sorted(slices.begin(), slices.end(), before)) {
    std::stable_sort(slices.begin(), slices.end(), before);
  }
}

}  // namespace

void sort_slices(Trace& trace) {
  sort_by_begin(trace.gpu);
  sort_by_begin(trace.host);
}

}  // namespace fusescope::timeline
