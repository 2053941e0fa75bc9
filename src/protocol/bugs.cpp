#include "protocol/bugs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace fusescope::protocol {
namespace {

constexpr std::array kBugs = {
    BugEntry{Bug::arrival_fence_missing, "arrival_fence_missing",
             "arrivals are counted without the fence that releases the row", Effect::found,
             Effect::absent},
    BugEntry{Bug::arrival_counted_after_read, "arrival_counted_after_read",
             "arrivals are counted once shared memory is read, not once the row is written",
             Effect::found, Effect::absent},
    BugEntry{Bug::stored_proxy_fence_missing, "stored_proxy_fence_missing",
             "no proxy fence between completed bulk stores and the release that publishes them",
             Effect::found, Effect::found},
    BugEntry{Bug::gate_relaxed, "gate_relaxed", "the gate polls relaxed, without a fence",
             Effect::found, Effect::absent},
    BugEntry{Bug::gate_proxy_fence_missing, "gate_proxy_fence_missing",
             "no proxy fence between the gate's acquire and the bulk loads", Effect::found,
             Effect::found},
    BugEntry{Bug::gate_wait_unguarded, "gate_wait_unguarded",
             "the gate watches neither deadline nor abort word", Effect::found, Effect::absent},
    BugEntry{Bug::pull_proxy_fence_missing, "pull_proxy_fence_missing",
             "no proxy fence between the device barrier's edge and the bulk loads of peers' rows",
             Effect::found, Effect::absent},
    BugEntry{Bug::pull_parity_kept, "pull_parity_kept",
             "a row slot waits for the same mbarrier parity each time", Effect::found,
             Effect::found},
    BugEntry{Bug::pull_not_drained, "pull_not_drained",
             "a row slot leaves while the pull that it gave up may still land", Effect::found,
             Effect::found},
    BugEntry{Bug::fetched_barrier_missing, "fetched_barrier_missing",
             "a block that fetches first starts its GEMM while rows are still in flight",
             Effect::found, Effect::absent},
    BugEntry{Bug::slack_one_too_many, "slack_one_too_many",
             "arrival counters start one too high: a block opens a row early", Effect::found,
             Effect::absent},
    BugEntry{Bug::slack_one_too_few, "slack_one_too_few", "arrival counters start one too low",
             Effect::found, Effect::absent},
    BugEntry{Bug::ring_reused_early, "ring_reused_early",
             "the producer refills a stage without waiting until it was read", Effect::found,
             Effect::found},
    BugEntry{Bug::chunk_drain_unwatched, "chunk_drain_unwatched",
             "the epilogue writes a staged chunk without waiting until it was read", Effect::found,
             Effect::found},
    BugEntry{Bug::join_slots_too_few, "join_slots_too_few",
             "the two storers of a block count all tiles' halves in one word", Effect::found,
             Effect::found},
    BugEntry{Bug::first_half_signals, "first_half_signals",
             "the first of a tile's two storers signals it, not the second", Effect::found,
             Effect::found},
    BugEntry{Bug::staged_proxy_fence_missing, "staged_proxy_fence_missing",
             "no proxy fence between the epilogue's stores and the bulk store that reads them",
             Effect::found, Effect::found},
    BugEntry{Bug::done_relaxed, "done_relaxed", "done counters are incremented relaxed",
             Effect::found, Effect::found},
    BugEntry{Bug::join_barrier_missing, "join_barrier_missing",
             "a block's warps start jobs without meeting after the GEMM", Effect::found,
             Effect::found},
    BugEntry{Bug::join_on_gemm_barrier, "join_on_gemm_barrier",
             "warps that finish the GEMM meet on its barrier, with a count of their own",
             Effect::found, Effect::absent},
    BugEntry{
        Bug::job_init_unordered, "job_init_unordered",
        "the parts of a job's warpgroup do not meet behind the initialisation of their barriers",
        Effect::found, Effect::absent},
    BugEntry{Bug::job_barrier_shared, "job_barrier_shared",
             "all warpgroups of a block meet on one named barrier", Effect::found, Effect::absent},
    BugEntry{
        Bug::ready_proxy_fence_missing, "ready_proxy_fence_missing",
        "no proxy fence between the acquire of a job's row blocks and the bulk loads of its rows",
        Effect::found, Effect::absent},
    BugEntry{Bug::piece_refilled_early, "piece_refilled_early",
             "the front refills a piece without waiting until it was read", Effect::found,
             Effect::absent},
    BugEntry{Bug::piece_expects_one_row, "piece_expects_one_row",
             "a piece is full when one of a job's rows has landed", Effect::found, Effect::absent},
    BugEntry{Bug::piece_token_unreleased, "piece_token_unreleased",
             "a piece's token is written behind the arrival that hands it over", Effect::found,
             Effect::absent},
    BugEntry{Bug::piece_summed_early, "piece_summed_early",
             "only a job's first piece is waited for: the next are summed before they have landed",
             Effect::found, Effect::absent},
    BugEntry{Bug::piece_freed_early, "piece_freed_early",
             "a summing warp gives a piece back, then reads it", Effect::found, Effect::absent},
    BugEntry{Bug::piece_parity_kept, "piece_parity_kept",
             "the ring of pieces keeps its parity when it wraps", Effect::found, Effect::absent},
    BugEntry{Bug::empty_counts_one_warp, "empty_counts_one_warp",
             "a piece is free when one of the two summing warps has read it", Effect::found,
             Effect::absent},
    BugEntry{Bug::summed_counts_one_warp, "summed_counts_one_warp",
             "a row is handed over when one of the two summing warps has written it", Effect::found,
             Effect::absent},
    BugEntry{Bug::row_rewritten_early, "row_rewritten_early",
             "a row buffer is written again without waiting until it was read", Effect::found,
             Effect::absent},
    BugEntry{Bug::job_buffer_single, "job_buffer_single",
             "the two row buffers, each with its barriers, are the same memory", Effect::found,
             Effect::absent},
    BugEntry{Bug::job_proxy_fence_missing, "job_proxy_fence_missing",
             "no proxy fence between a job's sum and the push that reads it", Effect::found,
             Effect::absent},
    BugEntry{Bug::job_proxy_fence_by_one, "job_proxy_fence_by_one",
             "one of the two summing warps leaves the proxy fence to the other", Effect::found,
             Effect::absent},
    BugEntry{Bug::drained_before_read, "drained_before_read",
             "the pusher gives a row buffer back before the copy engine has read it", Effect::found,
             Effect::absent},
    BugEntry{Bug::row_token_read_late, "row_token_read_late",
             "the pusher reads a row's token again when it has given the buffer back",
             Effect::found, Effect::absent},
    BugEntry{Bug::stop_overtakes_pieces, "stop_overtakes_pieces",
             "the front writes the stop token into the ring without waiting for a free piece",
             Effect::found, Effect::absent},
    BugEntry{Bug::stop_not_handed_on, "stop_not_handed_on",
             "the summing warps end at the stop token without telling the pusher", Effect::found,
             Effect::absent},
    BugEntry{Bug::abort_without_stop, "abort_without_stop",
             "a front whose wait was given up ends without the stop token", Effect::found,
             Effect::absent},
    BugEntry{Bug::push_counted_after_read, "push_counted_after_read",
             "pushes are counted once shared memory is read, not once the row is written",
             Effect::found, Effect::found},
    BugEntry{Bug::push_count_relaxed, "push_count_relaxed",
             "pushes are counted relaxed, without fences", Effect::found, Effect::found},
    BugEntry{Bug::push_wait_one_too_few, "push_wait_one_too_few",
             "a push is counted while it and the one behind it may be in flight", Effect::found,
             Effect::absent},
    BugEntry{Bug::pushed_proxy_fence_missing, "pushed_proxy_fence_missing",
             "no proxy fence between a completed push and its count", Effect::found,
             Effect::absent},
    BugEntry{Bug::push_counts_the_next, "push_counts_the_next",
             "a push that is complete is counted as the one behind it", Effect::found,
             Effect::absent},
    BugEntry{Bug::last_push_uncounted, "last_push_uncounted",
             "the pusher ends without counting its last push", Effect::found, Effect::absent},
    BugEntry{Bug::watermark_before_copy, "watermark_before_copy",
             "a push is counted, and the watermark raised, before its copy is complete",
             Effect::found, Effect::found},
    BugEntry{Bug::watermark_gpu_scope, "watermark_gpu_scope",
             "the watermark is released at gpu scope", Effect::found, Effect::found},
    BugEntry{Bug::election_one_late, "election_one_late",
             "the election looks for one push more than there are", Effect::found, Effect::found},
    BugEntry{Bug::election_one_early, "election_one_early",
             "the election looks for one push fewer than there are", Effect::found, Effect::found},
    BugEntry{Bug::two_elected, "two_elected", "the last two pushes of a chunk are both elected",
             Effect::found, Effect::found},
    BugEntry{Bug::chunk_size_rounded_up, "chunk_size_rounded_up",
             "a chunk's size is T / chunks rounded up, whichever chunk it is", Effect::found,
             Effect::found},
    BugEntry{Bug::first_chunk_opens_all, "first_chunk_opens_all",
             "the final reduce waits for the watermark of its first chunk only", Effect::found,
             Effect::found},
    BugEntry{Bug::plane_index_wrong, "plane_index_wrong",
             "rows go to the plane of the receiver, not of the sender", Effect::found,
             Effect::found},
    BugEntry{Bug::claim_not_atomic, "claim_not_atomic",
             "a job is claimed by a load and a store instead of one atomic", Effect::found,
             Effect::found},
    BugEntry{Bug::dispenser_not_reset, "dispenser_not_reset",
             "the dispenser goes on counting in the next iteration", Effect::found, Effect::found},
    BugEntry{Bug::job_order_misses_one, "job_order_misses_one",
             "job order names one token twice and another never", Effect::found, Effect::absent},
    BugEntry{Bug::jobs_before_gemm_resident, "jobs_before_gemm_resident",
             "block per job: job blocks do not wait until the GEMM's blocks are resident",
             Effect::found, Effect::absent},
    BugEntry{Bug::ready_wait_unguarded, "ready_wait_unguarded",
             "a job's wait for its row blocks watches neither deadline nor abort word",
             Effect::found, Effect::found},
    BugEntry{Bug::copied_by_any_block, "copied_by_any_block",
             "prologue: the tokens are announced by the first block that copies, not by the last",
             Effect::found, Effect::absent},
    BugEntry{Bug::ids_parts_unwatched, "ids_parts_unwatched",
             "prologue: the tables are built once the first part of every rank's ids is there",
             Effect::found, Effect::absent},
    BugEntry{Bug::sequence_reset, "sequence_reset",
             "the iteration number starts again with every iteration", Effect::found,
             Effect::found},
    BugEntry{Bug::copied_barrier_skipped, "copied_barrier_skipped",
             "kernel 1 starts without the barrier after copy-in", Effect::found, Effect::absent},
    BugEntry{Bug::staging_reused_early, "staging_reused_early",
             "the next iteration does not wait for the final reduce of this one", Effect::found,
             Effect::found},
    BugEntry{Bug::colocated_barrier_in_one_part, "colocated_barrier_in_one_part",
             "ranks that share a GPU arrive and wait in one kernel each", Effect::found,
             Effect::found},
    BugEntry{Bug::watermarks_kept_after_abort, "watermarks_kept_after_abort",
             "after an abort the host clears everything but the watermarks", Effect::found,
             Effect::found},
    BugEntry{Bug::entry_barrier_skipped, "entry_barrier_skipped",
             "no entry barrier: the ids exchange of the same iteration orders the same accesses",
             Effect::implied, Effect::found},
    BugEntry{Bug::join_proxy_fence_missing, "join_proxy_fence_missing",
             "no proxy fence before the block's meeting between GEMM and jobs", Effect::implied,
             Effect::absent},
    BugEntry{Bug::releasing_fences_missing, "releasing_fences_missing",
             "no fences in front of stores and atomics that release by themselves", Effect::implied,
             Effect::implied},
};

}  // namespace

std::span<const BugEntry> bugs() {
  return kBugs;
}

std::string_view name(Bug bug) {
  const auto found = std::find_if(kBugs.begin(), kBugs.end(),
                                  [&](const BugEntry& entry) { return entry.bug == bug; });
  return found == kBugs.end() ? "none" : found->name;
}

Effect effect_on(const BugEntry& entry, Subject subject) {
  return subject == Subject::layer ? entry.on_layer : entry.on_reduce_scatter;
}

Bug parse_bug(const std::string& text, const std::string& option) {
  if (text == "none") {
    return Bug::none;
  }
  std::vector<std::string> known;
  for (const BugEntry& entry : kBugs) {
    if (entry.name == text) {
      return entry.bug;
    }
    known.emplace_back(entry.name);
  }
  const std::string nearest = nearest_name(text, known);
  throw InputError(
      {option, "",
       fmt::format("unknown bug \"{}\"{}", text,
                   nearest.empty() ? "" : fmt::format(", did you mean \"{}\"?", nearest)),
       spoken_list(known)});
}

}  // namespace fusescope::protocol
