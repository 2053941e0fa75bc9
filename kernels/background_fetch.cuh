#pragma once
// Communication beside tiles: fetches a block's tokens behind the head of the pull order (knob dispatch_head), one
// after the other, in steps that do not wait for long. They are taken by a thread that has something else to wait for:
// the GEMM's scheduler (gemm/gemm_hooks.cuh, Gate). A row that is longer than the room for it goes in pieces.
//
// The state lies in shared memory: the thread has no registers for it.

#include <cstdint>

#include "kernels/communication.cuh"

namespace fusescope::kernels {

struct BackgroundFetchState {
  std::uint64_t landed;   // mbarrier
  std::uint64_t due;      // [ns] the token's next step: injected delays, pacing
  std::uint64_t started;  // [ns] the piece's load
  std::int32_t place;     // in pull order
  std::int32_t token;
  std::uint32_t first;  // byte of the row that the piece begins with
  std::uint32_t parity;
  std::uint32_t polls;
  enum class Step : std::int32_t { next, load, land, landed, store, count, done } step;
};

template <class Records>
class BackgroundFetch {
 public:
  // By one thread; a barrier of the block orders it before the first step().
  __device__ static void init(BackgroundFetchState& state, int first_place) {
    ptx::mbarrier_init(&state.landed, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    state.place = first_place;
    state.parity = 0;
    state.step = BackgroundFetchState::Step::next;
  }

  // `room`: 16-byte aligned, for this alone. `slot`: its number among the block's, for the records.
  __device__ BackgroundFetch(const LayerArgs& layer, BackgroundFetchState& state,
                             unsigned char* room, std::uint32_t room_bytes, int block, int blocks,
                             int slot)
      : tokens_{layer},
        state_(state),
        room_(room),
        room_bytes_(room_bytes),
        blocks_(blocks),
        writer_(layer.records, Family::dispatch_slots, block, slot) {}

  // False: nothing is left to fetch, or the launch was aborted; no copy is in flight.
  __device__ bool step() {
    switch (state_.step) {
      case Step::next:
        return begin();
      case Step::load:
        if (is_due())
          load();
        return true;
      case Step::land:
        return land();
      case Step::landed:
        if (is_due())
          has_landed();
        return true;
      case Step::store:
        if (is_due())
          store();
        return true;
      case Step::count:
        count();
        return true;
      case Step::done:
        break;
    }
    return false;
  }

 private:
  using Step = BackgroundFetchState::Step;

  __device__ const LayerArgs& layer() const { return tokens_.layer; }
  __device__ bool is_due() const { return state_.due == 0 || now_ns() >= state_.due; }
  __device__ static std::uint64_t after(std::uint32_t ns) { return ns == 0 ? 0 : now_ns() + ns; }
  __device__ std::uint32_t piece_bytes() const {
    return min(layer().row_bytes() - state_.first, room_bytes_);
  }

  __device__ bool begin() {
    if (state_.place >= layer().tokens || aborted(layer().guard)) {
      state_.step = Step::done;
      return false;
    }
    const int token = tokens_.token_at(state_.place);
    state_.token = token;
    state_.first = 0;
    writer_.record(Point::pull_issued, token);
    state_.due = after(tokens_.pull_delay(token));
    state_.step = Step::load;
    return true;
  }

  __device__ void load() {
    const int token = state_.token;
    if (token != layer().faults.lost_pull)
      start_load(room_, tokens_.source(token) + state_.first, piece_bytes(), state_.landed);
    state_.due = state_.first == 0 ? tokens_.book(token) : 0;
    state_.started = now_ns();
    state_.polls = 0;
    state_.step = Step::land;
  }

  // As wait_until_at_least, poll by poll.
  __device__ bool land() {
    if (ptx::mbarrier_try_wait_parity(&state_.landed, state_.parity)) {
      state_.parity ^= 1;
      state_.step = state_.first == 0 ? Step::landed : Step::store;
      return true;
    }
    constexpr unsigned kPollsPerLook = 16;
    if (++state_.polls % kPollsPerLook != 0)
      return true;
    const std::uint64_t waited = now_ns() - state_.started;
    bool stops = aborted(layer().guard);
    if (!stops && waited > layer().guard.deadline_ns) {
      give_up(layer().guard, Wait::pull, state_.token, 1, 0, waited);
      stops = true;
    }
    if (!stops)
      return true;
    if (state_.token != layer().faults.lost_pull)
      drain(state_.landed, state_.parity);
    state_.step = Step::done;
    return false;
  }

  __device__ void has_landed() {
    writer_.record(Point::pull_landed, state_.token);
    state_.due = after(layer().delays.scatter);
    state_.step = Step::store;
  }

  __device__ void store() {
    tokens_.start_stores(state_.token, room_, state_.first, piece_bytes());
    state_.step = Step::count;
  }

  __device__ void count() {
    wait_stored();  // the stores have been under way for at least a step
    state_.first += piece_bytes();
    state_.due = 0;
    if (state_.first < layer().row_bytes()) {
      state_.step = Step::load;
      return;
    }
    writer_.record(Point::scattered, state_.token);
    tokens_.count_arrivals(state_.token);
    writer_.record(Point::counted, state_.token);
    state_.place += blocks_;
    state_.step = Step::next;
  }

  TokenCopies<false> tokens_;
  BackgroundFetchState& state_;
  unsigned char* room_;
  std::uint32_t room_bytes_;
  int blocks_;
  typename Records::Writer writer_;
};

}  // namespace fusescope::kernels
