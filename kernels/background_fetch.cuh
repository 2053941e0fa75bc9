#pragma once
// Communication beside tiles: fetches a block's tokens behind the head of the pull order (knob dispatch_head), one
// after the other, in steps that do not wait for long. They are taken by a thread that has something else to wait for:
// the GEMM's scheduler (gemm/gemm_hooks.cuh, Gate). A row that is longer than the room for it goes in pieces.
//
// The state lies in shared memory: the thread has no registers for it.

#include <cstdint>
#include <new>

#include "kernels/communication.cuh"

namespace fusescope::kernels {

template <class Records, std::uint32_t RoomBytes>
class BackgroundFetch {
 public:
  // In shared memory; made by init().
  struct State {
    std::uint64_t landed = 0;   // mbarrier
    std::uint64_t due = 0;      // [ns] the token's next step: injected delays, pacing; 0: at once
    std::uint64_t started = 0;  // [ns] the piece's load
    std::int32_t place = 0;     // in pull order
    std::int32_t token = 0;
    std::uint32_t first = 0;  // byte of the row that the piece begins with
    std::uint32_t parity = 0;
    std::uint32_t polls = 0;
    enum class Step : std::int32_t { next, load, land, landed, store, count, done } step;
    typename Records::Writer writer;
  };

  // By one thread; a barrier of the block orders it before the first step(). `slot`: the number among the block's
  // slots, for the records.
  __device__ static void init(const LayerArgs& layer, void* state, int first_place, int block,
                              int slot) {
    auto* made = new (state) State{
        .place = first_place,
        .step = Step::next,
        .writer = typename Records::Writer(layer.records, Family::dispatch_slots, block, slot)};
    ptx::mbarrier_init(&made->landed, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }

  // `room`: RoomBytes, 16-byte aligned, for this alone. `blocks`: from a block's token to its next.
  __device__ BackgroundFetch(const LayerArgs& layer, State& state, unsigned char* room, int blocks)
      : tokens_{layer}, state_(state), room_(room), blocks_(blocks) {}

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
  using Step = typename State::Step;

  __device__ const LayerArgs& layer() const { return tokens_.layer; }
  __device__ bool is_due() const { return state_.due == 0 || now_ns() >= state_.due; }
  __device__ static std::uint64_t after(std::uint32_t ns) { return ns == 0 ? 0 : now_ns() + ns; }
  __device__ std::uint32_t piece_bytes() const {
    return min(layer().row_bytes() - state_.first, RoomBytes);
  }

  __device__ bool begin() {
    if (state_.place >= layer().tokens || aborted(layer().guard)) {
      state_.step = Step::done;
      return false;
    }
    const int token = tokens_.token_at(state_.place);
    state_.token = token;
    state_.first = 0;
    state_.writer.record(Point::pull_issued, token);
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
    state_.writer.record(Point::pull_landed, state_.token);
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
    state_.writer.record(Point::scattered, state_.token);
    tokens_.count_arrivals(state_.token);
    state_.writer.record(Point::counted, state_.token);
    state_.place += blocks_;
    state_.step = Step::next;
  }

  TokenCopies<false> tokens_;
  State& state_;
  unsigned char* room_;
  int blocks_;
};

}  // namespace fusescope::kernels
