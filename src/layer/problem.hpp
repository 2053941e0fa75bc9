#pragma once
// What is computed: a shape and a routing. How it is run is the Config's business.

#include <cstdint>
#include <string>

#include "layer/config.hpp"
#include "layer/routing.hpp"
#include "layer/shape.hpp"

namespace fusescope {

struct Problem {
  Shape shape;
  RoutingSpec routing_spec;
  Routing routing;
};

Problem make_problem(const Shape& shape, const RoutingSpec& routing);
std::string describe(
    const Problem& problem);  // "seed-tp4 (R=4 T=512 H=4096 E=64 K=8 I=768), zipf:1.2 seed 1"
std::uint64_t hash(const Problem& problem);  // over the shape and every id and weight

// What legality needs to know of a device.
struct DeviceLimits {
  std::string name;
  int sms = 0;
  int smem_per_block = 0;      // [bytes], opt-in maximum
  bool fetches_first = false;  // kernel 1 can do without communication blocks: dispatch_comm_sms 0
                               // has all blocks fetch their share of the tokens, then compute
  bool wgmma = true;           // sm_90's own matrix instructions
  GemmPath gemm = GemmPath::automatic;  // what the knob's auto is to stand for; auto: the fastest
};

// "" if the config can run, else the rule that it breaks, in words with the numbers in them:
// "dispatch_comm_sms 140 leaves no compute SM on a 132-SM device".
std::string why_illegal(const Problem& problem, const Config& config, const DeviceLimits& device);

}  // namespace fusescope
