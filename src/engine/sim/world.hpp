#pragma once
// The state that blocks share: one Rank per GPU with its memory, links, counters and flags, and the World
// with what all ranks share. A world lives for one iteration.

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "engine/sim/costs.hpp"
#include "engine/sim/recorder.hpp"
#include "engine/sim/resources.hpp"
#include "engine/sim/scheduler.hpp"
#include "engine/sim/sync.hpp"
#include "layer/problem.hpp"
#include "layer/tables.hpp"

namespace fusescope::engine::sim {

struct World;

// The blocks of a kernel. With programmatic launches those of the kernel behind take the SMs that they leave,
// in the order of their numbers.
class Kernel {
 public:
  Kernel(int rank, int blocks, int sms);

  FillCounter& ended() { return ended_; }
  // Opens when there is an SM for this block of the kernel behind.
  FillCounter& sm_for(int block) { return left_.at(static_cast<std::size_t>(block)); }
  // One more block has ended; the next one on its SM begins `follows_after` later.
  void end_block(Scheduler& scheduler, Time follows_after);

 private:
  FillCounter ended_;
  std::vector<FillCounter> left_;  // [SM, in the order in which they get free]
  std::size_t next_left_;
};

struct Rank {
  Rank(World& its_world, int its_id, const ScheduleTables& its_tables, std::uint64_t seed);
  FramePool& frame_pool();

  World& world;
  const int id;
  const ScheduleTables& tables;
  std::vector<std::int32_t> expert_of_row_block;
  std::vector<RowTile> row_tiles;  // of both kernels

  // Hardware.
  DeviceMemory memory;
  Server egress;  // of its link: rows that peers pull, rows that it pushes
  Server ingress;
  std::vector<Server> pull_lines, push_lines;  // [peer] of the emulated link

  // What lies in the L2 cache: when each piece last went through memory; -1 = never.
  std::vector<double> weights_1, weights_2;           // [expert, N tile]
  std::vector<double> gathered, activated, partials;  // [row block]

  // Device memory of the protocol.
  std::vector<FillCounter> arrivals;  // [row block]
  std::vector<FillCounter> computed;  // [row block], kernel 1's tiles
  std::vector<FillCounter> done;      // [row block], kernel 2's tiles
  int next_tile[2] = {};              // dealt out by kernel 1 and kernel 2
  Dispenser dispenser;
  Election election;
  std::vector<FillCounter> watermarks;  // [sender, chunk], raised by the sender
  std::array<std::unique_ptr<Kernel>, timeline::kStages> kernels;

  // Tracks.
  TrackId stream = 0;

  // Whose SMs this stage's blocks take; null where they begin after it.
  Kernel* kernel_before(Stage stage);
  Kernel& kernel(Stage stage) { return *kernels[static_cast<std::size_t>(stage)]; }
  int row_block(int token, int k) const;  // where hit k of a token lies
  FillCounter& watermark(int sender, int chunk);
  // A factor near 1 on a tile's or copy's time; exactly 1 when the profile has no jitter.
  double noise();

 private:
  Random random_;
};

struct World {
  World(const Problem& its_problem, const Config& its_config, const Profile& its_profile,
        const std::vector<ScheduleTables>& tables, std::uint64_t seed, bool record,
        StepChooser* chooser = nullptr);

  const Problem& problem;
  const Shape& shape;
  const Config& config;
  const Profile& profile;
  const Costs costs;
  Scheduler scheduler;
  Recorder recorder;
  std::vector<std::unique_ptr<Rank>> ranks;
  Server fabric;  // switches and root complexes, shared by all ranks
  Rendezvous ids_exchanged;
  Rendezvous entry_barrier;
  Rendezvous copied_barrier;
  Rendezvous rows_gathered;  // serial layer
  Rendezvous rows_reduced;   // serial layer
  std::vector<Time> wall;    // [rank] end of the iteration

  int sms() const { return static_cast<int>(profile.sms); }
  int chunk_of(int token) const;  // of its plane
  // Kernels begin block by block on the SMs that the one before leaves.
  bool overlaps() const {
    return config.form == LayerForm::fused && config.launch == LaunchOrder::programmatic;
  }
  bool injects(InjectPoint point) const { return config.inject.point == point; }
  Time injected(InjectPoint point) const { return injects(point) ? config.inject.delay_ns : 0; }
};

inline Time rounded(double ns) {
  return static_cast<Time>(std::llround(ns));
}
inline Time us(double microseconds) {
  return rounded(microseconds * 1e3);
}

}  // namespace fusescope::engine::sim
