#include "engine/sim/recorder.hpp"

#include <algorithm>

namespace fusescope::engine::sim {

TrackId Recorder::add_track(int rank, Stage stage, Role role, int block, int lane) {
  if (!on_) {
    return kNoTrack;
  }
  tracks_.push_back({rank, rank, stage, role, block, lane});
  return static_cast<TrackId>(tracks_.size() - 1);
}

void Recorder::keep(TrackId track, Kind kind, Time begin, Time end, const Args& args) {
  timeline::Event event;
  event.begin_ns = begin;
  event.end_ns = end;
  event.track = track;
  event.token = args.token;
  event.row_block = args.row_block;
  event.index = args.index;
  event.peer = static_cast<std::int16_t>(args.peer);
  event.kind = kind;
  events_.push_back(event);
}

void Recorder::finish(timeline::Timeline& timeline) {
  std::vector<std::size_t> place(tracks_.size() + 1, 0);
  for (const timeline::Event& event : events_) {
    ++place[event.track + 1];
  }
  for (std::size_t track = 1; track < place.size(); ++track) {
    place[track] += place[track - 1];
  }
  timeline.events.resize(events_.size());
  for (const timeline::Event& event : events_) {
    timeline.events[place[event.track]++] = event;
  }
  timeline.tracks = std::move(tracks_);
  events_.clear();
}

namespace {

// A staircase that goes up by one at each of `times`.
timeline::Counter staircase(const char* name, const char* unit, int rank,
                            std::vector<std::int64_t> times) {
  timeline::Counter counter{name, unit, rank, {0}, {0.0}};
  std::sort(times.begin(), times.end());
  for (std::size_t i = 0; i < times.size(); ++i) {
    counter.time_ns.push_back(times[i]);
    counter.value.push_back(static_cast<double>(i + 1));
  }
  return counter;
}

// Bytes per bin of a transfer's slice, as a rate. A slow link makes wide bins, not many.
class RateCounter {
 public:
  RateCounter(std::int64_t end_ns, double row_bytes)
      : row_bytes_(row_bytes),
        bin_ns_(std::max(kNarrowest, end_ns / kMostBins + 1)),
        bins_(static_cast<std::size_t>(end_ns / bin_ns_ + 1), 0.0) {}

  void add(const timeline::Event& event) {
    const double rate = row_bytes_ / static_cast<double>(event.end_ns - event.begin_ns);
    for (std::int64_t at = event.begin_ns; at < event.end_ns;) {
      const std::int64_t bin = at / bin_ns_;
      const std::int64_t until = std::min((bin + 1) * bin_ns_, event.end_ns);
      bins_[static_cast<std::size_t>(bin)] +=
          rate * static_cast<double>(until - at) / static_cast<double>(bin_ns_);
      at = until;
    }
  }

  timeline::Counter finish(const char* name, int rank) const {
    timeline::Counter counter{name, "GB/s", rank, {}, {}};
    for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
      counter.time_ns.push_back(static_cast<std::int64_t>(bin) * bin_ns_);
      counter.value.push_back(bins_[bin]);
    }
    return counter;
  }

 private:
  static constexpr std::int64_t kNarrowest = 10'000;  // [ns]
  static constexpr std::int64_t kMostBins = 2000;
  double row_bytes_;
  std::int64_t bin_ns_;
  std::vector<double> bins_;
};

}  // namespace

void add_counters(timeline::Timeline& timeline, double row_bytes) {
  const int ranks = timeline.wiring.ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<std::int32_t>& hit_row_block = timeline.wiring.hit_row_block[rank];
    const int topk = timeline.wiring.topk;
    // A row block opens with the last arrival among its tokens.
    std::vector<std::int64_t> opened(timeline.wiring.expert_of_row_block[rank].size(), -1);
    std::vector<std::int64_t> jobs;
    RateCounter pulled(timeline.end_ns, row_bytes);
    RateCounter pushed(timeline.end_ns, row_bytes);
    for (const timeline::Event& event : timeline.events) {
      if (timeline.tracks[event.track].rank != rank) {
        continue;
      }
      if (event.kind == Kind::arrive) {
        for (int k = 0; k < topk; ++k) {
          std::int64_t& last = opened[static_cast<std::size_t>(
              hit_row_block[static_cast<std::size_t>(event.token) * topk + k])];
          last = std::max(last, event.end_ns);
        }
      } else if (event.kind == Kind::elect) {
        jobs.push_back(event.end_ns);
      } else if (event.kind == Kind::pull && event.peer != rank) {
        pulled.add(event);
      } else if (event.kind == Kind::push && event.peer != rank) {
        pushed.add(event);
      }
    }
    std::erase(opened, -1);
    timeline.counters.push_back(staircase("row blocks open", "row blocks", rank, opened));
    timeline.counters.push_back(staircase("jobs done", "jobs", rank, jobs));
    timeline.counters.push_back(pulled.finish("pulled from peers", rank));
    timeline.counters.push_back(pushed.finish("pushed to peers", rank));
  }
}

}  // namespace fusescope::engine::sim
