#include "tiny_layer.hpp"

#include <algorithm>
#include <string>

namespace fusescope::timeline {
namespace {

using Times = std::vector<std::int64_t>;

class Builder {
 public:
  explicit Builder(const Sketch& sketch) : sketch_(sketch) {
    Wiring& wiring = timeline_.wiring;
    wiring.ranks = sketch.ranks;
    wiring.tokens_per_rank = sketch.tokens_per_rank;
    wiring.topk = sketch.topk;
    wiring.n_tiles_1 = sketch.n_tiles_1;
    wiring.n_tiles_2 = sketch.n_tiles_2;
    std::vector<std::int32_t> hits;
    for (int token = 0; token < tokens(); ++token) {
      for (int k = 0; k < sketch.topk; ++k) {
        hits.push_back(row_block_of(sketch, token, k));
      }
    }
    std::vector<std::int32_t> experts;
    for (int block = 0; block < sketch.row_blocks; ++block) {
      experts.push_back(block / 2);
    }
    wiring.hit_row_block.assign(static_cast<std::size_t>(sketch.ranks), hits);
    wiring.expert_of_row_block.assign(static_cast<std::size_t>(sketch.ranks), experts);
    if (sketch.merged) {
      std::vector<std::int32_t> tiles;
      for (int block = 0; block < sketch.row_blocks; ++block) {
        tiles.push_back(block / 2 * 2);
      }
      wiring.tile_of_row_block.assign(static_cast<std::size_t>(sketch.ranks), tiles);
    }

    Meta& meta = timeline_.meta;
    meta.provenance = Provenance::simulated;
    meta.device = "sketch";
    meta.sms = sketch.compute_blocks + 1;
    meta.problem = "tiny";
    meta.config = "dispatch_comm_sms=1";
    meta.command = "test";
    meta.commit = "0123456789ab";
    meta.chosen = "the only iteration";
  }

  Timeline build() {
    std::vector<std::int64_t> now(static_cast<std::size_t>(sketch_.ranks));
    for (int rank = 0; rank < sketch_.ranks; ++rank) {
      stream_.push_back(track({rank, rank, Stage::stream, Role::stream, 0, 0}));
      now[static_cast<std::size_t>(rank)] = first_kernels(rank);
    }
    watermark_end_.assign(static_cast<std::size_t>(sketch_.ranks * sketch_.ranks), 0);
    for (int rank = 0; rank < sketch_.ranks; ++rank) {
      auto& time = now[static_cast<std::size_t>(rank)];
      time = second_kernel(rank, time + 10 + 200 * rank);  // later ranks keep others waiting
    }
    for (int rank = 0; rank < sketch_.ranks; ++rank) {
      reduce(rank, now[static_cast<std::size_t>(rank)] + 10);
    }
    timeline_.begin_ns = 0;
    timeline_.end_ns = last_end_;
    sort_events(timeline_);
    return timeline_;
  }

 private:
  int tokens() const { return sketch_.ranks * sketch_.tokens_per_rank; }

  std::uint32_t track(const Track& what) {
    timeline_.tracks.push_back(what);
    return static_cast<std::uint32_t>(timeline_.tracks.size() - 1);
  }

  std::int64_t add(Event event) {
    timeline_.events.push_back(event);
    last_end_ = std::max(last_end_, event.end_ns);
    return event.end_ns;
  }

  std::int64_t phase(int rank, Kind kind, std::int64_t begin, std::int64_t end, int index = -1) {
    return add({.begin_ns = begin,
                .end_ns = end,
                .track = stream_[static_cast<std::size_t>(rank)],
                .index = index,
                .kind = kind});
  }

  int blocks_of_tile() const { return sketch_.merged ? 2 : 1; }
  int row_tiles() const { return (sketch_.row_blocks + blocks_of_tile() - 1) / blocks_of_tile(); }
  int end_of_tile(int row_block) const {
    return std::min(row_block + blocks_of_tile(), sketch_.row_blocks);
  }

  std::int64_t first_kernels(int rank) {
    const std::int64_t late = 10 * rank;
    phase(rank, Kind::ids_exchange, late, 100);
    phase(rank, Kind::schedule_build, 110, 190);
    phase(rank, Kind::barrier, 200 + late, 250, 0);
    phase(rank, Kind::copy_in, 260, 290);
    phase(rank, Kind::barrier, 300 + late, 350, 1);
    const std::int64_t begin = 400;
    const std::int64_t end =
        std::max(compute_1(rank, begin, communicate(rank, begin)), last_arrive_);
    phase(rank, Kind::dispatch_gemm, begin, end);
    phase(rank, Kind::activation, end + 10, end + 30);
    return phase(rank, Kind::dispenser_reset, end + 35, end + 40);
  }

  // Returns when each row block opens.
  Times communicate(int rank, std::int64_t begin) {
    Times lane_time(static_cast<std::size_t>(sketch_.lanes), begin);
    std::vector<std::uint32_t> lanes;
    Counter counter{"row blocks open", "row blocks", rank, {begin}, {0}};
    for (int lane = 0; lane < sketch_.lanes; ++lane) {
      lanes.push_back(track(
          {rank, rank, Stage::dispatch_gemm, Role::communication, sketch_.compute_blocks, lane}));
      lane_time[static_cast<std::size_t>(lane)] += 3 * lane;
    }
    Times opens(static_cast<std::size_t>(sketch_.row_blocks), begin);
    for (std::int32_t token = 0; token < tokens(); ++token) {
      const auto lane = static_cast<std::size_t>(token % sketch_.lanes);
      std::int64_t& now = lane_time[lane];
      const auto peer = static_cast<std::int16_t>(token / sketch_.tokens_per_rank);
      now = add({now, now + 20, lanes[lane], token, -1, -1, peer, Kind::pull});
      now = add({now, now + 10, lanes[lane], token, -1, -1, -1, Kind::scatter});
      now = add({now, now + 5, lanes[lane], token, -1, -1, -1, Kind::arrive});
      last_arrive_ = std::max(last_arrive_, now);
      for (int k = 0; k < sketch_.topk; ++k) {
        auto& open = opens[static_cast<std::size_t>(row_block_of(sketch_, token, k))];
        open = std::max(open, now);
      }
    }
    Times sorted = opens;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      counter.time_ns.push_back(sorted[i]);
      counter.value.push_back(static_cast<double>(i + 1));
    }
    timeline_.counters.push_back(counter);
    return opens;
  }

  std::int64_t compute_1(int rank, std::int64_t begin, const Times& opens) {
    std::int64_t end = begin;
    for (int block = 0; block < sketch_.compute_blocks; ++block) {
      const std::uint32_t where =
          track({rank, rank, Stage::dispatch_gemm, Role::compute, block, 0});
      std::int64_t now = begin;
      const int tiles = row_tiles() * sketch_.n_tiles_1;
      for (std::int32_t tile = block; tile < tiles; tile += sketch_.compute_blocks) {
        const std::int32_t row_block = tile / sketch_.n_tiles_1 * blocks_of_tile();
        const std::int32_t n_tile = tile % sketch_.n_tiles_1;
        std::int64_t open = now + 1;
        for (int at = row_block; at < end_of_tile(row_block); ++at) {
          open = std::max(open, opens[static_cast<std::size_t>(at)]);
        }
        now = add({now, open, where, -1, row_block, n_tile, -1, Kind::gate_wait});
        now = add({now, now + 50, where, -1, row_block, n_tile, -1, Kind::mainloop});
        now = add({now, now + 10, where, -1, row_block, n_tile, -1, Kind::epilogue});
      }
      end = std::max(end, now);
    }
    return end;
  }

  std::int64_t second_kernel(int rank, std::int64_t begin) {
    Times done(static_cast<std::size_t>(sketch_.row_blocks), begin);
    std::int64_t end = begin;
    for (int block = 0; block < sketch_.compute_blocks; ++block) {
      const std::uint32_t where =
          track({rank, rank, Stage::gemm_combine_push, Role::compute, block, 0});
      std::int64_t now = begin;
      const int tiles = row_tiles() * sketch_.n_tiles_2;
      for (std::int32_t tile = block; tile < tiles; tile += sketch_.compute_blocks) {
        const std::int32_t row_block = tile / sketch_.n_tiles_2 * blocks_of_tile();
        const std::int32_t n_tile = tile % sketch_.n_tiles_2;
        now = add({now, now + 40, where, -1, row_block, n_tile, -1, Kind::mainloop});
        now = add({now, now + 8, where, -1, row_block, n_tile, -1, Kind::epilogue});
        for (int at = row_block; at < end_of_tile(row_block); ++at) {
          auto& time = done[static_cast<std::size_t>(at)];
          time = std::max(time, now);
        }
      }
      end = std::max(end, now);
    }
    end = std::max(end, jobs(rank, begin, done));
    phase(rank, Kind::gemm_combine_push, begin, end);
    return end;
  }

  std::int64_t jobs(int rank, std::int64_t begin, const Times& done) {
    std::vector<std::uint32_t> blocks;
    for (int block = 0; block < sketch_.job_blocks; ++block) {
      blocks.push_back(track({rank, rank, Stage::gemm_combine_push, Role::communication,
                              sketch_.compute_blocks + block, 0}));
    }
    Times times(blocks.size(), begin);
    std::int64_t counted = begin;
    for (std::int32_t token = 0; token < tokens(); ++token) {
      const auto block = static_cast<std::size_t>(token % sketch_.job_blocks);
      const std::uint32_t where = blocks[block];
      std::int64_t& now = times[block];
      std::int32_t last = 0;
      std::int64_t ready = 0;
      for (int k = 0; k < sketch_.topk; ++k) {
        const int row_block = row_block_of(sketch_, token, k);
        if (done[static_cast<std::size_t>(row_block)] > ready) {
          ready = done[static_cast<std::size_t>(row_block)];
          last = row_block;
        }
      }
      const auto peer = static_cast<std::int16_t>(token / sketch_.tokens_per_rank);
      now = add({now, now + 2, where, token, -1, token, -1, Kind::claim});
      now = add({now, std::max(now + 1, ready), where, token, last, token, -1, Kind::ready_wait});
      now = add({now, now + 6, where, token, -1, token, -1, Kind::sum});
      now = add({now, now + 12, where, token, -1, token, peer, Kind::push});
      // One by one, so that the last token of a receiver is the one that is elected.
      now = add({now, std::max(now + 2, counted + 1), where, token, -1, token, peer, Kind::elect});
      counted = now;
      if (token % sketch_.tokens_per_rank == sketch_.tokens_per_rank - 1) {
        now = add({now, now + 9, where, -1, -1, 0, peer, Kind::watermark});
        watermark_end_[static_cast<std::size_t>(rank * sketch_.ranks + peer)] = now;
      }
    }
    return *std::max_element(times.begin(), times.end());
  }

  void reduce(int rank, std::int64_t begin) {
    const std::uint32_t where = track({rank, rank, Stage::final_reduce, Role::reduce, 0, 0});
    std::int64_t now = begin;
    for (int sender = 0; sender < sketch_.ranks; ++sender) {
      const std::int64_t seen =
          watermark_end_[static_cast<std::size_t>(sender * sketch_.ranks + rank)];
      now = add({now, std::max(now + 1, seen), where, -1, -1, 0, static_cast<std::int16_t>(sender),
                 Kind::reduce_wait});
    }
    now = add({now, now + 25, where, -1, -1, 0, -1, Kind::reduce});
    phase(rank, Kind::final_reduce, begin, now);
  }

  Sketch sketch_;
  Timeline timeline_;
  std::vector<std::uint32_t> stream_;
  Times watermark_end_;
  std::int64_t last_arrive_ = 0;
  std::int64_t last_end_ = 0;
};

}  // namespace

int row_block_of(const Sketch& sketch, int token, int k) {
  const int tokens = sketch.ranks * sketch.tokens_per_rank;
  return static_cast<int>((static_cast<long long>(token) * sketch.row_blocks / tokens + k) %
                          sketch.row_blocks);
}

Timeline tiny_layer(const Sketch& sketch) {
  return Builder(sketch).build();
}

Sketch seed_sized() {
  return {.ranks = 4,
          .tokens_per_rank = 512,
          .topk = 8,
          .row_blocks = 128,
          .n_tiles_1 = 6,
          .n_tiles_2 = 16,
          .compute_blocks = 94,
          .lanes = 192,
          .job_blocks = 16};
}

}  // namespace fusescope::timeline
