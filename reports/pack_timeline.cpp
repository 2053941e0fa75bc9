#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "reports/format.hpp"
#include "reports/page_data.hpp"
#include "reports/palette.hpp"

namespace fusescope::reports {

namespace {

using nlohmann::json;
using timeline::Event;
using timeline::Kind;

class Bytes {
 public:
  void put(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }
  void put_signed(std::int64_t value) {
    put((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  const std::string& str() const { return bytes_; }

 private:
  std::string bytes_;
};

// Places of the events in (track, begin, longer first) order; a caller's timeline may be unsorted.
std::vector<std::uint32_t> order_of(const timeline::Timeline& timeline) {
  std::vector<std::uint32_t> order(timeline.events.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Event& x = timeline.events[a];
    const Event& y = timeline.events[b];
    return std::tuple(x.track, x.begin_ns, -x.end_ns) < std::tuple(y.track, y.begin_ns, -y.end_ns);
  });
  return order;
}

// A gate's blame is found by what the accounting knows of the wait: rank, block, begin.
using GateKey = std::tuple<int, int, std::int64_t>;
std::map<GateKey, const analysis::GateBlame*> gates_by_key(const analysis::Accounting& accounting) {
  std::map<GateKey, const analysis::GateBlame*> gates;
  for (const analysis::GateBlame& gate : accounting.gates) {
    gates.emplace(GateKey{gate.rank, gate.block, gate.begin_ns}, &gate);
  }
  return gates;
}

json names_of_kinds() {
  json kinds = json::array();
  for (int i = 0; i < timeline::kKinds; ++i) {
    const auto kind = static_cast<Kind>(i);
    const bool wait = kind == Kind::gate_wait || kind == Kind::activation_wait ||
                      kind == Kind::ready_wait || kind == Kind::reduce_wait ||
                      kind == Kind::barrier;
    kinds.push_back({{"name", timeline::name(kind)}, {"color", color(kind).slug}, {"wait", wait}});
  }
  return kinds;
}

json names_of_steps() {
  json steps = json::array();
  for (int i = 0; i < analysis::kSteps; ++i) {
    const auto step = static_cast<analysis::Step>(i);
    steps.push_back({{"name", analysis::name(step)}, {"color", color(step).slug}});
  }
  return steps;
}

json tracks_of(const timeline::Timeline& timeline, const std::vector<std::uint32_t>& counts) {
  json tracks = json::array();
  for (std::size_t i = 0; i < timeline.tracks.size(); ++i) {
    const timeline::Track& track = timeline.tracks[i];
    tracks.push_back({track.rank, static_cast<int>(track.stage), static_cast<int>(track.role),
                      track.block, track.lane, counts[i]});
  }
  return tracks;
}

json experts_of(const timeline::Timeline& timeline) {
  json experts = json::array();
  for (const auto& of_rank : timeline.wiring.expert_of_row_block) {
    experts.push_back(of_rank);
  }
  return experts;
}

}  // namespace

PackedTimeline pack(const ChosenRun& run) {
  const timeline::Timeline& timeline = run.timeline;
  const std::vector<std::uint32_t> order = order_of(timeline);
  std::vector<std::uint32_t> place(order.size());
  std::vector<std::uint32_t> counts(timeline.tracks.size());
  std::map<std::string, Bytes> columns;
  const auto gates = gates_by_key(run.attribution.accounting);

  const Event* before = nullptr;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Event& event = timeline.events[order[i]];
    place[order[i]] = static_cast<std::uint32_t>(i);
    ++counts[event.track];
    const bool first = before == nullptr || before->track != event.track;
    static constexpr Event kNone{};
    const Event& last = first ? kNone : *before;
    columns["begin"].put_signed(event.begin_ns - (first ? timeline.begin_ns : last.begin_ns));
    columns["duration"].put(
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, event.end_ns - event.begin_ns)));
    columns["kind"].put(static_cast<std::uint64_t>(event.kind));
    columns["token"].put_signed(event.token - last.token);
    columns["row_block"].put_signed(event.row_block - last.row_block);
    columns["index"].put_signed(event.index - last.index);
    columns["peer"].put(static_cast<std::uint64_t>(event.peer + 1));
    if (event.kind == Kind::gate_wait) {
      const timeline::Track& track = timeline.tracks[event.track];
      const auto gate = gates.find({track.rank, track.block, event.begin_ns});
      const bool known = gate != gates.end();
      columns["gate_token"].put(known ? static_cast<std::uint64_t>(gate->second->last_token + 1)
                                      : 0);
      columns["gate_source"].put(known ? static_cast<std::uint64_t>(gate->second->source_rank + 1)
                                       : 0);
      columns["gate_blame"].put(known ? static_cast<std::uint64_t>(gate->second->blame) + 1 : 0);
    }
    before = &event;
  }
  for (const analysis::Segment& segment : run.attribution.path.segments) {
    columns["path_duration"].put(static_cast<std::uint64_t>(segment.end_ns - segment.begin_ns));
    columns["path_step"].put(static_cast<std::uint64_t>(segment.step));
    columns["path_event"].put(segment.event < place.size() ? place[segment.event] + 1ULL : 0);
  }

  std::string bytes;
  json lengths = json::object();
  for (const auto& [name, column] : columns) {
    lengths[name] = {bytes.size(), column.str().size()};
    bytes += column.str();
  }
  json blames = json::array();
  for (int i = 0; i < analysis::kBlames; ++i) {
    blames.push_back(analysis::name(static_cast<analysis::Blame>(i)));
  }
  const json head = {{"wall", timeline.wall_ns()},
                     {"events", order.size()},
                     {"segments", run.attribution.path.segments.size()},
                     {"tokens_per_rank", timeline.wiring.tokens_per_rank},
                     {"columns", lengths},
                     {"kinds", names_of_kinds()},
                     {"steps", names_of_steps()},
                     {"blames", blames},
                     {"experts", experts_of(timeline)},
                     {"tracks", tracks_of(timeline, counts)}};
  return {head.dump(), base64(bytes)};
}

}  // namespace fusescope::reports
