#include "protocol/layer/background_fetch.hpp"

#include "protocol/layer/token_copies.hpp"

namespace fusescope::protocol {
namespace {

using Step = BackgroundFetch::Step;

bool is_guarded(const Layer& layer) {
  return !layer.has(Bug::beside_wait_unguarded);
}

Span room(const GemmCall& c) {
  return c.layer.smem_row(c.block, kRoomRow);
}

void load(Thread& t, const GemmCall& c, int token) {
  if (!pull_is_lost(t, c.layer, c.round, token)) {
    start_pull(t, c.layer, c.round, token, room(c), c.block.fetched);
  }
}

Task begin(Thread& t, BackgroundFetch& f) {
  const Layer& layer = f.call.layer;
  f.step = Step::done;
  if (f.place >= layer.s.tokens()) {
    co_return;
  }
  const std::uint64_t aborted = co_await layer.aborted(t);
  if (aborted != 0) {
    co_return;
  }
  f.token = token_at(t, layer, f.call.round, f.place);
  if (!f.loaded_early) {
    load(t, f.call, f.token);
  }
  f.loaded_early = false;
  f.step = Step::land;
}

Task land(Thread& t, BackgroundFetch& f) {
  const Layer& layer = f.call.layer;
  const MbarrierId fetched = f.call.block.fetched;
  const bool landed = co_await t.wait_phase(fetched, f.parity, is_guarded(layer));
  if (landed) {
    f.parity ^= layer.has(Bug::beside_parity_kept) ? 0 : 1;
    f.step = Step::store;
    co_return;
  }
  f.step = Step::done;
  if (!pull_is_lost(t, layer, f.call.round, f.token) && !layer.has(Bug::beside_not_drained)) {
    co_await t.wait_phase(fetched, f.parity);  // whatever the abort word says
  }
}

Task count(Thread& t, BackgroundFetch& f) {
  const Layer& layer = f.call.layer;
  const int next = f.place + f.call.workers;
  if (layer.has(Bug::room_loaded_early) && next < layer.s.tokens()) {
    load(t, f.call, token_at(t, layer, f.call.round, next));
    f.loaded_early = true;
  }
  if (layer.has(Bug::beside_counted_after_read)) {
    co_await t.wait_read();
  } else if (!layer.has(Bug::beside_stores_unwatched)) {
    co_await t.wait_stored();
  }
  if (!layer.has(Bug::stored_proxy_fence_missing) && !layer.has(Bug::beside_proxy_fence_missing)) {
    t.fence_proxy_async();
  }
  const bool fenced =
      !layer.has(Bug::arrival_fence_missing) && !layer.has(Bug::beside_fence_missing);
  co_await count_arrivals(t, layer, f.call.round, f.token, fenced);
  f.place = next;
  f.step = Step::next;
}

// BackgroundFetch::step.
Task take_step(Thread& t, BackgroundFetch& f) {
  switch (f.step) {
    case Step::next:
      co_await begin(t, f);
      break;
    case Step::land:
      co_await land(t, f);
      break;
    case Step::store:
      start_scatter(t, f.call.layer, f.call.round, f.token, room(f.call));
      f.step = Step::count;
      break;
    case Step::count:
      co_await count(t, f);
      break;
    case Step::done:
      break;
  }
}

}  // namespace

BackgroundFetch::BackgroundFetch(Thread& t, const GemmCall& c) : call(c) {
  if (c.rest_from >= 0) {
    place = static_cast<int>(t.read(c.block.fetch_state, c.round.stamp));
    step = Step::next;
  }
}

void init_background_fetch(Thread& t, const GemmCall& c) {
  const int late = c.layer.has(Bug::rest_begins_late) ? 1 : 0;
  const int place = c.rest_from + late + c.worker;
  t.init_mbarrier(c.block.fetched, 1, true);
  // For the scheduler, whose loads of peers' rows may begin before a row slot or a gate has crossed over.
  if (!c.layer.has(Bug::beside_pull_proxy_fence_missing)) {
    t.fence_proxy_async();
  }
  t.write(c.block.fetch_state, static_cast<std::uint64_t>(place), c.round.stamp);
}

Task wait_asked(Thread& t, BackgroundFetch& f, std::uint32_t parity) {
  const BlockPlaces& block = f.call.block;
  while (f.step != Step::done) {
    if (f.step == Step::land) {
      co_await t.wait_either({block.asked, parity}, {block.fetched, f.parity},
                             is_guarded(f.call.layer));
    } else {
      co_await t.pause();
    }
    if (t.has_passed(block.asked, parity)) {
      break;
    }
    co_await take_step(t, f);
  }
  co_await t.wait_phase(block.asked, parity);
}

Task finish(Thread& t, BackgroundFetch& f) {
  while (f.step != Step::done) {
    co_await take_step(t, f);
  }
}

}  // namespace fusescope::protocol
