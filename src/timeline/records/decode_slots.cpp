// Token slots of the communication role.

#include "timeline/records/rank_events.hpp"

namespace fusescope::timeline {
namespace {

using Moment = RankEvents::Moment;

void decode_slot(RankEvents& events, int block, int slot) {
  const bool shared = events.source().fetches_first;
  const Role role = shared ? Role::compute : Role::communication;
  const int lane = shared ? kFirstFreeLane + slot : slot;
  const auto add = [&](Kind kind, const Moment& begin, const Moment& end) {
    EventArguments arguments{.token = end.a};
    if (kind == Kind::pull) {
      const RankRecords& source = events.source();
      arguments.peer = source.tokens_pushed ? source.rank : events.source_rank(end.a);
    }
    events.add(Stage::dispatch_gemm, role, block, lane, kind, begin.ns, end.ns, arguments);
  };
  // Each point of a token belongs to the one before it.
  Moment last;
  for (const Moment& moment : events.moments(Family::dispatch_slots, block, slot)) {
    const bool goes_on = moment.a == last.a && events.is_token(moment.a);
    if (moment.point == Point::pull_issued) {
      if (last.point != Point::none && last.point != Point::counted) {
        events.lose(Family::dispatch_slots, block, slot, last);
      }
    } else if (goes_on && moment.point == Point::pull_landed && last.point == Point::pull_issued) {
      add(Kind::pull, last, moment);
    } else if (goes_on && moment.point == Point::scattered && last.point == Point::pull_landed) {
      add(Kind::scatter, last, moment);
    } else if (goes_on && moment.point == Point::counted && last.point == Point::scattered) {
      add(Kind::arrive, last, moment);
    } else {
      events.lose(Family::dispatch_slots, block, slot, moment);
    }
    last = moment;
  }
  if (last.point != Point::none && last.point != Point::counted) {
    events.lose(Family::dispatch_slots, block, slot, last);
  }
}

}  // namespace

void decode_slots(RankEvents& events) {
  const FamilyLayout& at = events.source().layout[Family::dispatch_slots];
  for (int block = 0; block < static_cast<int>(at.blocks); ++block) {
    for (int slot = 0; slot < static_cast<int>(at.writers_per_block); ++slot) {
      decode_slot(events, block, slot);
    }
  }
}

}  // namespace fusescope::timeline
