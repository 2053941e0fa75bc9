#include "engine/cuda/cupti_comparison.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/cuda/record_memory.hpp"
#include "kernels/clock_ping.hpp"
#include "timeline/collect/clock_alignment.hpp"

namespace fusescope::engine::cuda {
namespace {

using timeline::Activity;
using timeline::ActivitySlice;
using timeline::Family;
using timeline::Phase;

struct Named {
  std::string_view kernel;
  Phase phase;
  std::vector<Family> families;  // whose records its blocks write
};
// Phases of one kernel each. CUPTI's names are demangled.
const std::vector<Named>& kernels_compared() {
  static const std::vector<Named> kKernels = {
      {"ids_exchange_kernel", Phase::ids_exchange, {}},
      {"copy_in_kernel", Phase::copy_in, {}},
      {"dispatch_gemm_kernel",
       Phase::dispatch_gemm,
       {Family::dispatch_tiles, Family::dispatch_slots}},
      {"gemm_combine_push_kernel",
       Phase::gemm_combine_push,
       {Family::combine_tiles, Family::combine_jobs, Family::combine_joined}},
      {"final_reduce_kernel", Phase::final_reduce, {Family::reduce}}};
  return kKernels;
}

// The stamps are one thread's of each block. Others begin before it or end after it: kernel 2 ends with
// the watermark that its last pusher raises, microseconds after the thread that stamps has left.
timeline::PhaseStamp what_it_wrote(const Named& kernel, const RankTape& tape,
                                   const timeline::RecordLayout& layout) {
  timeline::PhaseStamp span = tape.phases[static_cast<std::size_t>(kernel.phase)];
  for (const Family family : kernel.families) {
    const timeline::FamilyLayout& at = layout[family];
    const std::uint64_t count =
        std::uint64_t{at.blocks} * at.writers_per_block * std::uint64_t{at.capacity};
    for (std::uint64_t i = at.first_record; i < at.first_record + count; ++i) {
      const timeline::Record& record = tape.records[i];
      if (record.point != timeline::Point::none) {
        span.begin_ns = std::min(span.begin_ns, record.ns);
        span.end_ns = std::max(span.end_ns, record.ns);
      }
    }
  }
  return span;
}

// By device in use: CUPTI's clock against the device's.
std::vector<std::vector<timeline::ClockPing>> ping_cupti(LayerRunner& runner,
                                                         timeline::CuptiActivity& cupti) {
  std::vector<std::vector<std::uint64_t>> stamps;
  for (const Device& device : runner.devices()) {
    stamps.push_back(kernels::stamp_clock(device.index));
  }
  const Activity activity = cupti.collect();
  std::vector<std::vector<timeline::ClockPing>> pings;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    pings.push_back(stamp_pings(activity, runner.devices()[i].index, stamps[i]));
  }
  return pings;
}

}  // namespace

std::vector<KernelBoundaries> compare_with_cupti(LayerRunner& runner,
                                                 timeline::CuptiActivity& cupti) {
  cupti.collect();
  const auto before = ping_cupti(runner, cupti);
  runner.run_recorded();
  const Activity activity = cupti.collect();
  const auto after = ping_cupti(runner, cupti);

  std::vector<KernelBoundaries> found;
  for (std::size_t i = 0; i < runner.devices().size(); ++i) {
    const int device = runner.devices()[i].index;
    timeline::ClockPings pair;
    pair.local = 0;
    pair.remote = 1;
    pair.start = before[i];
    pair.end = after[i];
    const auto step = static_cast<double>(kernels::measure_timer_step(device));
    const timeline::ClockAlignment clocks = timeline::align_clocks(2, {&pair, 1}, step);
    int rank = 0;
    while (runner.memory().rank(rank).device != device) {
      ++rank;
    }
    const RankTape tape = runner.records().read(rank);
    for (const Named& named : kernels_compared()) {
      const auto slice = std::find_if(
          activity.slices.begin(), activity.slices.end(), [&](const ActivitySlice& one) {
            return one.what == ActivitySlice::What::kernel && one.device == device &&
                   one.name.find(named.kernel) != std::string::npos;
          });
      const timeline::PhaseStamp& stamp = tape.phases[static_cast<std::size_t>(named.phase)];
      if (slice == activity.slices.end() || stamp.end_ns == 0) {
        continue;
      }
      const timeline::PhaseStamp wrote = what_it_wrote(named, tape, runner.records().layout(rank));
      const auto off = [&](std::uint64_t inside, std::uint64_t outside) {
        return static_cast<double>(clocks.devices[1].to_reference(inside) -
                                   static_cast<std::int64_t>(outside));
      };
      found.push_back({device, std::string(named.kernel), off(wrote.begin_ns, slice->begin_ns),
                       off(wrote.end_ns, slice->end_ns), off(stamp.end_ns, slice->end_ns),
                       clocks.bound_ns});
    }
  }
  return found;
}

}  // namespace fusescope::engine::cuda
