#pragma once
// What bounds every wait on the device: a deadline, an abort word per rank, and the place where the
// first wait of a rank that runs out of time leaves its diagnosis. Host and device; the waits are in
// bounded_wait.cuh.

#include <cstdint>
#include <string>

namespace fusescope::kernels {

inline constexpr int kMaxRanks = 16;

// What a wait waits for.
enum class Wait : std::uint32_t {
  ids,        // every rank's ids; index = the rank that is late
  barrier,    // every rank's arrival; index = the rank that is late
  start,      // the same, before a timed iteration
  pull,       // a row's bulk copy; index = token
  gate,       // a row block's arrival counter; index = row block
  begun,      // launch programmatic: kernel 1; index = -1
  computed,   // the same: kernel 1's tiles of a row block; index = row block
  ready,      // a row block's done counter; index = row block
  residency,  // block per job: the GEMM's blocks; index = how many there must be
  watermark,  // a plane's watermark; index = sending rank
  clock,      // the end of an injected delay or of an emulated transfer; index = token, or -1
};

// Written once per rank, by the first wait that runs out of time. Lives in host memory: the host
// reads it after the launch has ended.
struct Diagnosis {
  std::uint32_t valid = 0;
  std::int32_t rank = -1;
  std::int32_t block = -1;
  Wait what = Wait::ids;
  std::int32_t index = -1;
  std::uint64_t expected = 0;
  std::uint64_t seen = 0;
  std::uint64_t waited_ns = 0;
};

// "rank 1 block 117: waited 2000.0 ms for row block 31 to be filled (arrival counter): expected 128,
// seen 127"
std::string to_string(const Diagnosis& diagnosis);

struct Guard {
  std::uint64_t deadline_ns = 0;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  std::uint32_t* claimed = nullptr;            // this rank's memory: 1 once a diagnosis is taken
  Diagnosis* diagnosis = nullptr;              // this rank's record, in host memory
  std::uint32_t* abort_words[kMaxRanks] = {};  // one per rank, in that rank's memory
};

}  // namespace fusescope::kernels
