#pragma once
// The fused layer as a protocol: its kernels' roles as coroutines (one file a kernel), its streams, and the
// checks that no single access can make. Everything here is to be read beside kernels/: the same steps in
// the same order, with the memory operations of the device.

#include <vector>

#include "protocol/layer/places.hpp"
#include "protocol/layer/round.hpp"
#include "protocol/machine.hpp"
#include "protocol/model.hpp"

namespace fusescope::protocol {

class Layer final : public Model {
 public:
  Layer(Machine& machine, const Scenario& scenario, Bug bug);

  static MachineSize size_of(const Scenario& scenario);

  // One stream per device, all iterations back to back.
  void start() override;
  // After a fault: was it reported? Then clears the protocol's words, as a host does that has waited for
  // all devices, and starts one more iteration. False if the fault left nothing to go on with.
  bool recover() override;

  bool has(Bug wanted) const { return bug == wanted; }
  int chunk_of(int t) const {
    return ((t + 1) * s.config.watermark_chunks - 1) / s.tokens_per_rank;
  }
  int chunk_begin(int chunk) const { return chunk * s.tokens_per_rank / s.config.watermark_chunks; }
  int source_rank(int token) const { return token / s.tokens_per_rank; }
  // A block that begins finds its shared memory and barriers undefined.
  const BlockPlaces& fresh_block(int rank, int place);
  // Smem row `row` of a block.
  Span smem_row(const BlockPlaces& block, int row) const {
    return {block.smem + row * block.row_pitch, s.row_block};
  }
  CellId smem_weights(const BlockPlaces& block, int row) const {
    return block.smem + row * block.row_pitch + stage_rows(s);
  }
  CellId tile_cells(CellId base, int row_block, int n_tile) const {
    return base + (row_block * s.n_tiles() + n_tile) * s.row_block;
  }
  CellId staging_cell(int receiver, int plane, int t) const {
    return places[receiver].staging + plane * s.tokens_per_rank + t;
  }
  WordId watermark(int receiver, int plane, int chunk) const {
    return places[receiver].watermarks + plane * s.config.watermark_chunks + chunk;
  }
  WordId pushed(int rank, int to, int chunk) const {
    return places[rank].pushed + to * s.config.watermark_chunks + chunk;
  }
  // Whether kernels begin before the ones before them have ended.
  bool overlaps() const {
    return s.subject == Subject::layer && s.config.launch == LaunchOrder::programmatic;
  }
  bool gathers() const { return s.subject == Subject::layer && gathers_rows(s.config); }
  // Whether each rank's prologue stores its tokens to all others, and kernel 1 pulls none.
  bool pushes_tokens() const {
    return s.subject == Subject::layer && fusescope::pushes_tokens(s.config);
  }
  // The token's place among all tokens of a rank, whose own are its shared tokens.
  CellId among_all(int rank, int token) const {
    const RankPlaces& of = places[rank];
    return source_rank(token) == rank ? of.tokens + token % s.tokens_per_rank
                                      : of.all_tokens + token;
  }
  // Counters::iteration, by a kernel that may have begun before another ended that orders its value.
  std::uint64_t iteration_of(const Thread& thread) const {
    const CellId iteration = places[thread.rank()].iteration;
    return overlaps() && !has(Bug::iteration_read_cached)
               ? thread.read_past_caches(iteration, kAnyStamp)
               : thread.read(iteration, kAnyStamp);
  }
  // Whether the rank loses this signal in this iteration.
  bool loses(Fault signal, int rank, const Round& round) const {
    return s.fault == signal && rank == s.fault_rank && round.stamp == s.fault_iteration + 1;
  }
  // One look at the rank's abort word, before a role begins.
  LoadWord aborted(Thread& thread) const {
    return thread.load(places[thread.rank()].abort, Order::relaxed, Scope::system);
  }

  // What the rules say happens exactly once; anything else is a finding.
  void claimed(const Thread& by, int token);
  void elected(const Thread& by, int to, int chunk);
  void begin_round(int rank);
  void check_round(int rank, const Round& round);    // its kernels have ended
  void check_outputs(int rank, const Round& round);  // its final reduce has ended

  Machine& machine;
  const Scenario& s;
  Bug bug;
  std::vector<Round> rounds;
  int row_blocks = 0;  // capacity
  std::vector<RankPlaces> places;

 private:
  void start_streams(int first_round, int last_round, bool knowing);

  std::vector<std::vector<int>> claims_;     // [rank][token], this round
  std::vector<std::vector<int>> elections_;  // [rank][receiver and chunk], this round
};

// --- kernels: each launches its threads on the stream --------------------------------------------------

struct Part {
  bool arrive = true;
  bool wait = true;
};
// What a launch of the prologue does (kernels/prologue.hpp).
struct PrologueSteps {
  bool send = true;
  bool build = true;
  bool meet = true;
};
LaunchId launch_prologue(Layer& layer, Thread& stream, int rank, const Round& round,
                         PrologueSteps steps);
// Of a planted bug: what its copying blocks push, and no more.
LaunchId launch_token_push(Layer& layer, Thread& stream, int rank, const Round& round);
LaunchId launch_ids_exchange(Layer& layer, Thread& stream, int rank, const Round& round, Part part);
LaunchId launch_device_barrier(Layer& layer, Thread& stream, int rank, BarrierPoint point,
                               const Round& round, Part part);
Task device_barrier(Thread& stream, Layer& layer, const std::vector<int>& ranks, const Round& round,
                    BarrierPoint point);
LaunchId launch_seed_counters(Layer& layer, Thread& stream, int rank, const Round& round);
// What the prologue shares with the kernels of their own. Weights: part `part` of `parts`, to one peer.
void send_weights(Thread& t, const Layer& layer, const Round& round, int peer, int part, int parts);
void write_tables(Thread& t, const Layer& layer, const Round& round);
void seed_counters(Thread& t, const Layer& layer, const Round& round);
void count_iteration(Thread& t, const Layer& layer, const Round& round);
Task build_schedule(Thread& stream, Layer& layer, int rank, const Round& round);
LaunchId launch_copy_in(Layer& layer, Thread& stream, int rank, const Round& round);
LaunchId launch_activation(Layer& layer, Thread& stream, int rank, const Round& round);
// `before`: the kernel that may still run when this one begins, and ends before it; -1 = none does.
LaunchId launch_final_reduce(Layer& layer, Thread& stream, int rank, const Round& round,
                             LaunchId before = -1);
// Kernels 1 and 2: these return when all blocks have begun.
class ResidentKernel;
Task begin_dispatch_gemm(ResidentKernel& kernel, Layer& layer, int rank, const Round& round);
Task begin_gemm_combine_push(ResidentKernel& kernel, Layer& layer, int rank, const Round& round,
                             LaunchId before = -1);
// Block per job: the branch beside kernel 2, before that is launched.
LaunchId begin_block_per_job(Layer& layer, Thread& stream, int rank, const Round& round);

// A device's stream (src/engine/cuda/iteration.hpp): rounds [first, last].
Task device_stream(Thread& stream, Layer& layer, int device, int first, int last);

// --- one warpgroup's way through the jobs (kernels/combine_job.cuh) -------------------------------------

struct JobGroup {
  Layer& layer;
  const Round& round;
  const BlockPlaces& block;
  int group;
  int one_job;  // block per job: the only job; -1 = claim from the dispenser
  const JobPlaces& places() const { return block.jobs[group]; }
};
// Its front, each of its kSummingWarps, its pusher.
Task fetch_jobs(Thread& thread, JobGroup jobs);
Task sum_jobs(Thread& thread, JobGroup jobs, int warp);
Task push_rows(Thread& thread, JobGroup jobs);

}  // namespace fusescope::protocol
