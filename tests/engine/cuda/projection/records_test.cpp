// What the third kernel's records mean, without a GPU: an iteration written down as its threads would,
// decoded, and held against the event contract.
#include "engine/cuda/projection/records.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "analysis/critical_path.hpp"

namespace fusescope::engine::cuda::projection {
namespace {

using timeline::Family;
using timeline::Phase;
using timeline::Point;

// One rank's buffers, filled as RecordWriter and the stamps fill them.
class Tape {
 public:
  explicit Tape(const timeline::RecordedWork& work)
      : layout_(lay_out_records(work)),
        records_(layout_.records),
        dropped_(layout_.writers),
        phases_(timeline::kPhases),
        used_(layout_.writers) {}

  void write(Family family, int block, std::uint32_t writer, std::uint64_t ns, Point point, int a,
             int b = 0) {
    const timeline::FamilyLayout& at = layout_[family];
    const std::uint32_t number = static_cast<std::uint32_t>(block) * at.writers_per_block + writer;
    std::uint32_t& used = used_[at.first_writer + number];
    ASSERT_LT(used, at.capacity);
    timeline::Record& record =
        records_[at.first_record + std::uint64_t{number} * at.capacity + used++];
    record.ns = ns;
    record.a = a;
    record.b = static_cast<std::uint16_t>(b);
    record.point = point;
  }
  void stamp(Phase phase, std::uint64_t begin_ns, std::uint64_t end_ns) {
    phases_[static_cast<std::size_t>(phase)] = {begin_ns, end_ns};
  }
  timeline::RankRecords of(int rank, const std::vector<std::int32_t>& order) const {
    timeline::RankRecords records;
    records.rank = rank;
    records.layout = layout_;
    records.records = records_;
    records.dropped = dropped_;
    records.phases = phases_;
    records.job_order = order;
    return records;
  }

 private:
  timeline::RecordLayout layout_;
  std::vector<timeline::Record> records_;
  std::vector<std::uint32_t> dropped_;
  std::vector<timeline::PhaseStamp> phases_;
  std::vector<std::uint32_t> used_;
};

// As the kernels: chunk of row t, and the first row of a chunk.
int chunk_of(const Shape& s, const Config& c, int t) {
  return ((t + 1) * c.watermark_chunks - 1) / s.tokens_per_rank;
}

// Compute block 0 computes everything, two pushers of one block push it, one by one.
class Written {
 public:
  Written(const Shape& shape, const Config& config) : s_(shape), c_(config) {
    c_.rows_per_push = rows_of_push(s_, c_);
    wiring_ = wiring_of(s_, c_);
    timeline::RecordedWork work;
    work.ranks = s_.ranks;
    work.tokens = s_.tokens();
    work.row_blocks = s_.row_blocks();
    work.n_tiles_2 = wiring_.n_tiles_2;
    work.watermark_chunks = c_.watermark_chunks;
    work.combine_compute_blocks = 1;
    work.combine_job_blocks = 1;
    work.job_groups_per_block = 2;
    work.all_hands = true;
    work.reduce_blocks = s_.tokens_per_rank;
    for (int rank = 0; rank < s_.ranks; ++rank) {
      orders_.push_back(push_order(s_, c_, rank));
      tapes_.emplace_back(work);
      write(rank);
    }
  }

  timeline::DecodeReport decode(timeline::Timeline& timeline) const {
    std::vector<timeline::RankRecords> ranks;
    for (int rank = 0; rank < s_.ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      ranks.push_back(tapes_[at].of(rank, orders_[at]));
    }
    timeline.wiring = wiring_;
    timeline.meta.provenance = timeline::Provenance::measured;
    return decode_records(ranks, timeline);
  }

 private:
  void write(int rank) {
    Tape& tape = tapes_[static_cast<std::size_t>(rank)];
    std::uint64_t now = 1000;
    tape.stamp(Phase::schedule_build, UINT64_MAX, now);
    tape.stamp(Phase::entry_barrier, now + 100, now + 300);
    const std::uint64_t kernel = now + 400;
    now = kernel + 10;
    for (int tile = 0; tile < s_.row_blocks() * wiring_.n_tiles_2; ++tile, now += 100) {
      const int row_block = tile / wiring_.n_tiles_2;
      const int n_tile = tile % wiring_.n_tiles_2;
      const auto at = [&](std::uint32_t writer, std::uint64_t after, Point point) {
        tape.write(Family::combine_tiles, 0, writer, now + after, point, row_block, n_tile);
      };
      at(timeline::kProducer, 0, Point::gate_begin);
      at(timeline::kProducer, 1, Point::gate_end);
      at(timeline::kConsumer, 10, Point::mainloop_begin);
      at(timeline::kConsumer, 60, Point::mainloop_end);
      at(timeline::kConsumer, 70, Point::epilogue_end);
      at(timeline::kStorer1, 90, Point::stored);
    }
    const std::vector<std::int32_t>& order = orders_[static_cast<std::size_t>(rank)];
    const auto pushes = static_cast<int>(
        std::count_if(order.begin(), order.end(), [](std::int32_t token) { return token >= 0; }));
    for (int number = 0; number <= pushes + 1; ++number, now += 100) {
      const bool any = number < pushes;
      const int token = any ? order[static_cast<std::size_t>(number)] : -1;
      write_push(tape, number % 2, now, any ? number : s_.tokens(), token);
    }
    tape.stamp(Phase::gemm_combine_push, kernel, now + 10);
    write_reduce(tape, rank, now + 10'000);
  }

  // A push writes its rows' chunks' watermarks where its last row ends one.
  void write_push(Tape& tape, int pusher, std::uint64_t now, int number, int token) const {
    const auto front =
        static_cast<std::uint32_t>(pusher) * timeline::kJobWriters + timeline::kFront;
    const auto fetches =
        static_cast<std::uint32_t>(pusher) * timeline::kJobWriters + timeline::kSummer;
    const auto back =
        static_cast<std::uint32_t>(pusher) * timeline::kJobWriters + timeline::kPusher;
    const auto at = [&](std::uint32_t writer, std::uint64_t after, Point point, int a, int b = 0) {
      tape.write(Family::combine_jobs, 0, writer, now + after, point, a, b);
    };
    at(front, 0, Point::claim_begin, -1);
    at(front, 5, Point::claimed, number);
    if (token < 0) {
      return;
    }
    at(front, 6, Point::ready_wait_begin, token);
    at(front, 10, Point::ready, token);
    at(fetches, 11, Point::sum_begin, token);
    at(fetches, 30, Point::summed, token);
    at(back, 31, Point::push_issued, token);
    at(back, 60, Point::pushed, token);
    at(back, 65, Point::push_counted, token);
    const int to = token / s_.tokens_per_rank;
    const int first = token % s_.tokens_per_rank;
    const int last = std::min(first + c_.rows_per_push, s_.tokens_per_rank) - 1;
    std::uint64_t after = 66;
    for (int t = first; t <= last; ++t) {
      const int chunk = chunk_of(s_, c_, t);
      if (t + 1 == s_.tokens_per_rank || chunk_of(s_, c_, t + 1) != chunk) {
        at(back, after++, Point::watermark_begin, to, chunk);
        at(back, after++, Point::watermark_raised, to, chunk);
      }
    }
  }

  void write_reduce(Tape& tape, int rank, std::uint64_t begin) const {
    for (int t = 0; t < s_.tokens_per_rank; ++t) {
      const int chunk = chunk_of(s_, c_, t);
      for (int sender = 0; sender < s_.ranks; ++sender) {
        if (sender != rank) {
          const auto writer = static_cast<std::uint32_t>(sender);
          tape.write(Family::reduce, t, writer, begin + 10, Point::watermark_wait_begin, sender,
                     chunk);
          tape.write(Family::reduce, t, writer, begin + 20, Point::watermark_seen, sender, chunk);
        }
      }
      tape.write(Family::reduce, t, 0, begin + 21, Point::reduce_begin, -1, chunk);
      tape.write(Family::reduce, t, 0, begin + 50, Point::reduce_end, -1, chunk);
    }
    tape.stamp(Phase::final_reduce, begin, begin + 60);
  }

  Shape s_;
  Config c_;
  timeline::Wiring wiring_;
  std::vector<std::vector<std::int32_t>> orders_;
  std::vector<Tape> tapes_;
};

void expect_sound(const Shape& shape, const Config& config) {
  SCOPED_TRACE(describe(shape) + " " + describe(config));
  timeline::Timeline timeline;
  const timeline::DecodeReport report = Written(shape, config).decode(timeline);
  EXPECT_EQ(report.dropped, 0U);
  EXPECT_EQ(report.incomplete, 0U) << report.first_incomplete;
  ASSERT_EQ(timeline::check(timeline), "");
  const auto count = [&](timeline::Kind kind) {
    return std::count_if(timeline.events.begin(), timeline.events.end(),
                         [kind](const timeline::Event& event) { return event.kind == kind; });
  };
  const int rows = rows_of_push(shape, config);
  const int pushes = (shape.tokens_per_rank + rows - 1) / rows;
  EXPECT_EQ(count(timeline::Kind::push), shape.ranks * (shape.ranks - 1) * pushes);
  EXPECT_EQ(count(timeline::Kind::claim), shape.ranks * (shape.ranks - 1) * pushes);
  const analysis::CriticalPath path = analysis::critical_path(timeline);
  EXPECT_EQ(std::accumulate(path.by_step.begin(), path.by_step.end(), std::int64_t{0}),
            timeline.wall_ns());
  EXPECT_EQ(path.unexplained_ns, 0);
  EXPECT_EQ(path.causes_missing, 0);
  EXPECT_GT(path.by_step[static_cast<std::size_t>(analysis::Step::gemm_2)], 0);
}

TEST(ProjectionRecords, MakeASoundTimelineWhoseAttributionCloses) {
  for (const int ranks : {1, 2, 3}) {
    for (const int tokens : {1, 7, 65, 150}) {
      Config config;
      expect_sound({ranks, tokens, 512, 64 * ranks}, config);
      config.row_order = RowOrder::by_rank;
      config.rows_per_push = 4;
      config.watermark_chunks = 3;
      config.tile = TileShape::m128n128;
      expect_sound({ranks, tokens, 264, 64 * ranks}, config);
    }
  }
}

TEST(ProjectionRecords, PushOrderIsTheClaims) {
  Config config;
  config.rows_per_push = 2;
  const Shape shape{3, 3, 512, 192};
  EXPECT_EQ(push_order(shape, config, 1),
            (std::vector<std::int32_t>{6, 8, 0, 2, -1, -1, -1, -1, -1}));
  config.row_order = RowOrder::by_rank;
  EXPECT_EQ(push_order(shape, config, 1),
            (std::vector<std::int32_t>{0, 2, 6, 8, -1, -1, -1, -1, -1}));
}

}  // namespace
}  // namespace fusescope::engine::cuda::projection
