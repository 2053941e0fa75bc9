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
    std::uint64_t landed = 0;  // mbarrier
    std::uint64_t due = 0;     // [ns] the token's next step: injected delays, pacing; 0: at once
    std::uint64_t since = 0;   // [ns] when the step began
    std::int32_t place = 0;    // in pull order
    std::int32_t token = 0;
    std::uint32_t first = 0;  // byte of the row that the piece begins with
    std::uint32_t parity = 0;
    std::uint32_t polls = 0;  // of the step
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
        return when_due([this] { load(); });
      case Step::land:
        return land();
      case Step::landed:
        return when_due([this] { has_landed(); });
      case Step::store:
        return when_due([this] { store(); });
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
  __device__ static std::uint64_t after(std::uint32_t ns) { return ns == 0 ? 0 : now_ns() + ns; }
  __device__ std::uint32_t piece_bytes() const {
    return min(layer().row_bytes() - state_.first, RoomBytes);
  }

  __device__ void go_on(Step step) {
    state_.step = step;
    state_.since = now_ns();
    state_.polls = 0;
  }

  // As wait_until_at_least, poll by poll: what the step waits for has not come.
  __device__ bool wait_on(Wait what, std::uint64_t expected, std::uint64_t seen) {
    constexpr unsigned kPollsPerLook = 16;
    if (++state_.polls % kPollsPerLook != 0)
      return true;
    if (!aborted(layer().guard)) {
      const std::uint64_t waited = now_ns() - state_.since;
      if (waited <= layer().guard.deadline_ns)
        return true;
      give_up(layer().guard, what, state_.token, expected, seen, waited);
    }
    if (state_.step == Step::land && state_.token != layer().faults.lost_pull)
      drain(state_.landed, state_.parity);
    state_.step = Step::done;
    return false;
  }

  template <class Then>
  __device__ bool when_due(Then then) {
    const std::uint64_t now = state_.due == 0 ? 0 : now_ns();
    if (now < state_.due)
      return wait_on(Wait::clock, state_.due, now);
    then();
    return true;
  }

  __device__ bool begin() {
    if (state_.place >= layer().tokens || aborted(layer().guard)) {
      state_.step = Step::done;
      return false;
    }
    const int token = tokens_.token_at(state_.place);
    // As in Communication::run_slot: this thread may be here before any slot or gate of the block has crossed over.
    ptx::fence_proxy_async(ptx::space_global);
    state_.token = token;
    state_.first = 0;
    state_.writer.record(Point::pull_issued, token);
    state_.due = after(tokens_.pull_delay(token));
    go_on(Step::load);
    return true;
  }

  __device__ void load() {
    const int token = state_.token;
    if (token != layer().faults.lost_pull)
      start_load(room_, tokens_.source(token) + state_.first, piece_bytes(), state_.landed);
    state_.due = state_.first == 0 ? tokens_.book(token) : 0;
    go_on(Step::land);
  }

  __device__ bool land() {
    if (!ptx::mbarrier_try_wait_parity(&state_.landed, state_.parity))
      return wait_on(Wait::pull, 1, 0);
    state_.parity ^= 1;
    go_on(state_.first == 0 ? Step::landed : Step::store);
    return true;
  }

  __device__ void has_landed() {
    state_.writer.record(Point::pull_landed, state_.token);
    state_.due = after(layer().delays.scatter);
    go_on(Step::store);
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
      go_on(Step::load);
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
