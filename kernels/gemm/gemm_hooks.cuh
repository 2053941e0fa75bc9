// The three hooks through which a kernel extends the grouped GEMM, and their empty forms.
//
// Gate, called before rows of a tile are loaded, for each of its row blocks:
//   bool wait(int row_block)     by the producer thread. Blocks until the block's rows may be read by bulk
//                                tensor copies. Bounded: false means abort, and the whole thread block then
//                                leaves the loop; tiles already begun are finished and signalled.
//   bool is_open(int row_block)  optional, does not block. Where it exists, the scheduler's thread asks it
//                                first, once, while the tile before is still being loaded, and passes the
//                                answer on by a barrier; when it was no, the producer loads weights, then
//                                waits. (Variants that gather: the producer asks.)
//   bool work()                  optional: a step of something else, by the scheduler's thread while it has nothing
//                                to find, and after the block's last tile, or an abort, until the answer is false:
//                                nothing is left, and no copy of it is in flight. A step is short: the next tile
//                                waits for it. (Not of variants that gather.)
//   void prepare()               optional: what the block does before its first tile, by all consumer threads, with the
//                                ring and the staged chunks as its memory. Meanwhile the other roles find the first tile;
//                                nothing is loaded, and no gate waited for, before all of them have returned. No copy
//                                is in flight then, and each thread has crossed over to the async proxy.
//   The rows were written by other blocks' bulk copies or stores, and the loads that follow belong
//   to the async proxy: a true answer must come from a ld.acquire.gpu of what the writer released,
//   followed by fence.proxy.async. (Variants that gather load rows through the generic proxy, too.)
//
// Signal, called by one thread of the block per finished tile, for each of its row blocks:
//   void done(int row_block, int n_tile)   all rows of the tile that hold any (args.slack) are
//                                written to global memory and ordered before this call, so a
//                                release at gpu scope inside it publishes them. A reader that
//                                acquires may use generic loads at once; before bulk copies it
//                                needs its own fence.proxy.async.
//
// Probe, called by one thread per role (see ProbePoint); `probe` is that thread's own object:
//   void record(ProbePoint point, int row_block, int n_tile)
#pragma once

namespace fusescope::kernels {

enum class ProbePoint {
  kGateBegin,      // producer: about to ask the gate
  kGateEnd,        // producer: the gate is open, loads begin
  kMainloopBegin,  // first consumer warpgroup: the tile's first stage is full
  kMainloopEnd,    // first consumer warpgroup: accumulators are final
  kEpilogueEnd,    // first consumer warpgroup: the last chunk is staged in shared memory. Often
                   // after kMainloopBegin of the next tile, under which the output is written
  kStored,  // the thread that signals: the tile is in global memory, and signalled; transposed
            // variants: about to be, to one row block after the other
};

struct NoGate {
  __device__ bool is_open(int) const { return true; }
  __device__ bool wait(int) const { return true; }
};

struct NoSignal {
  static constexpr bool kSignals = false;
  __device__ void done(int, int) const {}
};

struct NoProbe {
  __device__ void record(ProbePoint, int, int) const {}
};

// A signal that does not say otherwise is a real one.
template <class Signal>
inline constexpr bool kIsSignalling = [] {
  if constexpr (requires { Signal::kSignals; }) {
    return Signal::kSignals;
  } else {
    return true;
  }
}();

}  // namespace fusescope::kernels
