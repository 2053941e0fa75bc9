#include "analysis/link_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <tuple>

#include "analysis/findings.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Event;
using timeline::Kind;
using timeline::Timeline;
using timeline::Track;

// Ranks are in convoy if their rows spend this part of their time in one ...
constexpr double kConvoy = 0.25;
// ... and it is the link that holds them up if a row takes so much longer there than elsewhere. Few SMs that
// communicate go in convoy too, but load no link enough to notice.
constexpr double kHeldUp = 1.25;
// Below this part of the rows, what goes alone is the first and the last ones, and no measure of the others.
constexpr double kComparable = 0.01;
// Convoys too short to be named, of the span.
constexpr double kNamed = 0.05;

struct Transfer {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::size_t rank = 0;  // whose link is shared
};

// Every rank on a GPU of its own, and so many that two others may use one link.
bool links_are_shared(const Timeline& timeline) {
  const int ranks = timeline.wiring.ranks;
  std::set<int> with_gpu;
  std::set<int> gpus;
  for (const Track& track : timeline.tracks) {
    if (with_gpu.insert(track.rank).second) {
      gpus.insert(track.device);
    }
  }
  return ranks >= 3 && gpus.size() == static_cast<std::size_t>(ranks) &&
         with_gpu.size() == gpus.size();
}

std::vector<Transfer> transfers(const Timeline& timeline, Kind kind) {
  std::vector<Transfer> found;
  for (const Event& event : timeline.events) {
    const int rank = timeline.tracks[event.track].rank;
    if (event.kind == kind && event.peer >= 0 && event.peer < timeline.wiring.ranks &&
        event.peer != rank && event.end_ns > event.begin_ns) {
      found.push_back({event.begin_ns, event.end_ns, static_cast<std::size_t>(event.peer)});
    }
  }
  return found;
}

void add_load(const Transfer& row, const LinkLoad& load, std::vector<double>& slices) {
  const double width = static_cast<double>(load.end_ns - load.begin_ns) / kLoadSlices;
  const double from = static_cast<double>(row.begin_ns - load.begin_ns) / width;
  const double to = static_cast<double>(row.end_ns - load.begin_ns) / width;
  for (int slice = static_cast<int>(from); slice < kLoadSlices && slice < to; ++slice) {
    slices[static_cast<std::size_t>(slice)] +=
        std::min<double>(to, slice + 1) - std::max<double>(from, slice);
  }
}

// Goes through the span in time; knows at each moment which rank has most of the rows.
class Sweep {
 public:
  explicit Sweep(std::size_t ranks) : on_the_way_(ranks), convoy_ns_(ranks), moment_(ranks) {}

  void advance(std::int64_t to_ns) {
    const std::int64_t passed = to_ns - now_ns_;
    const auto most = static_cast<std::size_t>(
        std::max_element(on_the_way_.begin(), on_the_way_.end()) - on_the_way_.begin());
    if (2 * on_the_way_[most] > all_) {
      convoy_ns_[most] += passed;
      moment_[most] += static_cast<double>(passed) *
                       (static_cast<double>(now_ns_) + static_cast<double>(passed) / 2);
    }
    now_ns_ = to_ns;
  }
  void put(std::size_t rank, int rows) {
    on_the_way_[rank] += rows;
    all_ += rows;
  }
  std::int64_t convoy_ns(std::size_t rank) const { return convoy_ns_[rank]; }
  double middle_ns(std::size_t rank) const {
    return moment_[rank] / static_cast<double>(std::max<std::int64_t>(1, convoy_ns_[rank]));
  }

 private:
  std::vector<std::int64_t> on_the_way_;
  std::vector<std::int64_t> convoy_ns_;
  std::vector<double> moment_;
  std::int64_t all_ = 0;
  std::int64_t now_ns_ = 0;
};

// The knob link_gbps: each pair of ranks has a line of its own, and no link is shared. In a convoy every rank
// has one of its lines at work, and the others idle.
bool is_emulated(const Timeline& timeline) {
  return timeline.meta.config.find("link_gbps=") != std::string::npos;
}

// The ranks of the convoy in its order.
std::vector<std::size_t> convoy_order(const LinkLoad& load, const Sweep& sweep) {
  std::vector<std::size_t> order;
  for (std::size_t rank = 0; rank < load.ranks.size(); ++rank) {
    if (static_cast<double>(load.ranks[rank].convoy_ns) >=
        kNamed * static_cast<double>(load.end_ns - load.begin_ns)) {
      order.push_back(rank);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sweep.middle_ns(a) < sweep.middle_ns(b);
  });
  return order;
}

std::string bottleneck_of(int rank, bool pulls, bool emulated) {
  if (emulated) {
    return fmt::format("the emulated lines {} rank {} are a bottleneck", pulls ? "from" : "to",
                       rank);
  }
  return fmt::format("the {} of rank {} is a bottleneck", pulls ? "egress" : "ingress", rank);
}

void conclude(LinkLoad& load, Kind kind, bool emulated, const std::vector<std::size_t>& order) {
  const bool pulls = kind == Kind::pull;
  std::int64_t row_ns = 0;
  std::int64_t convoy_row_ns = 0;
  for (const LinkEnd& end : load.ranks) {
    row_ns += end.row_ns;
    convoy_row_ns += end.convoy_row_ns;
  }
  const double share = static_cast<double>(convoy_row_ns) / static_cast<double>(row_ns);
  if (share < kConvoy) {
    load.statement = fmt::format(
        "Rows {} all ranks at once: in {} of their time more than half of those on the way {} one "
        "rank",
        pulls ? "come from" : "go to", spoken_share(share), pulls ? "came from" : "went to");
    return;
  }
  std::string places;
  for (const std::size_t rank : order) {
    places += fmt::format("{}rank {} for {}", places.empty() ? "" : ", ", rank,
                          spoken_us(load.ranks[rank].convoy_ns));
  }
  const std::string span = spoken_us(load.end_ns - load.begin_ns);
  std::string convoy =
      order.empty()
          ? fmt::format("ranks {} in convoys that take less than {} of {} each",
                        pulls ? "pull" : "push", spoken_share(kNamed), span)
          : fmt::format("ranks {} in convoy, more than half of all rows on the way {} {} of {}",
                        pulls ? "pull" : "push", pulls ? "from" : "to", places, span);
  const double rows = static_cast<double>(load.convoy_rows + load.other_rows);
  const bool comparable = static_cast<double>(load.other_rows) >= kComparable * rows;
  if (comparable && load.convoy_mean_ns >= kHeldUp * load.other_mean_ns) {
    const auto worst = std::max_element(
        load.ranks.begin(), load.ranks.end(),
        [](const LinkEnd& a, const LinkEnd& b) { return a.convoy_row_ns < b.convoy_row_ns; });
    load.bottleneck = static_cast<int>(worst - load.ranks.begin());
    convoy = bottleneck_of(load.bottleneck, pulls, emulated) + ": " + convoy;
  }
  convoy.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(convoy.front())));
  load.statement = convoy + (comparable ? fmt::format("; a row then takes {}, else {}",
                                                      spoken_us(std::llround(load.convoy_mean_ns)),
                                                      spoken_us(std::llround(load.other_mean_ns)))
                                        : "; too few rows go alone to say what that costs");
}

}  // namespace

LinkLoad link_load(const timeline::Dependencies& dependencies, Kind kind) {
  const Timeline& timeline = dependencies.timeline();
  LinkLoad load;
  if (!links_are_shared(timeline)) {
    return load;
  }
  const std::vector<Transfer> rows = transfers(timeline, kind);
  if (rows.empty()) {
    return load;
  }
  struct Point {
    std::int64_t at_ns;
    int change;
    std::size_t row;
  };
  std::vector<Point> points;
  points.reserve(2 * rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    points.push_back({rows[row].begin_ns, 1, row});
    points.push_back({rows[row].end_ns, -1, row});
  }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::tuple(a.at_ns, a.change, a.row) < std::tuple(b.at_ns, b.change, b.row);
  });
  load.begin_ns = points.front().at_ns;
  load.end_ns = points.back().at_ns;
  load.ranks.resize(static_cast<std::size_t>(timeline.wiring.ranks));
  for (LinkEnd& end : load.ranks) {
    end.load.assign(kLoadSlices, 0);
  }

  Sweep sweep(load.ranks.size());
  std::vector<std::int64_t> before(rows.size());
  std::int64_t convoy_ns = 0;
  std::int64_t other_ns = 0;
  for (const Point& point : points) {
    const Transfer& row = rows[point.row];
    sweep.advance(point.at_ns);
    sweep.put(row.rank, point.change);
    if (point.change > 0) {
      before[point.row] = sweep.convoy_ns(row.rank);
      continue;
    }
    const std::int64_t took = row.end_ns - row.begin_ns;
    const std::int64_t in_convoy = sweep.convoy_ns(row.rank) - before[point.row];
    LinkEnd& end = load.ranks[row.rank];
    ++end.rows;
    end.row_ns += took;
    end.convoy_row_ns += in_convoy;
    (2 * in_convoy > took ? load.convoy_rows : load.other_rows) += 1;
    (2 * in_convoy > took ? convoy_ns : other_ns) += took;
    add_load(row, load, end.load);
  }
  for (std::size_t rank = 0; rank < load.ranks.size(); ++rank) {
    load.ranks[rank].convoy_ns = sweep.convoy_ns(rank);
  }
  const auto mean = [](std::int64_t ns, std::int64_t count) {
    return count > 0 ? static_cast<double>(ns) / static_cast<double>(count) : 0;
  };
  load.convoy_mean_ns = mean(convoy_ns, load.convoy_rows);
  load.other_mean_ns = mean(other_ns, load.other_rows);
  conclude(load, kind, is_emulated(timeline), convoy_order(load, sweep));
  return load;
}

}  // namespace fusescope::analysis
