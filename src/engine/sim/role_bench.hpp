#pragma once
// One role of the layer alone on every rank, as micro-benchmarks measure it on hardware: what a profile is
// fitted to, and what it is checked against. Times are of the kernel, without a launch around it.

#include "engine/sim/profile.hpp"
#include "layer/problem.hpp"

namespace fusescope::engine::sim {

// Communication blocks pull, scatter and count every token; no GEMM beside them. [us]
double dispatch_alone_us(const Problem& problem, const Profile& profile, int comm_sms,
                         int tokens_per_block);

// Communication blocks pull peers' tokens and store nothing. [GB/s] per rank.
double pull_alone_gbps(const Problem& problem, const Profile& profile, int comm_sms,
                       int tokens_per_block);

// Resident blocks run every job; all rows are ready. [us]
double jobs_alone_us(const Problem& problem, const Profile& profile, int comm_sms);

// The two GEMMs on all SMs. [us]
struct GemmTimes {
  double gemm_1_us = 0;
  double gemm_2_us = 0;
};
GemmTimes gemms_alone_us(const Problem& problem, const Profile& profile, TileShape tile);

}  // namespace fusescope::engine::sim
