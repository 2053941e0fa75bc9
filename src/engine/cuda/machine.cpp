#include "engine/cuda/machine.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <fstream>
#include <regex>

#include "engine/cuda/collectives.hpp"
#include "engine/cuda/devices.hpp"
#include "kernels/cuda_check.hpp"
#include "kernels/guard.hpp"

namespace fusescope::engine::cuda {
namespace {

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  FUSESCOPE_CUDA(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

Gpu facts_of(const Device& device) {
  Gpu gpu;
  gpu.index = device.index;
  gpu.name = device.name;
  gpu.lacks = device.lacks;
  gpu.sms = device.sms;
  gpu.smem_per_block = device.smem_per_block;
  if (device.sms == 0) {
    return gpu;  // not even its attributes could be read: `lacks` says why
  }
  gpu.compute_capability =
      fmt::format("{}.{}", attribute(cudaDevAttrComputeCapabilityMajor, device.index),
                  attribute(cudaDevAttrComputeCapabilityMinor, device.index));
  gpu.l2_bytes = attribute(cudaDevAttrL2CacheSize, device.index);
  gpu.sm_clock_mhz = attribute(cudaDevAttrClockRate, device.index) / 1000;
  gpu.memory_clock_mhz = attribute(cudaDevAttrMemoryClockRate, device.index) / 1000;
  cudaDeviceProp properties{};
  FUSESCOPE_CUDA(cudaGetDeviceProperties(&properties, device.index));
  gpu.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  char pci[32] = {};
  FUSESCOPE_CUDA(cudaDeviceGetPCIBusId(pci, sizeof pci, device.index));
  gpu.pci = pci;
  return gpu;
}

GpuLink link_of(int from, int to) {
  GpuLink link{from, to};
  int value = 0;
  FUSESCOPE_CUDA(cudaDeviceCanAccessPeer(&value, from, to));
  link.peer_access = value != 0;
  if (link.peer_access) {
    FUSESCOPE_CUDA(
        cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrNativeAtomicSupported, from, to));
    link.native_atomics = value != 0;
    FUSESCOPE_CUDA(
        cudaDeviceGetP2PAttribute(&link.performance_rank, cudaDevP2PAttrPerformanceRank, from, to));
  }
  return link;
}

// "580.159.04", as the kernel module says it; "" where there is none.
std::string kernel_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::smatch match;
  return std::regex_search(line, match, std::regex("[0-9]+\\.[0-9]+(\\.[0-9]+)*")) ? match.str()
                                                                                   : "";
}

}  // namespace

Machine describe_machine() {
  Machine machine;
  machine.most_ranks = kernels::kMaxRanks;
  const NcclFound nccl = find_nccl();
  machine.nccl_file = nccl.file;
  machine.nccl_version = nccl.version;
  machine.why_no_nccl = nccl.why_not;

  machine.why_no_gpu = why_no_devices();
  if (!machine.why_no_gpu.empty()) {
    return machine;
  }
  const std::string driver = kernel_driver();
  machine.driver = driver + (driver.empty() ? "" : ", ") + driver_version();
  const std::vector<Device> devices = find_devices();
  for (const Device& device : devices) {
    machine.gpus.push_back(facts_of(device));
    for (const Device& other : devices) {
      if (other.index != device.index && other.sms > 0 && device.sms > 0) {
        machine.links.push_back(link_of(device.index, other.index));
      }
    }
  }
  return machine;
}

}  // namespace fusescope::engine::cuda
