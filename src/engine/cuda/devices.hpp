#pragma once
// The GPUs that the cuda engine may use: which there are, what they lack, and how ranks map to them.

#include <functional>
#include <string>
#include <vector>

#include "layer/problem.hpp"

namespace fusescope::engine::cuda {

struct Device {
  int index = 0;
  std::string name;
  int sms = 0;
  int smem_per_block = 0;               // [bytes], opt-in maximum
  std::string lacks;                    // "" = usable, else what is missing, in words
  bool wgmma = true;                    // sm_90's own matrix instructions
  GemmPath gemm = GemmPath::automatic;  // what the knob's auto is to stand for
};

// What legality asks of it.
DeviceLimits limits_of(const Device& device);

// All devices of this machine; empty where there is no driver. Never throws.
std::vector<Device> find_devices();

// Why find_devices() is empty, in words; "" where it is not.
std::string why_no_devices();

// The devices asked for (all usable ones if none is named). Throws InputError when one does not exist
// or is not usable, when none is left, or when two of them differ in kind.
std::vector<Device> select_devices(const std::vector<int>& wanted);

// Lets every device map every other's memory. Throws InputError naming the pair without peer access.
void enable_peer_access(const std::vector<Device>& devices);

// What makes the i-th of the devices current on the thread that calls it.
std::function<void(int)> make_current(const std::vector<Device>& devices);

// "0 <-> 1: peer access, native atomics" for each pair, for `list devices`.
std::vector<std::string> describe_links(const std::vector<Device>& devices);

// Rank r's device: ranks lie on devices in blocks, as evenly as R allows; with more devices than ranks
// the first R are used.
std::vector<int> devices_of_ranks(const std::vector<Device>& devices, int ranks);

std::string driver_version();  // "CUDA 13.0 driver, runtime 13.0"

}  // namespace fusescope::engine::cuda
