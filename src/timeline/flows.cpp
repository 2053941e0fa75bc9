#include "timeline/flows.hpp"

#include <map>
#include <utility>

namespace fusescope::timeline {
namespace {

constexpr auto kNone = Dependencies::kNone;
using EventId = Dependencies::EventId;

class FlowFinder {
 public:
  explicit FlowFinder(const Dependencies& dependencies) : dependencies_(dependencies) {}

  std::vector<Flow> find() {
    const std::size_t events = dependencies_.timeline().events.size();
    for (EventId id = 0; id < events; ++id) {
      switch (dependencies_.event(id).kind) {
        case Kind::gate_wait:
          follow_gate(id);
          break;
        case Kind::activation_wait:
          follow_activations(id);
          break;
        case Kind::ready_wait:
          follow_job(id);
          break;
        case Kind::reduce_wait:
          choose_reduce(id);
          break;
        default:
          break;
      }
    }
    for (const auto& [raised, wait] : last_reduce_) {
      follow_watermark(raised, wait);
    }
    return std::move(flows_);
  }

 private:
  const Event& event(EventId id) const { return dependencies_.event(id); }

  // The cause of a wait, if the wait lasted until it had ended.
  EventId binding_cause(EventId wait) const {
    const EventId cause = dependencies_.cause(wait);
    const bool binds = cause != kNone && event(wait).begin_ns < event(wait).end_ns &&
                       event(cause).end_ns >= event(wait).begin_ns;
    return binds ? cause : kNone;
  }

  EventId of_same_token(EventId id, Kind kind) const {
    return dependencies_.of_token(dependencies_.rank_of(id), kind, event(id).token);
  }

  // The next event of a kind on this one's track.
  EventId next(EventId id, Kind kind) const {
    const auto range = dependencies_.events_of_track(event(id).track);
    for (EventId later = id + 1; later < range.last; ++later) {
      if (event(later).kind == kind) {
        return later;
      }
    }
    return kNone;
  }

  void follow_gate(EventId wait) {
    if (const EventId arrive = binding_cause(wait); arrive != kNone) {
      add("opens gate", wait,
          {{of_same_token(arrive, Kind::pull)},
           {arrive},
           {wait, true},
           {next(wait, Kind::mainloop)}});
    }
  }

  void follow_activations(EventId wait) {
    if (const EventId epilogue = binding_cause(wait); epilogue != kNone) {
      add("activates rows", wait, {{epilogue}, {wait, true}, {next(wait, Kind::mainloop)}});
    }
  }

  void follow_job(EventId wait) {
    if (const EventId epilogue = binding_cause(wait); epilogue != kNone) {
      add("makes job ready", wait, {{epilogue}, {wait, true}, {of_same_token(wait, Kind::push)}});
    }
  }

  // Every block of the final reduce waits for every watermark: the arrow goes to the one that
  // reduced last.
  void choose_reduce(EventId wait) {
    const EventId raised = binding_cause(wait);
    if (raised == kNone) {
      return;
    }
    const EventId reduce = next(wait, Kind::reduce);
    const auto [chosen, first] = last_reduce_.try_emplace(raised, wait);
    if (!first && reduce != kNone) {
      const EventId other = next(chosen->second, Kind::reduce);
      if (other == kNone || event(reduce).end_ns > event(other).end_ns) {
        chosen->second = wait;
      }
    }
  }

  void follow_watermark(EventId raised, EventId wait) {
    const EventId elected = dependencies_.previous_on_track(raised);
    const EventId push = elected == kNone ? kNone : of_same_token(elected, Kind::push);
    add("raises watermark", wait, {{push}, {raised}, {wait, true}, {next(wait, Kind::reduce)}});
  }

  std::int64_t time(const FlowStep& step) const {
    return step.at_end ? event(step.event).end_ns : event(step.event).begin_ns;
  }

  // Keeps the steps that exist and follow in time. On two tracks, "follow" means later: viewers do
  // not know the order of two events at the same nanosecond.
  void add(std::string_view name, EventId wait, std::vector<FlowStep> chain) {
    Flow flow{name, {}};
    bool crosses = false;
    for (const FlowStep& step : chain) {
      if (step.event == kNone) {
        continue;
      }
      while (!flow.steps.empty() && !follows(flow.steps.back(), step)) {
        flow.steps.pop_back();
      }
      flow.steps.push_back(step);
    }
    for (const FlowStep& step : flow.steps) {
      crosses = crosses || event(step.event).track != event(wait).track;
    }
    if (crosses && flow.steps.size() >= 2) {
      flows_.push_back(std::move(flow));
    }
  }

  bool follows(const FlowStep& first, const FlowStep& second) const {
    const bool same_track = event(first.event).track == event(second.event).track;
    return time(first) < time(second) || (same_track && time(first) == time(second));
  }

  const Dependencies& dependencies_;
  std::map<EventId, EventId> last_reduce_;  // watermark -> reduce_wait
  std::vector<Flow> flows_;
};

}  // namespace

std::vector<Flow> find_flows(const Dependencies& dependencies) {
  return FlowFinder(dependencies).find();
}

}  // namespace fusescope::timeline
