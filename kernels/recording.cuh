#pragma once
// In-kernel records as a template parameter of the kernels: `Recording` writes, `Silent` has the same
// members without a statement in them, so that a kernel which does not record has no code for it.
//
//   Writer       one thread's, of one family; record(point, a, b)
//   TileProbe    the probe of the grouped GEMM; each thread's own object
//   PhaseStamps  an object in the kernel's scope: the phase's begin and end, by thread 0 of each block
//
// Where a launcher picks the form: by what LayerArgs::records holds.

#include "kernels/gemm/gemm_hooks.cuh"
#include "kernels/gemm/gemm_variants.hpp"
#include "kernels/layer_args.hpp"
#include "kernels/record_writer.cuh"

namespace fusescope::kernels {

using timeline::Family;
using timeline::Phase;
using timeline::Point;
using timeline::RecordBuffers;

struct Silent {
  static constexpr bool kOn = false;

  struct Writer {
    __device__ Writer(const RecordBuffers&, Family, int, int) {}
    __device__ void record(Point, int = -1, int = 0) const {}
  };

  struct TileProbe : NoProbe {
    __device__ TileProbe(const RecordBuffers&, Family, int, int) {}
  };

  struct PhaseStamps {
    __device__ PhaseStamps(const RecordBuffers&, Phase) {}
  };
};

struct Recording {
  static constexpr bool kOn = true;

  using Writer = RecordWriter;

  class TileProbe {
   public:
    // copy_thread: of the GEMM's variant.
    __device__ TileProbe(const RecordBuffers& buffers, Family family, int block, int copy_thread)
        : writer_(buffers, family, block, writer_of_thread(copy_thread)) {}

    __device__ void record(ProbePoint point, int row_block, int n_tile) {
      writer_.record(point_of(point), row_block, n_tile);
    }

   private:
    // The threads that grouped_gemm lets record; all others get a writer that there is none of.
    __device__ static int writer_of_thread(int copy_thread) {
      const int thread = static_cast<int>(threadIdx.x);
      if (thread == 0)
        return timeline::kConsumer;
      switch (thread - copy_thread) {
        case 0:
          return timeline::kProducer;
        case 32:
          return timeline::kStorer0;
        case 64:
          return timeline::kStorer1;
        default:
          return timeline::kTileWriters;
      }
    }

    __device__ static constexpr Point point_of(ProbePoint point) {
      switch (point) {
        case ProbePoint::kGateBegin:
          return Point::gate_begin;
        case ProbePoint::kGateEnd:
          return Point::gate_end;
        case ProbePoint::kMainloopBegin:
          return Point::mainloop_begin;
        case ProbePoint::kMainloopEnd:
          return Point::mainloop_end;
        case ProbePoint::kEpilogueEnd:
          return Point::epilogue_end;
        case ProbePoint::kStored:
          return Point::stored;
      }
      return Point::none;
    }

    RecordWriter writer_;
  };

  // A block whose threads end at different times, and that records nothing else, meets before the end.
  class PhaseStamps {
   public:
    __device__ PhaseStamps(const RecordBuffers& buffers, Phase phase)
        : buffers_(buffers), phase_(phase) {
      if (threadIdx.x == 0)
        stamp_begin(buffers_, phase_);
    }
    __device__ ~PhaseStamps() {
      auto phase = static_cast<int>(phase_);
      asm("" : "+r"(phase));  // the address is added up anew: kept, it would spill in the GEMM
      if (threadIdx.x == 0)
        stamp_end(buffers_, static_cast<Phase>(phase));
    }
    PhaseStamps(const PhaseStamps&) = delete;
    PhaseStamps& operator=(const PhaseStamps&) = delete;

   private:
    const RecordBuffers& buffers_;
    Phase phase_;
  };
};

}  // namespace fusescope::kernels
