#include "protocol/layer/token_copies.hpp"

namespace fusescope::protocol {

int token_at(const Thread& t, const Layer& layer, const Round& round, int position) {
  if (layer.s.config.pull_order != PullOrder::by_slot) {
    return position;
  }
  t.read(layer.places[t.rank()].pull_order, round.stamp);
  return round.tables[t.rank()].pull_order[position];
}

bool is_in_place(const Thread& t, const Layer& layer, int token) {
  return layer.pushes_tokens() || (layer.gathers() && layer.source_rank(token) == t.rank());
}

bool pull_is_lost(const Thread& t, const Layer& layer, const Round& round, int token) {
  return token == 0 && layer.loses(Fault::lost_pull, t.rank(), round);
}

void start_pull(Thread& t, const Layer& layer, const Round& round, int token, Span row,
                MbarrierId landed) {
  const int source = layer.source_rank(token);
  const int row_of_source = token - source * layer.s.tokens_per_rank;
  t.arrive_expecting(landed, 1);
  t.start_load(row, {layer.places[source].tokens + row_of_source, 1}, 1, round.stamp, landed,
               source);
}

void start_scatter(Thread& t, const Layer& layer, const Round& round, int token, Span row) {
  const RankPlaces& mine = layer.places[t.rank()];
  if (layer.gathers()) {
    t.start_store({mine.all_tokens + token, 1}, row, round.stamp, t.rank());
  } else {
    t.read(mine.slots, round.stamp);
    for (int k = 0; k < layer.s.topk; ++k) {
      t.start_store({mine.gathered + round.slot(t.rank(), token, k), 1}, row, round.stamp,
                    t.rank());
    }
  }
  t.commit_group();
}

Task count_arrivals(Thread& t, const Layer& layer, const Round& round, int token, bool fenced) {
  const RankPlaces& mine = layer.places[t.rank()];
  t.read(mine.slots, round.stamp);
  if (fenced) {
    t.fence(Scope::gpu);
  }
  const int first = token == 0 && layer.loses(Fault::lost_arrival, t.rank(), round) ? 1 : 0;
  for (int k = first; k < layer.s.topk; ++k) {
    co_await t.fetch_add(mine.arrivals + round.slot(t.rank(), token, k) / layer.s.row_block, 1,
                         Order::relaxed, Scope::gpu);
  }
}

}  // namespace fusescope::protocol
