#pragma once
// The clocks of several devices on one: from exchanges ("pings") between pairs of devices at the start
// and at the end of a run, with a bound on what is left of their difference.
//
// Where the bound comes from. A timer that steps by `step` shows the largest multiple of it that has
// passed. The remote clock was read after the request left and before the answer was there, so that
//
//     answered - received - step  <  offset (remote - local)  <  answered - sent + step
//
// whatever the two ways took: nothing is assumed about their being equally long. Every ping of a
// batch gives such an interval, and the offset lies in all of them; the pings with the shortest
// round trips make the intersection narrow. Within a batch a clock may run away by kMostDrift, which
// widens the intervals of pings far from the batch's middle.
//
// Between the batches the offset is interpolated. The one assumption is that it changes steadily: then
// the bound of the worse batch holds for all of the time between.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "timeline/collect/clock_pings.hpp"

namespace fusescope::timeline {

inline constexpr double kMostDrift = 100e-6;  // of one clock against another; crystals keep 50e-6

// The exchanges of one pair. `local` and `remote` are numbers of devices.
struct ClockPings {
  int local = 0;
  int remote = 0;
  std::vector<ClockPing> start;
  std::vector<ClockPing>
      end;  // empty: the offset of the start holds throughout, and the bound grows
            // by kMostDrift over `longest_ns`
};

// From a device's clock to the reference clock: a line over the run.
class ClockLine {
 public:
  ClockLine() = default;
  // At `at_ns` of the device's clock the reference clock shows at_ns - base_ns - offset_ns.
  ClockLine(std::uint64_t at_ns, std::int64_t base_ns, double offset_ns, double drift)
      : at_ns_(at_ns), base_ns_(base_ns), offset_ns_(offset_ns), drift_(drift) {}

  // To the nearest nanosecond.
  std::int64_t to_reference(std::uint64_t ns) const;
  // Device minus reference, at that time of the device's clock. [ns]
  double offset_ns(std::uint64_t ns) const;
  std::uint64_t at_ns() const { return at_ns_; }
  double drift() const { return drift_; }  // of the device against the reference; 1e-6 = 1 ppm
  // From this device's clock through the clock in between to that one's reference.
  ClockLine then(const ClockLine& next) const;

 private:
  std::uint64_t at_ns_ = 0;
  std::int64_t base_ns_ = 0;  // the bulk of the offset, exact
  double offset_ns_ = 0;
  double drift_ = 0;
};

struct ClockAlignment {
  std::vector<ClockLine> devices;  // by number; device 0 is the reference
  // Of each device against the reference: offset known to +- that, what reading the two timers costs
  // not included.
  std::vector<double> bounds_ns;
  double step_ns = 0;
  // Two events of any two devices: how wrong their difference may be. Both bounds' part of the way
  // through the tree, one step for the reading, and 1 ns for rounding.
  double bound_ns = 0;
};

// `step_ns`: the larger of the devices' timer steps, as measured. `longest_ns`: see ClockPings::end.
// A pair's best way to the reference goes through the pairs whose bounds add up to the least.
// Throws CheckFailure when the pings of a batch contradict each other (a clock jumped, or runs away
// faster than kMostDrift), InputError when a device is not connected to device 0 by any pair, or a pair
// has no ping at the start.
ClockAlignment align_clocks(int devices, std::span<const ClockPings> pairs, double step_ns,
                            double longest_ns = 0);

// "clocks of 2 devices aligned to +-0.62 us (timer step 32 ns); device 1 -37.10 us (drift +0.40 ppm)"
std::string describe(const ClockAlignment& alignment);

}  // namespace fusescope::timeline
