// The one wrapper of its own that the kernels need: wgmma, which cuda::ptx does not offer.
// PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"; the sections
// named below are from there. Operands: A and B in shared memory, both K-major (K contiguous) in
// the 128-byte swizzle that the copy engine writes, accumulators in registers.
//
// All functions are executed by whole warpgroups (128 threads).
#pragma once

#include <cstdint>

namespace fusescope::kernels::wgmma {

// Matrix descriptor of a K-major operand in the 128-byte swizzle ("Matrix Descriptor Format").
// Groups of 8 rows are 1024 bytes apart (stride offset); the leading offset is unused in this
// layout. The tile must start on a 1024-byte boundary; a step of 16 bf16 along K adds 32 bytes.
__device__ inline std::uint64_t descriptor(const void* tile) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile));
  constexpr std::uint64_t kStride = std::uint64_t{1024 >> 4} << 32;
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  return ((address & 0x3FFFF) >> 4) | (std::uint64_t{1} << 16) | kStride | kSwizzle128;
}

// Descriptors count in units of 16 bytes.
inline constexpr std::uint64_t kDescriptorStepK16 = 32 >> 4;

// "wgmma.fence": orders register accesses (and earlier wgmma of another shape) before the next
// wgmma of this warpgroup.
__device__ inline void fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// "wgmma.commit_group".
__device__ inline void commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// "wgmma.wait_group": returns when at most Pending groups of this warpgroup are in flight.
template <int Pending>
__device__ inline void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Keeps the compiler from moving reads or writes of the accumulators across an asynchronous wgmma.
template <int Count>
__device__ inline void pin(float (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    asm volatile("" : "+f"(d[i])::"memory");
  }
}

// "wgmma.mma_async", m64nNk16: D = A * B + (accumulate ? D : 0), bf16 operands, fp32 accumulators.
// Thread t of the warpgroup holds, for column group j of 8 columns, in d[4j .. 4j+3]: row
// 16 * (t / 32) + (t % 32) / 4, columns 8j + 2 * (t % 4) and the next; then the same columns 8 rows
// further down ("Register Fragments and Shared Memory Matrix Layouts", accumulator D).
template <int N>
struct Mma;

// clang-format off
// Operands: the accumulators' names and places in portions of 16 columns, then the two descriptors and the predicate.
#define FUSESCOPE_D16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define FUSESCOPE_D32 FUSESCOPE_D16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define FUSESCOPE_D48 FUSESCOPE_D32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define FUSESCOPE_D64 FUSESCOPE_D48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define FUSESCOPE_D80 FUSESCOPE_D64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define FUSESCOPE_D96 FUSESCOPE_D80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define FUSESCOPE_D112 FUSESCOPE_D96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define FUSESCOPE_D128 FUSESCOPE_D112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define FUSESCOPE_D144 FUSESCOPE_D128 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define FUSESCOPE_D160 FUSESCOPE_D144 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define FUSESCOPE_D176 FUSESCOPE_D160 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define FUSESCOPE_D192 FUSESCOPE_D176 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define FUSESCOPE_D208 FUSESCOPE_D192 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define FUSESCOPE_D224 FUSESCOPE_D208 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define FUSESCOPE_D240 FUSESCOPE_D224 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define FUSESCOPE_D256 FUSESCOPE_D240 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define FUSESCOPE_R8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define FUSESCOPE_R16 FUSESCOPE_R8(0)
#define FUSESCOPE_R32 FUSESCOPE_R16, FUSESCOPE_R8(8)
#define FUSESCOPE_R48 FUSESCOPE_R32, FUSESCOPE_R8(16)
#define FUSESCOPE_R64 FUSESCOPE_R48, FUSESCOPE_R8(24)
#define FUSESCOPE_R80 FUSESCOPE_R64, FUSESCOPE_R8(32)
#define FUSESCOPE_R96 FUSESCOPE_R80, FUSESCOPE_R8(40)
#define FUSESCOPE_R112 FUSESCOPE_R96, FUSESCOPE_R8(48)
#define FUSESCOPE_R128 FUSESCOPE_R112, FUSESCOPE_R8(56)
#define FUSESCOPE_R144 FUSESCOPE_R128, FUSESCOPE_R8(64)
#define FUSESCOPE_R160 FUSESCOPE_R144, FUSESCOPE_R8(72)
#define FUSESCOPE_R176 FUSESCOPE_R160, FUSESCOPE_R8(80)
#define FUSESCOPE_R192 FUSESCOPE_R176, FUSESCOPE_R8(88)
#define FUSESCOPE_R208 FUSESCOPE_R192, FUSESCOPE_R8(96)
#define FUSESCOPE_R224 FUSESCOPE_R208, FUSESCOPE_R8(104)
#define FUSESCOPE_R240 FUSESCOPE_R224, FUSESCOPE_R8(112)
#define FUSESCOPE_R256 FUSESCOPE_R240, FUSESCOPE_R8(120)

#define FUSESCOPE_MMA(N, A, B, ACCUMULATE)                                                       \
  template <>                                                                                    \
  struct Mma<N> {                                                                                \
    __device__ __forceinline__ static void issue(float (&d)[N / 2], std::uint64_t a, std::uint64_t b,            \
                                 int accumulate) {                                               \
      asm volatile(                                                                              \
          "{\n"                                                                                  \
          ".reg .pred accumulate;\n"                                                             \
          "setp.ne.b32 accumulate, " ACCUMULATE ", 0;\n"                                         \
          "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 "                            \
          "{" FUSESCOPE_D##N "}, " A ", " B ", accumulate, 1, 1, 0, 0;\n"                        \
          "}\n"                                                                                  \
          : FUSESCOPE_R##N                                                                       \
          : "l"(a), "l"(b), "r"(accumulate));                                                    \
    }                                                                                            \
  };
FUSESCOPE_MMA(16, "%8", "%9", "%10")
FUSESCOPE_MMA(32, "%16", "%17", "%18")
FUSESCOPE_MMA(48, "%24", "%25", "%26")
FUSESCOPE_MMA(64, "%32", "%33", "%34")
FUSESCOPE_MMA(80, "%40", "%41", "%42")
FUSESCOPE_MMA(96, "%48", "%49", "%50")
FUSESCOPE_MMA(112, "%56", "%57", "%58")
FUSESCOPE_MMA(128, "%64", "%65", "%66")
FUSESCOPE_MMA(144, "%72", "%73", "%74")
FUSESCOPE_MMA(160, "%80", "%81", "%82")
FUSESCOPE_MMA(256, "%128", "%129", "%130")
#undef FUSESCOPE_MMA
// clang-format on

}  // namespace fusescope::kernels::wgmma
