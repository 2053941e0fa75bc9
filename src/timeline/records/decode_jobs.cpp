// Jobs of kernel 2: of each warpgroup, what its front, its summing warps and its pusher wrote down.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "timeline/records/rank_events.hpp"

namespace fusescope::timeline {
namespace {

using Moment = RankEvents::Moment;

// Position of each token in job order.
std::vector<int> positions(const RankEvents& events) {
  const auto order = events.source().job_order;
  std::vector<int> positions(static_cast<std::size_t>(events.tokens()));
  for (std::size_t token = 0; token < positions.size(); ++token) {
    positions[token] = static_cast<int>(token);
  }
  for (std::size_t position = 0; position < order.size(); ++position) {
    if (events.is_token(order[position])) {
      positions[static_cast<std::size_t>(order[position])] = static_cast<int>(position);
    }
  }
  return positions;
}

class JobGroup {
 public:
  JobGroup(RankEvents& events, const std::vector<int>& positions, Family family, int block,
           int group)
      : events_(events),
        positions_(positions),
        family_(family),
        block_(block),
        group_(group),
        single_(events.source().block_per_job) {}

  void decode() {
    decode_front();
    decode_summer();
    decode_pusher();
  }

 private:
  int front() const { return group_ * static_cast<int>(kJobWriters) + static_cast<int>(kFront); }
  int summer() const { return group_ * static_cast<int>(kJobWriters) + static_cast<int>(kSummer); }
  int pusher() const { return group_ * static_cast<int>(kJobWriters) + static_cast<int>(kPusher); }
  int claim_lane() const { return single_ ? 0 : kFirstFreeLane + kLanesPerJobGroup * group_; }
  int sum_lane() const { return single_ ? 0 : claim_lane() + 1; }
  int push_lane() const { return single_ ? 0 : claim_lane() + 2 + pushes_ % kPushLanes; }
  int position(int token) const { return positions_[static_cast<std::size_t>(token)]; }

  std::optional<int> token_at(int position) const {
    if (!events_.is_token(position)) {  // as many positions as tokens
      return std::nullopt;
    }
    const auto order = events_.source().job_order;
    const int token = order.empty() ? position : order[static_cast<std::size_t>(position)];
    return events_.is_token(token) ? std::optional(token) : std::nullopt;
  }

  void lose(int writer, const Moment& moment) {
    if (moment.point != Point::none) {
      events_.lose(family_, block_, writer, moment);
    }
  }

  void decode_front() {
    Moment begun;
    for (const Moment& moment : events_.moments(family_, block_, front())) {
      switch (moment.point) {
        case Point::claim_begin:
        case Point::ready_wait_begin:
          lose(front(), std::exchange(begun, moment));
          continue;
        case Point::claimed:
          if (begun.point == Point::claim_begin) {
            add_claim(std::exchange(begun, {}), moment);
            continue;
          }
          break;
        case Point::ready:
          if (begun.point == Point::ready_wait_begin && begun.a == moment.a &&
              events_.is_token(moment.a)) {
            add_ready(std::exchange(begun, {}), moment);
            continue;
          }
          break;
        default:
          break;
      }
      lose(front(), moment);
    }
    lose(front(), begun);
  }

  void add_claim(const Moment& begin, const Moment& end) {
    if (const auto token = token_at(end.a)) {  // else no job was left
      add(claim_lane(), Kind::claim, begin.ns, end.ns, {.token = *token, .index = end.a});
    }
  }

  void add_ready(const Moment& begin, const Moment& end) {
    if (end.ns > begin.ns) {
      add(claim_lane(), Kind::ready_wait, begin.ns, end.ns,
          {.token = end.a, .index = position(end.a)});
    }
    ready_[end.a] = end.ns;
  }

  void decode_summer() {
    Moment fetched;
    Moment begun;
    for (const Moment& moment : events_.moments(family_, block_, summer())) {
      switch (moment.point) {
        case Point::fetched:
          lose(summer(), std::exchange(fetched, moment));
          continue;
        case Point::sum_begin:
          lose(summer(), std::exchange(begun, moment));
          continue;
        case Point::summed:
          if (begun.point == Point::sum_begin && begun.a == moment.a &&
              events_.is_token(moment.a)) {
            add_sum(std::exchange(fetched, {}), std::exchange(begun, {}), moment);
            continue;
          }
          break;
        default:
          break;
      }
      lose(summer(), moment);
    }
    lose(summer(), fetched);
    lose(summer(), begun);
  }

  // A sum includes the fetch of its rows, as far as nothing else was under way: it begins when its row
  // blocks are ready and the sum before has ended. But where it waited for a buffer at last, it begins
  // when the pusher gave that back.
  void add_sum(const Moment& fetched, const Moment& begin, const Moment& end) {
    constexpr std::int64_t kAtOnce = 100;  // [ns] three steps of the timer
    std::int64_t from = begin.ns;
    const auto ready = ready_.find(end.a);
    if (ready != ready_.end() && fetched.point == Point::fetched && fetched.a == end.a &&
        begin.ns - fetched.ns <= kAtOnce) {
      from = std::min(begin.ns, std::max(ready->second, last_summed_));
    }
    add(sum_lane(), Kind::sum, from, end.ns, {.token = end.a, .index = position(end.a)});
    summed_[end.a] = end.ns;
    last_summed_ = end.ns;
  }

  // The pusher goes on when all threads have summed, and may look at its clock before the front does.
  std::int64_t push_begin(const Moment& issued) const {
    const auto summed = summed_.find(issued.a);
    return summed == summed_.end() ? issued.ns : std::max(issued.ns, summed->second);
  }

  // A push is complete after the next one has been issued: at most two are under way.
  void decode_pusher() {
    std::vector<std::pair<Moment, int>> issued;  // with the lane
    Moment pushed;
    Moment raising;
    int lane = push_lane();  // of the push that is being counted
    for (const Moment& moment : events_.moments(family_, block_, pusher())) {
      if (moment.point == Point::push_issued && events_.is_token(moment.a)) {
        issued.emplace_back(moment, push_lane());
        ++pushes_;
        continue;
      }
      if (moment.point == Point::pushed) {
        const auto found = std::find_if(issued.begin(), issued.end(),
                                        [&](const auto& push) { return push.first.a == moment.a; });
        if (found != issued.end()) {
          lane = found->second;
          add(lane, Kind::push, push_begin(found->first), moment.ns, job_arguments(moment.a));
          issued.erase(found);
          lose(pusher(), std::exchange(pushed, moment));
          continue;
        }
      } else if (moment.point == Point::push_counted && pushed.point != Point::none &&
                 pushed.a == moment.a) {
        add(lane, Kind::elect, pushed.ns, moment.ns, job_arguments(moment.a));
        pushed = {};
        continue;
      } else if (moment.point == Point::watermark_begin) {
        lose(pusher(), std::exchange(raising, moment));
        continue;
      } else if (moment.point == Point::watermark_raised && raising.point != Point::none &&
                 raising.a == moment.a && raising.b == moment.b) {
        add(lane, Kind::watermark, raising.ns, moment.ns, {.index = moment.b, .peer = moment.a});
        raising = {};
        continue;
      }
      lose(pusher(), moment);
    }
    for (const auto& [push, of_lane] : issued) {
      lose(pusher(), push);
    }
    lose(pusher(), pushed);
    lose(pusher(), raising);
  }

  EventArguments job_arguments(int token) const {
    return {.token = token, .index = position(token), .peer = events_.source_rank(token)};
  }

  void add(int lane, Kind kind, std::int64_t begin, std::int64_t end,
           const EventArguments& arguments) {
    const Role role = family_ == Family::combine_joined ? Role::compute : Role::communication;
    events_.add(Stage::gemm_combine_push, role, block_, lane, kind, begin, end, arguments);
  }

  RankEvents& events_;
  const std::vector<int>& positions_;
  Family family_;
  int block_;
  int group_;
  bool single_;
  int pushes_ = 0;
  std::map<int, std::int64_t> ready_;   // by token: when its row blocks were
  std::map<int, std::int64_t> summed_;  // by token: when its sum ended
  std::int64_t last_summed_ = 0;
};

}  // namespace

void decode_jobs(RankEvents& events, Family family) {
  const FamilyLayout& at = events.source().layout[family];
  const std::vector<int> position_of = positions(events);
  const int groups = static_cast<int>(at.writers_per_block / kJobWriters);
  for (int block = 0; block < static_cast<int>(at.blocks); ++block) {
    for (int group = 0; group < groups; ++group) {
      JobGroup(events, position_of, family, block, group).decode();
    }
  }
}

}  // namespace fusescope::timeline
