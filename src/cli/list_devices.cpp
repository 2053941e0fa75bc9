#include "cli/list_devices.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/text.hpp"
#include "engine/gpus.hpp"

namespace fusescope::cli {
namespace {

using Json = nlohmann::ordered_json;
using engine::Gpu;
using engine::GpuLink;
using engine::Machine;

constexpr double kMiB = 1024.0 * 1024;

Json to_json(const Machine& machine) {
  Json gpus = Json::array();
  for (const Gpu& gpu : machine.gpus) {
    gpus.push_back({{"index", gpu.index},
                    {"name", gpu.name},
                    {"usable", gpu.lacks.empty()},
                    {"lacks", gpu.lacks},
                    {"compute_capability", gpu.compute_capability},
                    {"sms", gpu.sms},
                    {"smem_per_block", gpu.smem_per_block},
                    {"l2_bytes", gpu.l2_bytes},
                    {"memory_bytes", gpu.memory_bytes},
                    {"sm_clock_mhz", gpu.sm_clock_mhz},
                    {"memory_clock_mhz", gpu.memory_clock_mhz},
                    {"pci", gpu.pci}});
  }
  Json targets = Json::array();
  for (const engine::KernelTarget& target : engine::kKernelTargets) {
    targets.push_back({{"compute_capability", target.compute_capability},
                       {"gemm", target.gemm},
                       {"run_on", target.run_on}});
  }
  Json links = Json::array();
  for (const GpuLink& link : machine.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"peer_access", link.peer_access},
                     {"native_atomics", link.native_atomics},
                     {"performance_rank", link.performance_rank}});
  }
  return {{"driver", machine.driver},
          {"devices", gpus},
          {"why_none", machine.why_no_gpu},
          {"links", links},
          {"kernels", targets},
          {"most_ranks", machine.most_ranks},
          {"nccl",
           {{"file", machine.nccl_file},
            {"version", machine.nccl_version},
            {"why_none", machine.why_no_nccl}}}};
}

std::string clock_text(int mhz) {
  return mhz > 0 ? fmt::format("{} MHz", mhz) : "not reported";
}

void print_gpu(const Gpu& gpu) {
  std::printf("%d  %s  %s\n", gpu.index, gpu.name.c_str(), gpu.pci.c_str());
  if (gpu.sms > 0) {
    std::printf("   %d SMs, %.0f KiB shared memory per block, %.0f MiB L2, %.1f GiB memory\n",
                gpu.sms, gpu.smem_per_block / 1024.0, static_cast<double>(gpu.l2_bytes) / kMiB,
                static_cast<double>(gpu.memory_bytes) / kMiB / 1024);
    std::printf("   highest clocks: SM %s, memory %s; compute capability %s\n",
                clock_text(gpu.sm_clock_mhz).c_str(), clock_text(gpu.memory_clock_mhz).c_str(),
                gpu.compute_capability.c_str());
  }
  for (const engine::KernelTarget& target : engine::kKernelTargets) {
    if (gpu.compute_capability == target.compute_capability) {
      std::printf("   GEMMs by %s (knob gemm; auto is the first)\n", target.gemm);
    }
  }
  if (!gpu.lacks.empty()) {
    std::printf("   not usable: %s\n", wrapped(gpu.lacks, 15).c_str());
  }
}

const char* link_text(const GpuLink& link) {
  if (!link.peer_access) {
    return "none";
  }
  return link.native_atomics ? "atomics" : "access";
}

// A row per GPU that reads, a column per GPU that is read.
void print_links(const Machine& machine) {
  if (machine.links.empty()) {
    return;
  }
  std::string text = "\npeer access ";
  for (const Gpu& to : machine.gpus) {
    text += fmt::format("{:>9}", to.index);
  }
  for (const Gpu& from : machine.gpus) {
    text += fmt::format("\n{:>12}", from.index);
    for (const Gpu& to : machine.gpus) {
      const char* cell = from.index == to.index ? "-" : "unknown";
      for (const GpuLink& link : machine.links) {
        if (link.from == from.index && link.to == to.index) {
          cell = link_text(link);
        }
      }
      text += fmt::format("{:>9}", cell);
    }
  }
  std::printf("%s\n", text.c_str());
  std::printf(
      "atomics: peer access with native atomics, as over NVLink; access: without, as over "
      "PCIe;\nnone: ranks on these two cannot reach each other, and such a run is refused\n");
}

void print_targets() {
  std::printf("\nkernels for capability  GEMMs by (knob gemm)   run on\n");
  for (const engine::KernelTarget& target : engine::kKernelTargets) {
    const bool run = target.run_on[0] != '\0';
    std::printf("%-22s  %-21s  %s\n", target.compute_capability, target.gemm,
                run ? target.run_on : "no such GPU yet: compiled and checked only");
  }
}

}  // namespace

void list_devices(bool json) {
  const Machine machine = engine::describe_machine();
  if (json) {
    std::printf("%s\n", to_json(machine).dump(2).c_str());
    return;
  }
  if (machine.gpus.empty()) {
    std::printf("No GPU: %s\n", wrapped(machine.why_no_gpu, 8).c_str());
    std::printf("Runs go to the simulator (\"list profiles\").\n");
  } else {
    for (const Gpu& gpu : machine.gpus) {
      print_gpu(gpu);
    }
    print_links(machine);
    std::printf("\ndriver      %s\n", machine.driver.c_str());
    std::printf("ranks       at most %d, each on a GPU of its own, or several on one\n",
                machine.most_ranks);
  }
  const std::string nccl =
      machine.nccl_file.empty()
          ? "none, the serial layer's rows go by peer copies: " + machine.why_no_nccl
          : machine.nccl_version + " in " + machine.nccl_file;
  std::printf("NCCL        %s\n", wrapped(nccl, 12).c_str());
  print_targets();
}

}  // namespace fusescope::cli
