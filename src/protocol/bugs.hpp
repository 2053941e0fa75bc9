#pragma once
// Planted bugs: one switch each, in the protocol's coroutines only. That the search finds each of them is
// what makes its silence about the unmodified protocol mean something.

#include <span>
#include <string>
#include <string_view>

#include "protocol/scenario.hpp"

namespace fusescope::protocol {

enum class Bug {
  none,
  // Kernel 1
  arrival_fence_missing,
  arrival_counted_after_read,
  stored_proxy_fence_missing,
  gate_relaxed,
  gate_proxy_fence_missing,
  gate_wait_unguarded,
  pull_proxy_fence_missing,
  pull_parity_kept,
  pull_not_drained,
  prepared_unwatched,
  prepared_before_slots,
  prepared_counts_one_too_few,
  beside_counted_after_read,
  beside_stores_unwatched,
  beside_proxy_fence_missing,
  beside_fence_missing,
  beside_pull_proxy_fence_missing,
  room_reached_by_slots,
  room_loaded_early,
  beside_parity_kept,
  rest_begins_late,
  rest_left_with_last_tile,
  beside_wait_unguarded,
  beside_not_drained,
  beside_left_with_producer,
  slack_one_too_many,
  slack_one_too_few,
  computed_relaxed,
  computed_not_reset,
  // The GEMM's block
  tile_claim_not_atomic,
  ring_reused_early,
  next_asked_early,
  shut_gate_passed,
  asked_gate_relaxed,
  asked_gate_proxy_fence_missing,
  end_not_found,
  gave_up_unsaid,
  gave_up_without_arrival,
  chunk_drain_unwatched,
  chunk_returned_early,
  lent_barrier_missing,
  lent_stage_returned_early,
  lent_stage_freed_by_readers,
  lender_kept,
  join_slots_too_few,
  first_half_signals,
  halves_joined_relaxed,
  lone_half_waits_for_second,
  lone_half_counted,
  lone_half_takes_slot,
  half_left_out_early,
  half_tile_expected_whole,
  half_tile_computed_whole,
  half_tile_not_passed_over,
  passed_over_unseen,
  first_gate_asked_for_all,
  first_gate_awaited_for_all,
  first_block_signalled,
  gathered_first_block_only,
  relay_rows_unwatched,
  relay_fence_missing,
  staged_proxy_fence_missing,
  done_relaxed,
  // Kernel 2
  join_barrier_missing,
  join_on_gemm_barrier,
  job_init_unordered,
  job_barrier_shared,
  ready_proxy_fence_missing,
  piece_refilled_early,
  piece_expects_one_row,
  piece_token_unreleased,
  piece_summed_early,
  piece_freed_early,
  piece_parity_kept,
  empty_counts_one_warp,
  summed_counts_one_warp,
  row_rewritten_early,
  job_buffer_single,
  job_proxy_fence_missing,
  job_proxy_fence_by_one,
  drained_before_read,
  row_token_read_late,
  stop_overtakes_pieces,
  stop_not_handed_on,
  abort_without_stop,
  push_counted_after_read,
  push_count_relaxed,
  push_wait_one_too_few,
  pushed_proxy_fence_missing,
  push_counts_the_next,
  last_push_uncounted,
  watermark_before_copy,
  watermark_gpu_scope,
  election_one_late,
  election_one_early,
  two_elected,
  chunk_size_rounded_up,
  first_chunk_opens_all,
  plane_index_wrong,
  claim_not_atomic,
  dispenser_not_reset,
  job_order_misses_one,
  jobs_before_gemm_resident,
  ready_wait_unguarded,
  // Kernels that overlap
  prologue_unwatched,
  begun_relaxed,
  begun_unwatched,
  begun_seen_by_one,
  iteration_read_cached,
  activations_unwatched,
  computed_gate_relaxed,
  computed_gate_proxy_fence_missing,
  computed_gate_wait_unguarded,
  kernel_2_ends_early,
  reduce_ends_early,
  // The prologue
  id_taken_at_sight,
  ids_taken_together,
  cluster_left,
  weights_sent_by_cluster,
  weights_sent_behind_count,
  tokens_pushed_behind_count,
  tokens_pushed_to_receivers_rows,
  tokens_pushed_beside_reduce,
  copied_by_any_block,
  copied_counted_relaxed,
  copied_raised_relaxed,
  copied_awaited_relaxed,
  own_copy_unwatched,
  // Between kernels and iterations
  sequence_reset,
  copied_barrier_skipped,
  staging_reused_early,
  colocated_barrier_in_one_part,
  watermarks_kept_after_abort,
  stamped_ids_kept_after_abort,
  // Not bugs: steps that the search says are implied by others
  entry_barrier_skipped,
  join_proxy_fence_missing,
  releasing_fences_missing,
};

enum class Effect {
  found,    // breaks the protocol
  implied,  // what is left out is implied by other steps: nothing is to be found
  absent,   // the kernel has no such step
};

struct BugEntry {
  Bug bug;
  std::string_view name;
  std::string_view what;  // what the code does wrong
  Effect on_layer;
  Effect on_reduce_scatter;
};
Effect effect_on(const BugEntry& entry, Subject subject);

std::span<const BugEntry> bugs();  // without `none`
std::string_view name(Bug bug);    // "none" too
// Throws InputError naming the option, with a suggestion.
Bug parse_bug(const std::string& text, const std::string& option);

}  // namespace fusescope::protocol
