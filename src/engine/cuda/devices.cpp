#include "engine/cuda/devices.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.hpp"
#include "kernels/cuda_check.hpp"

namespace fusescope::engine::cuda {
namespace {

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  FUSESCOPE_CUDA(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

std::string what_it_lacks(int device) {
  const int major = attribute(cudaDevAttrComputeCapabilityMajor, device);
  const int minor = attribute(cudaDevAttrComputeCapabilityMinor, device);
  const bool built_for = minor == 0 && (major == 9 || major == 10 || major == 12);
  if (!built_for) {
    return fmt::format("compute capability {}.{}, and the kernels are built for 9.0, 10.0 and 12.0",
                       major, minor);
  }
  if (attribute(cudaDevAttrCooperativeLaunch, device) == 0) {
    return "no cooperative launches";
  }
  return "";
}

// What `gemm` auto stands for, for programs that take no knobs: the tests of these kernels.
GemmPath gemm_by_environment() {
  const char* const text = std::getenv("FUSESCOPE_GEMM");
  Config config;
  if (text != nullptr) {
    set_knob(config, "gemm", std::string(text), "FUSESCOPE_GEMM", "");
  }
  return config.gemm;
}

Device describe(int index) {
  Device device;
  device.index = index;
  cudaDeviceProp properties{};
  FUSESCOPE_CUDA(cudaGetDeviceProperties(&properties, index));
  device.name = properties.name;
  device.sms = attribute(cudaDevAttrMultiProcessorCount, index);
  device.smem_per_block = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, index);
  device.wgmma = attribute(cudaDevAttrComputeCapabilityMajor, index) == 9;
  device.lacks = what_it_lacks(index);
  device.gemm = gemm_by_environment();
  return device;
}

std::string list_of(const std::vector<Device>& devices) {
  std::string text;
  for (const Device& d : devices) {
    text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", d.index, d.name,
                        d.lacks.empty() ? "" : ": " + d.lacks);
  }
  return text;
}

bool can_access(int from, int to) {
  int possible = 0;
  FUSESCOPE_CUDA(cudaDeviceCanAccessPeer(&possible, from, to));
  return possible != 0;
}

}  // namespace

DeviceLimits limits_of(const Device& device) {
  return {device.name, device.sms, device.smem_per_block, true, device.wgmma, device.gemm};
}

std::vector<Device> find_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // no driver or no device is an answer, not an error to carry on
    return {};
  }
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) {
    try {
      devices.push_back(describe(i));
    } catch (const kernels::CudaError& error) {
      devices.push_back({i, "unknown", 0, 0, error.what()});
    }
  }
  return devices;
}

std::string why_no_devices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());
  if (error == cudaErrorInsufficientDriver) {  // also where there is no driver at all
    return "no NVIDIA driver for CUDA 13 or newer";
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
    return "the driver lists no GPU";
  }
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

std::vector<Device> select_devices(const std::vector<int>& wanted) {
  const std::vector<Device> all = find_devices();
  std::vector<Device> chosen;
  if (wanted.empty()) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(chosen),
                 [](const Device& d) { return d.lacks.empty(); });
  }
  for (const int index : wanted) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Device& d) { return d.index == index; });
    if (found == all.end() || !found->lacks.empty()) {
      throw InputError({"", "devices",
                        found == all.end() ? fmt::format("there is no device {}", index)
                                           : fmt::format("device {} has {}", index, found->lacks),
                        all.empty() ? "engine sim: " + why_no_devices() : list_of(all)});
    }
    if (std::any_of(chosen.begin(), chosen.end(),
                    [&](const Device& d) { return d.index == index; })) {
      throw InputError({"", "devices", fmt::format("device {} is named twice", index),
                        "each device once; several ranks may share it"});
    }
    chosen.push_back(*found);
  }
  if (chosen.empty()) {
    throw InputError(
        {"", "engine",
         "cuda finds no usable GPU: " + (all.empty() ? why_no_devices() : list_of(all)),
         "a GPU of compute capability 9.0, 10.0 or 12.0, or engine sim"});
  }
  for (const Device& d : chosen) {
    if (d.name != chosen.front().name || d.sms != chosen.front().sms) {
      throw InputError({"", "devices",
                        fmt::format("devices {} ({}) and {} ({}) differ", chosen.front().index,
                                    chosen.front().name, d.index, d.name),
                        "devices of one kind: " + list_of(all)});
    }
  }
  return chosen;
}

void enable_peer_access(const std::vector<Device>& devices) {
  for (const Device& from : devices) {
    const kernels::OnDevice on(from.index);
    for (const Device& to : devices) {
      if (to.index == from.index) {
        continue;
      }
      if (!can_access(from.index, to.index)) {
        throw InputError({"", "devices",
                          fmt::format("device {} cannot map device {}'s memory (no peer access: "
                                      "cudaDeviceCanAccessPeer says no)",
                                      from.index, to.index),
                          "devices joined by NVLink, or by PCIe with peer-to-peer enabled; one "
                          "device with co-located ranks"});
      }
      const cudaError_t error = cudaDeviceEnablePeerAccess(to.index, 0);
      if (error == cudaErrorPeerAccessAlreadyEnabled) {
        cudaGetLastError();
      } else {
        FUSESCOPE_CUDA(error);
      }
    }
  }
}

std::function<void(int)> make_current(const std::vector<Device>& devices) {
  std::vector<int> indices(devices.size());
  std::transform(devices.begin(), devices.end(), indices.begin(),
                 [](const Device& d) { return d.index; });
  return [indices](int i) { FUSESCOPE_CUDA(cudaSetDevice(indices[static_cast<std::size_t>(i)])); };
}

std::vector<std::string> describe_links(const std::vector<Device>& devices) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (std::size_t j = i + 1; j < devices.size(); ++j) {
      const int a = devices[i].index;
      const int b = devices[j].index;
      if (!can_access(a, b) || !can_access(b, a)) {
        lines.push_back(fmt::format("{} <-> {}: no peer access", a, b));
        continue;
      }
      int atomics = 0;
      int rank = 0;
      FUSESCOPE_CUDA(
          cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, a, b));
      FUSESCOPE_CUDA(cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, a, b));
      lines.push_back(fmt::format("{} <-> {}: peer access, {} atomics, performance rank {}", a, b,
                                  atomics != 0 ? "native" : "no native", rank));
    }
  }
  return lines;
}

std::vector<int> devices_of_ranks(const std::vector<Device>& devices, int ranks) {
  const int used = std::min(static_cast<int>(devices.size()), ranks);
  std::vector<int> of_rank;
  of_rank.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    of_rank.push_back(devices[static_cast<std::size_t>(r) * used / ranks].index);
  }
  return of_rank;
}

std::string driver_version() {
  int driver = 0;
  int runtime = 0;
  FUSESCOPE_CUDA(cudaDriverGetVersion(&driver));
  FUSESCOPE_CUDA(cudaRuntimeGetVersion(&runtime));
  return fmt::format("CUDA {}.{} driver, runtime {}.{}", driver / 1000, driver % 1000 / 10,
                     runtime / 1000, runtime % 1000 / 10);
}

}  // namespace fusescope::engine::cuda
