#include "synthetic.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fusescope::reports {

namespace {

using timeline::Event;
using timeline::Kind;
using timeline::Role;
using timeline::Stage;

constexpr int kTokens = 32;  // per rank
constexpr int kTopk = 2;
constexpr int kRowBlocks = 4;
constexpr int kLanes = 4;
constexpr int kComputeBlocks = 3;

int first_row_block(int token) {
  return (token / 16) % kRowBlocks;
}
int second_row_block(int token) {
  return std::min(first_row_block(token) + 1, kRowBlocks - 1);
}

struct Builder {
  int ranks;
  timeline::Timeline timeline;

  std::uint32_t track(int rank, Stage stage, Role role, int block, int lane = 0) {
    timeline.tracks.push_back({rank, rank, stage, role, block, lane});
    return static_cast<std::uint32_t>(timeline.tracks.size() - 1);
  }
  std::int64_t put(std::uint32_t track, Kind kind, std::int64_t begin, std::int64_t length,
                   int token = -1, int row_block = -1, int index = -1, int peer = -1) {
    Event event;
    event.begin_ns = begin;
    event.end_ns = begin + length;
    event.track = track;
    event.token = token;
    event.row_block = row_block;
    event.index = index;
    event.peer = static_cast<std::int16_t>(peer);
    event.kind = kind;
    timeline.events.push_back(event);
    return event.end_ns;
  }
};

// Kernel 1 of a rank; returns its end.
std::int64_t dispatch(Builder& to, int rank, std::int64_t begin) {
  std::vector<std::int64_t> open(kRowBlocks, begin);
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t track = to.track(rank, Stage::dispatch_gemm, Role::communication, 3, lane);
    std::int64_t at = begin + 100;
    for (int token = lane; token < to.ranks * kTokens; token += kLanes) {
      const int source = token / kTokens;
      at = to.put(track, Kind::pull, at, source == rank ? 300 : 900, token, -1, -1, source);
      at = to.put(track, Kind::scatter, at, 400, token);
      at = to.put(track, Kind::arrive, at, 60, token);
      for (const int block : {first_row_block(token), second_row_block(token)}) {
        open[static_cast<std::size_t>(block)] = std::max(open[static_cast<std::size_t>(block)], at);
      }
    }
  }
  std::vector<std::int64_t> last(kComputeBlocks, begin);
  std::vector<std::uint32_t> tracks;
  for (int block = 0; block < kComputeBlocks; ++block) {
    tracks.push_back(to.track(rank, Stage::dispatch_gemm, Role::compute, block));
  }
  for (int row_block = 0; row_block < kRowBlocks; ++row_block) {
    const auto block = static_cast<std::size_t>(row_block % kComputeBlocks);
    std::int64_t at = last[block];
    const std::int64_t opened = open[static_cast<std::size_t>(row_block)] + 20;
    if (opened > at) {
      at = to.put(tracks[block], Kind::gate_wait, at, opened - at, -1, row_block, 0);
    }
    at = to.put(tracks[block], Kind::mainloop, at, 5000, -1, row_block, 0);
    last[block] = to.put(tracks[block], Kind::epilogue, at, 600, -1, row_block, 0);
  }
  return *std::max_element(last.begin(), last.end());
}

// Kernel 2 of a rank; returns its end, and when its watermark at each rank is visible.
std::pair<std::int64_t, std::int64_t> combine(Builder& to, int rank, std::int64_t begin) {
  std::vector<std::int64_t> done(kRowBlocks);
  std::vector<std::int64_t> last(kComputeBlocks, begin);
  for (int block = 0; block < kComputeBlocks; ++block) {
    const std::uint32_t track = to.track(rank, Stage::gemm_combine_push, Role::compute, block);
    for (int row_block = block; row_block < kRowBlocks; row_block += kComputeBlocks) {
      const auto b = static_cast<std::size_t>(block);
      const std::int64_t at = to.put(track, Kind::mainloop, last[b], 4000, -1, row_block, 0);
      last[b] = to.put(track, Kind::epilogue, at, 500, -1, row_block, 0);
      done[static_cast<std::size_t>(row_block)] = last[b];
    }
  }
  const std::uint32_t track = to.track(rank, Stage::gemm_combine_push, Role::communication, 3);
  std::int64_t at = begin;
  std::int64_t visible = begin;
  std::vector<int> order;
  for (int token = 0; token < to.ranks * kTokens; ++token) {
    order.push_back(token);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](int a, int b) { return second_row_block(a) < second_row_block(b); });
  std::vector<int> left(to.ranks, kTokens);
  for (int job = 0; job < to.ranks * kTokens; ++job) {
    const int token = order[static_cast<std::size_t>(job)];
    const int to_rank = token / kTokens;
    at = to.put(track, Kind::claim, at, 40, token, -1, job);
    const auto block = static_cast<std::size_t>(second_row_block(token));
    const std::int64_t ready =
        std::max(done[block], done[static_cast<std::size_t>(first_row_block(token))]) + 30;
    if (ready > at) {
      at = to.put(track, Kind::ready_wait, at, ready - at, token, second_row_block(token), job);
    }
    at = to.put(track, Kind::sum, at, 120, token, -1, job);
    at = to.put(track, Kind::push, at, 200, token, -1, job, to_rank);
    at = to.put(track, Kind::elect, at, 20, token, -1, job, to_rank);
    if (--left[static_cast<std::size_t>(to_rank)] == 0) {
      at = to.put(track, Kind::watermark, at, 700, -1, -1, 0, to_rank);
      visible = at;
    }
  }
  return {std::max(at, *std::max_element(last.begin(), last.end())), visible};
}

ReportTrial trial(int id, int comm, int tokens, bool hands, double wall) {
  ReportTrial out;
  out.id = id;
  out.config =
      fmt::format("dispatch_comm_sms={} tokens_per_block={} all_hands={}", comm, tokens, hands);
  out.knobs = {{"dispatch_comm_sms", fmt::format("{}", comm)},
               {"tokens_per_block", fmt::format("{}", tokens)},
               {"all_hands", hands ? "true" : "false"},
               {"pull_order", "by_slot"},
               {"slot_order", "by_token"},
               {"study", "full"},
               {"inject", "none"}};
  out.median_us = wall;
  out.timeline_wall_us = wall;
  out.steps_us = {{"schedule build", 20},
                  {"dispatch head", 0.1 * wall},
                  {"GEMM 1", 0.5 * wall},
                  {"GEMM 2", 0.3 * wall},
                  {"push drain", 0.1 * wall - 20}};
  out.exposed_us = 0.15 * wall;
  return out;
}

void add_trials(ReportInput& input) {
  int id = 0;
  for (const int comm : {4, 8, 16}) {
    for (const int tokens : {8, 12}) {
      for (const bool hands : {true, false}) {
        input.trials.push_back(
            trial(id++, comm, tokens, hands, 1500 - 20 * comm - 2 * tokens - (hands ? 100 : 0)));
      }
    }
  }
  ReportTrial illegal = trial(id++, 140, 8, true, 0);
  illegal.verdict = "illegal";
  illegal.reason = "dispatch_comm_sms 140 leaves no compute SM on a 110-SM device";
  illegal.steps_us.clear();
  input.trials.push_back(illegal);
  ReportTrial late = illegal;
  late.id = id++;
  late.verdict = "timed_out";
  late.reason = "no progress for 5 s";
  input.trials.push_back(late);
  ReportTrial serial = trial(id, 0, 0, false, 1400);
  serial.serial = true;
  serial.label = "serial";
  serial.config = "form=serial";
  serial.steps_us = {
      {"all-gather", 300}, {"GEMM 1", 600}, {"GEMM 2", 300}, {"reduce-scatter", 200}};
  input.trials.push_back(serial);
}

void add_ladder(ReportInput& input) {
  const std::vector<std::pair<const char*, double>> rungs = {
      {"serial", 1400},       {"fused, unordered", 1930}, {"+ pull order", 1640},
      {"+ job order", 1520},  {"+ dispenser", 1300},      {"+ all hands", 1180},
      {"+ tuned split", 1056}};
  double before = 0;
  for (const auto& [name, wall] : rungs) {
    analysis::LadderStep step;
    step.name = name;
    step.config = "combine=dispenser";
    step.wall_us = wall;
    step.gain_us = before > 0 ? before - wall : 0;
    step.against_serial = wall / 1400 - 1;
    input.ladder.steps.push_back(step);
    before = wall;
  }
}

}  // namespace

timeline::Timeline synthetic_timeline(int ranks) {
  Builder to{ranks, {}};
  timeline::Timeline& timeline = to.timeline;
  timeline.meta.device = "synthetic";
  timeline.meta.sms = kComputeBlocks + 1;
  timeline.meta.config = "dispatch_comm_sms=1";
  timeline.wiring.ranks = ranks;
  timeline.wiring.tokens_per_rank = kTokens;
  timeline.wiring.topk = kTopk;
  timeline.wiring.n_tiles_1 = 1;
  timeline.wiring.n_tiles_2 = 1;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::int32_t> hits;
    for (int token = 0; token < ranks * kTokens; ++token) {
      hits.push_back(first_row_block(token));
      hits.push_back(second_row_block(token));
    }
    timeline.wiring.hit_row_block.push_back(hits);
    timeline.wiring.expert_of_row_block.push_back({0, 1, 2, 3});
  }
  std::vector<std::uint32_t> streams;
  std::vector<std::int64_t> ends;
  std::vector<std::int64_t> visible;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::uint32_t stream = to.track(rank, Stage::stream, Role::stream, 0);
    streams.push_back(stream);
    std::int64_t at = to.put(stream, Kind::ids_exchange, 0, 4000);
    at = to.put(stream, Kind::schedule_build, at + 200, 9000);
    at = to.put(stream, Kind::barrier, at, 1000, -1, -1, 0);
    at = to.put(stream, Kind::copy_in, at, 800);
    at = to.put(stream, Kind::barrier, at, 1000, -1, -1, 1);
    const std::int64_t k1 = dispatch(to, rank, at + 300);
    to.put(stream, Kind::dispatch_gemm, at + 300, k1 - at - 300);
    at = to.put(stream, Kind::activation, k1 + 200, 2500);
    at = to.put(stream, Kind::dispenser_reset, at, 100);
    const auto [k2, seen] = combine(to, rank, at + 300);
    to.put(stream, Kind::gemm_combine_push, at + 300, k2 - at - 300);
    ends.push_back(k2);
    visible.push_back(seen);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const std::uint32_t track = to.track(rank, Stage::final_reduce, Role::reduce, 0);
    const std::int64_t begin = ends[static_cast<std::size_t>(rank)] + 200;
    std::int64_t at = begin;
    const std::int64_t seen = *std::max_element(visible.begin(), visible.end()) + 50;
    if (seen > at) {
      at = to.put(track, Kind::reduce_wait, at, seen - at, -1, -1, 0, (rank + 1) % ranks);
    }
    at = to.put(track, Kind::reduce, at, 1500, -1, -1, 0);
    to.put(streams[static_cast<std::size_t>(rank)], Kind::final_reduce, begin, at - begin);
    timeline.end_ns = std::max(timeline.end_ns, at);
  }
  timeline::sort_events(timeline);
  return timeline;
}

ReportInput synthetic_input(int ranks) {
  ReportInput input;
  input.name = "synthetic";
  input.why = "Shows the report.";
  input.problem = fmt::format("tiny (R={} T=32 K=2)", ranks);
  input.source = "simulated on synthetic";
  input.engine = "sim";
  input.profile = "synthetic";
  input.profile_about = "a made-up machine";
  input.profile_numbers = {{"sms", "4", "", "assumed", "made up"},
                           {"link", "25", "GB/s", "datasheet", "made up"}};
  input.command = "fusescope sweep synthetic.json";
  input.date = "2026-01-02T03:04:05Z";
  input.fusescope = "fusescope 0.1.0 (0123456789ab)";
  input.rendered_by = "fusescope 0.1.0 (ba9876543210)";
  input.axes = {"dispatch_comm_sms", "tokens_per_block", "all_hands"};
  add_trials(input);
  add_ladder(input);
  input.published = {
      {"schedule rebuild", "µs", 250, 246, true, "the profile's schedule times"},
      {"tuned against serial", "%", -20, -24.6, false, "the last rung"},
      {"bf16 relative error", "", 0.004, std::nullopt, false, "not part of a simulation"}};
  ChosenRun run;
  run.name = "the best config";
  run.why = "the fastest of the sweep";
  run.timeline = synthetic_timeline(ranks);
  run.attribution = analysis::attribute(run.timeline);
  input.chosen = std::move(run);
  input.files = {{"trial log", "trials.jsonl"}};
  return input;
}

}  // namespace fusescope::reports
