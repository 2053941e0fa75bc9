// Blocks of the final reduce.

#include <algorithm>
#include <utility>

#include "timeline/records/rank_events.hpp"

namespace fusescope::timeline {
namespace {

using Moment = RankEvents::Moment;

struct SeenSender {
  int sender = 0;
  int chunk = 0;
  std::int64_t begin_ns = 0;
  std::int64_t seen_ns = 0;
};

struct SummedChunk {
  int chunk = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

class ReduceBlock {
 public:
  ReduceBlock(RankEvents& events, int block) : events_(events), block_(block) {
    for (int sender = 0; sender < events.wiring().ranks; ++sender) {
      read(sender);
    }
  }

  void decode() {
    // Chunk after chunk; of a chunk the senders in the order in which they were seen.
    std::stable_sort(seen_.begin(), seen_.end(), [](const SeenSender& a, const SeenSender& b) {
      return std::pair(a.chunk, a.seen_ns) < std::pair(b.chunk, b.seen_ns);
    });
    std::int64_t now = INT64_MIN;
    auto wait = seen_.begin();
    const auto waits_until = [&](int chunk) {
      for (; wait != seen_.end() && wait->chunk <= chunk; ++wait) {
        const std::int64_t begin = std::max(now, wait->begin_ns);
        if (wait->seen_ns > begin) {
          add(Kind::reduce_wait, begin, wait->seen_ns,
              {.index = wait->chunk, .peer = wait->sender});
          now = wait->seen_ns;
        }
      }
    };
    for (const SummedChunk& sum : summed_) {
      waits_until(sum.chunk);
      const std::int64_t begin = std::max(now, sum.begin_ns);
      now = std::max(begin, sum.end_ns);
      add(Kind::reduce, begin, now, {.index = sum.chunk});
    }
    waits_until(INT32_MAX);
  }

 private:
  void read(int writer) {
    Moment wait;
    Moment sum;
    const auto lose = [&](const Moment& moment) {
      if (moment.point != Point::none) {
        events_.lose(Family::reduce, block_, writer, moment);
      }
    };
    for (const Moment& moment : events_.moments(Family::reduce, block_, writer)) {
      const bool of_chunk = moment.b < events_.wiring().watermark_chunks;
      if (moment.point == Point::watermark_wait_begin && of_chunk && moment.a == writer) {
        lose(std::exchange(wait, moment));
      } else if (moment.point == Point::watermark_seen && wait.point != Point::none &&
                 moment.b == wait.b) {
        seen_.push_back({writer, moment.b, std::exchange(wait, {}).ns, moment.ns});
      } else if (moment.point == Point::reduce_begin && of_chunk) {
        lose(std::exchange(sum, moment));
      } else if (moment.point == Point::reduce_end && sum.point != Point::none &&
                 moment.b == sum.b) {
        summed_.push_back({moment.b, std::exchange(sum, {}).ns, moment.ns});
      } else {
        lose(moment);
      }
    }
    lose(wait);
    lose(sum);
  }

  void add(Kind kind, std::int64_t begin_ns, std::int64_t end_ns, const EventArguments& arguments) {
    events_.add(Stage::final_reduce, Role::reduce, block_, 0, kind, begin_ns, end_ns, arguments);
  }

  RankEvents& events_;
  int block_;
  std::vector<SeenSender> seen_;
  std::vector<SummedChunk> summed_;
};

}  // namespace

void decode_reduce(RankEvents& events) {
  const FamilyLayout& at = events.source().layout[Family::reduce];
  for (int block = 0; block < static_cast<int>(at.blocks); ++block) {
    ReduceBlock(events, block).decode();
  }
}

}  // namespace fusescope::timeline
