#include "timeline/collect/clock_alignment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace fusescope::timeline {
namespace {

std::int64_t difference(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a - b);
}

// Remote minus local at one time of the local clock: base + offset, +- bound.
struct Offset {
  std::uint64_t local_ns = 0;
  std::int64_t base_ns = 0;
  double offset_ns = 0;
  double bound_ns = 0;

  std::uint64_t remote_ns() const {
    return local_ns + static_cast<std::uint64_t>(base_ns + std::llround(offset_ns));
  }
};

Offset intersect(const std::vector<ClockPing>& pings, double step_ns, const std::string& pair) {
  Offset result;
  const std::int64_t length = difference(pings.back().received_ns, pings.front().sent_ns);
  result.local_ns = pings.front().sent_ns + static_cast<std::uint64_t>(length / 2);
  result.base_ns = difference(pings.front().answered_ns, pings.front().sent_ns);
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  for (const ClockPing& ping : pings) {
    const auto sent = static_cast<double>(difference(ping.sent_ns, result.local_ns));
    const auto received = static_cast<double>(difference(ping.received_ns, result.local_ns));
    const auto answered = static_cast<double>(
        difference(ping.answered_ns, result.local_ns + static_cast<std::uint64_t>(result.base_ns)));
    if (received < sent) {
      throw CheckFailure(fmt::format("{}: an answer came {} ns before its request was sent", pair,
                                     sent - received));
    }
    const double slack = step_ns + kMostDrift * std::max(std::abs(sent), std::abs(received));
    low = std::max(low, answered - received - slack);
    high = std::min(high, answered - sent + slack);
  }
  if (low > high) {
    throw CheckFailure(
        fmt::format("{}: the pings contradict each other by {:.0f} ns: a clock jumped, or runs "
                    "away by more than "
                    "{:.0f} ppm",
                    pair, low - high, kMostDrift * 1e6));
  }
  result.offset_ns = (low + high) / 2;
  result.bound_ns = (high - low) / 2;
  return result;
}

// One pair: from the clock of `from` to that of `to`.
struct Edge {
  int from = 0;
  int to = 0;
  ClockLine line;
  double bound_ns = 0;
};

void add_edges(std::vector<Edge>& edges, const ClockPings& pair, double step_ns,
               double longest_ns) {
  const std::string name = fmt::format("clocks of devices {} and {}", pair.local, pair.remote);
  if (pair.start.empty()) {
    throw InputError({"", name, "no ping at the start", "at least one"});
  }
  const Offset start = intersect(pair.start, step_ns, name + ", start");
  double bound = start.bound_ns + kMostDrift * longest_ns;
  double change = 0;  // of remote minus local, from the start to the end
  double local_length = 1;
  double remote_length = 1;
  if (!pair.end.empty()) {
    const Offset end = intersect(pair.end, step_ns, name + ", end");
    change = static_cast<double>(end.base_ns - start.base_ns) + end.offset_ns - start.offset_ns;
    local_length = static_cast<double>(difference(end.local_ns, start.local_ns));
    remote_length = static_cast<double>(difference(end.remote_ns(), start.remote_ns()));
    if (local_length <= 0 || remote_length <= 0) {
      throw CheckFailure(name + ": the pings at the end were before those at the start");
    }
    bound = std::max(start.bound_ns, end.bound_ns);
  }
  edges.push_back(
      {pair.remote, pair.local,
       ClockLine(start.remote_ns(), start.base_ns, start.offset_ns, change / remote_length),
       bound});
  edges.push_back(
      {pair.local, pair.remote,
       ClockLine(start.local_ns, -start.base_ns, -start.offset_ns, -change / local_length), bound});
}

// The ways to device 0 whose bounds add up to the least.
class Tree {
 public:
  Tree(int devices, const std::vector<Edge>& edges)
      : bounds_(static_cast<std::size_t>(devices), std::numeric_limits<double>::infinity()),
        parents_(bounds_.size(), -1),
        lines_(bounds_.size()) {
    bounds_[0] = 0;
    std::vector<bool> settled(bounds_.size(), false);
    for (std::size_t round = 0; round < bounds_.size(); ++round) {
      std::size_t nearest = bounds_.size();
      for (std::size_t device = 0; device < bounds_.size(); ++device) {
        if (!settled[device] && std::isfinite(bounds_[device]) &&
            (nearest == bounds_.size() || bounds_[device] < bounds_[nearest])) {
          nearest = device;
        }
      }
      if (nearest == bounds_.size()) {
        const auto lost = std::find(settled.begin(), settled.end(), false) - settled.begin();
        throw InputError({"", fmt::format("clock of device {}", lost),
                          "no pings lead from it to device 0", "a pair for every device"});
      }
      settled[nearest] = true;
      for (const Edge& edge : edges) {
        const auto from = static_cast<std::size_t>(edge.from);
        const double bound = bounds_[nearest] + edge.bound_ns;
        if (static_cast<std::size_t>(edge.to) == nearest && bound < bounds_[from]) {
          bounds_[from] = bound;
          parents_[from] = static_cast<int>(nearest);
          lines_[from] = edge.line.then(lines_[nearest]);
        }
      }
    }
  }

  const std::vector<ClockLine>& lines() const { return lines_; }
  const std::vector<double>& bounds() const { return bounds_; }

  // The worst of any two devices.
  double diameter() const {
    double most = 0;
    for (std::size_t a = 0; a < bounds_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        most = std::max(most, bounds_[a] + bounds_[b] - 2 * bounds_[common(a, b)]);
      }
    }
    return most;
  }

 private:
  std::size_t common(std::size_t a, std::size_t b) const {
    std::vector<bool> above(bounds_.size(), false);
    for (int at = static_cast<int>(a); at >= 0; at = parents_[static_cast<std::size_t>(at)]) {
      above[static_cast<std::size_t>(at)] = true;
    }
    while (!above[b]) {
      b = static_cast<std::size_t>(parents_[b]);
    }
    return b;
  }

  std::vector<double> bounds_;
  std::vector<int> parents_;
  std::vector<ClockLine> lines_;
};

}  // namespace

double ClockLine::offset_ns(std::uint64_t ns) const {
  return static_cast<double>(base_ns_) + offset_ns_ +
         drift_ * static_cast<double>(difference(ns, at_ns_));
}

std::int64_t ClockLine::to_reference(std::uint64_t ns) const {
  const double rest = offset_ns_ + drift_ * static_cast<double>(difference(ns, at_ns_));
  return static_cast<std::int64_t>(ns) - base_ns_ - std::llround(rest);
}

ClockLine ClockLine::then(const ClockLine& next) const {
  const auto between = static_cast<std::uint64_t>(to_reference(at_ns_));
  const double rest =
      next.offset_ns_ + next.drift_ * static_cast<double>(difference(between, next.at_ns_));
  return {at_ns_, base_ns_ + next.base_ns_, offset_ns_ + rest, drift_ + next.drift_ * (1 - drift_)};
}

ClockAlignment align_clocks(int devices, std::span<const ClockPings> pairs, double step_ns,
                            double longest_ns) {
  std::vector<Edge> edges;
  for (const ClockPings& pair : pairs) {
    for (const int device : {pair.local, pair.remote}) {
      if (device < 0 || device >= devices) {
        throw InputError({"", fmt::format("clocks of devices {} and {}", pair.local, pair.remote),
                          fmt::format("there is no device {}", device),
                          fmt::format("0 to {}", devices - 1)});
      }
    }
    add_edges(edges, pair, step_ns, longest_ns);
  }
  ClockAlignment result;
  result.step_ns = step_ns;
  if (devices <= 0) {
    return result;
  }
  const Tree tree(devices, edges);
  result.devices = tree.lines();
  result.bounds_ns = tree.bounds();
  constexpr double kRoundingNs = 1;
  result.bound_ns = devices == 1 ? 0 : tree.diameter() + step_ns + kRoundingNs;
  return result;
}

std::string describe(const ClockAlignment& alignment) {
  std::string text = fmt::format("clocks of {} device{}", alignment.devices.size(),
                                 alignment.devices.size() == 1 ? "" : "s");
  if (alignment.devices.size() < 2) {
    return text + ": nothing to align";
  }
  text += fmt::format(" aligned to +-{:.2f} us (timer step {:.0f} ns)", alignment.bound_ns / 1e3,
                      alignment.step_ns);
  for (std::size_t device = 1; device < alignment.devices.size(); ++device) {
    const ClockLine& line = alignment.devices[device];
    text += fmt::format("{} device {} {:+.2f} us (drift {:+.2f} ppm)", device == 1 ? ";" : ",",
                        device, line.offset_ns(line.at_ns()) / 1e3, line.drift() * 1e6);
  }
  return text;
}

}  // namespace fusescope::timeline
