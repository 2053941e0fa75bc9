// Compute blocks of both kernels: three kinds of warps write down what they do to the same tiles.

#include <algorithm>
#include <optional>

#include "timeline/records/rank_events.hpp"

namespace fusescope::timeline {
namespace {

using Moment = RankEvents::Moment;
using Time = std::optional<std::int64_t>;

struct Tile {
  int row_block = -1;
  int n_tile = -1;
  Time gate_begin{}, gate_end{}, mainloop_begin{}, mainloop_end{}, epilogue_end{}, stored{};

  Time end() const { return stored ? stored : epilogue_end; }
};

class TileBlock {
 public:
  TileBlock(RankEvents& events, Family family, int block)
      : events_(events),
        family_(family),
        block_(block),
        stage_(family == Family::dispatch_tiles ? Stage::dispatch_gemm : Stage::gemm_combine_push),
        n_tiles_(family == Family::dispatch_tiles ? events.wiring().n_tiles_1
                                                  : events.wiring().n_tiles_2) {
    // The consumer's order is the block's.
    for (const int writer : {kConsumer, kProducer, kStorer0, kStorer1}) {
      read(writer);
    }
  }

  void decode() {
    drop_incomplete();
    place_mainloops();
    const int epilogue_lane = epilogues_overlap() ? kEpilogueLane : kTileLane;
    std::int64_t lane_end = INT64_MIN;      // of lane 0
    std::int64_t epilogue_end = INT64_MIN;  // of the epilogues
    for (const Tile& tile : tiles_) {
      const EventArguments arguments{.row_block = tile.row_block, .index = tile.n_tile};
      if (tile.gate_begin && tile.gate_end) {
        const std::int64_t begin = std::max(*tile.gate_begin, lane_end);
        if (*tile.gate_end > begin && is_wait(tile)) {
          add(kTileLane, gate_kind(), begin, *tile.gate_end, arguments);
        }
      }
      add(kTileLane, Kind::mainloop, *tile.mainloop_begin, *tile.mainloop_end, arguments);
      // One tile's storing ends before the next one's begins: a storer does one after the other.
      const std::int64_t begin = std::max(*tile.mainloop_end, epilogue_end);
      epilogue_end = std::max(begin, *tile.end());
      add(epilogue_lane, Kind::epilogue, begin, epilogue_end, arguments);
      lane_end = epilogue_lane == kTileLane ? epilogue_end : *tile.mainloop_end;
    }
  }

 private:
  Kind gate_kind() const {
    return stage_ == Stage::dispatch_gemm ? Kind::gate_wait : Kind::activation_wait;
  }

  // In stream order kernel 2 has gates too, which nothing closes: two records in a row.
  bool is_wait(const Tile& tile) const {
    constexpr std::int64_t kOpen = 200;  // [ns]
    return stage_ == Stage::dispatch_gemm || *tile.gate_end - *tile.gate_begin > kOpen;
  }

  // Which time of its tile a record is, or nullptr.
  static Time Tile::*member_of(Point point) {
    switch (point) {
      case Point::gate_begin:
        return &Tile::gate_begin;
      case Point::gate_end:
        return &Tile::gate_end;
      case Point::mainloop_begin:
        return &Tile::mainloop_begin;
      case Point::mainloop_end:
        return &Tile::mainloop_end;
      case Point::epilogue_end:
        return &Tile::epilogue_end;
      case Point::stored:
        return &Tile::stored;
      default:
        return nullptr;
    }
  }

  void read(int writer) {
    for (const Moment& moment : events_.moments(family_, block_, writer)) {
      Time Tile::*const member = member_of(moment.point);
      if (member == nullptr || moment.a < 0 || moment.b >= n_tiles_) {
        events_.lose(family_, block_, writer, moment);
        continue;
      }
      const auto [found, fresh] = by_key_.try_emplace({moment.a, moment.b}, tiles_.size());
      if (fresh) {
        tiles_.push_back({.row_block = moment.a, .n_tile = moment.b});
      }
      Time& time = tiles_[found->second].*member;
      if (time) {
        events_.lose(family_, block_, writer, moment);
      } else {
        time = moment.ns;
      }
    }
  }

  void drop_incomplete() {
    std::erase_if(tiles_, [this](const Tile& tile) {
      const bool whole = tile.mainloop_begin && tile.mainloop_end && tile.end();
      if (!whole) {
        events_.lose(family_, block_, kConsumer,
                     {.a = tile.row_block, .b = tile.n_tile, .point = Point::mainloop_begin});
      }
      return !whole;
    });
    std::stable_sort(tiles_.begin(), tiles_.end(), [](const Tile& a, const Tile& b) {
      return *a.mainloop_begin < *b.mainloop_begin;
    });
  }

  // From when the gate is open and the consumers are free.
  void place_mainloops() {
    for (std::size_t i = 0; i < tiles_.size(); ++i) {
      Tile& tile = tiles_[i];
      Time from = tile.gate_end;
      if (i > 0) {
        const Tile& before = tiles_[i - 1];
        const bool staged = before.epilogue_end && *before.epilogue_end <= *tile.mainloop_begin;
        const std::int64_t free = staged ? *before.epilogue_end : *before.mainloop_end;
        from = std::max(from.value_or(free), free);
      }
      tile.mainloop_begin = std::min(*tile.mainloop_begin, from.value_or(*tile.mainloop_begin));
      tile.mainloop_end = std::max(*tile.mainloop_end, *tile.mainloop_begin);
    }
  }

  bool epilogues_overlap() const {
    for (std::size_t i = 0; i + 1 < tiles_.size(); ++i) {
      if (*tiles_[i].end() > *tiles_[i + 1].mainloop_begin) {
        return true;
      }
    }
    return false;
  }

  void add(int lane, Kind kind, std::int64_t begin, std::int64_t end,
           const EventArguments& arguments) {
    events_.add(stage_, Role::compute, block_, lane, kind, begin, end, arguments);
  }

  RankEvents& events_;
  Family family_;
  int block_;
  Stage stage_;
  int n_tiles_;
  std::vector<Tile> tiles_;
  std::map<std::pair<int, int>, std::size_t> by_key_;
};

}  // namespace

void decode_tiles(RankEvents& events, Family family) {
  const FamilyLayout& at = events.source().layout[family];
  for (int block = 0; block < static_cast<int>(at.blocks); ++block) {
    TileBlock(events, family, block).decode();
  }
}

}  // namespace fusescope::timeline
