#include <fmt/format.h>

#include "reports/format.hpp"
#include "reports/trace/trace_report.hpp"

namespace fusescope::reports {
namespace {

using analysis::DeviceAttribution;
using analysis::TraceAttribution;
using analysis::WorkClass;

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Without return type and parameters: "void ns::kernel<T>(int)" -> "ns::kernel<T>".
std::string plain_name(std::string name) {
  if (name.starts_with("void ")) {
    name.erase(0, 5);
  }
  static constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::size_t end = name.find('(');
  while (end != std::string::npos && name.compare(end, kAnonymous.size(), kAnonymous) == 0) {
    end = name.find('(', end + kAnonymous.size());
  }
  return name.substr(0, end);
}

const DeviceAttribution* most_exposed(const TraceAttribution& attribution) {
  const DeviceAttribution* most = nullptr;
  for (const DeviceAttribution& device : attribution.devices) {
    if (most == nullptr || device.exposed_ns() > most->exposed_ns()) {
      most = &device;
    }
  }
  return most;
}

std::string verdict(const TraceAttribution& attribution) {
  const DeviceAttribution* most = most_exposed(attribution);
  if (most == nullptr) {
    return "Nothing ran on a GPU.";
  }
  if (most->all(WorkClass::communication) == 0) {
    return fmt::format("No communication kernel ran; {} computes {} of its span and is idle {}.",
                       label(*most),
                       percent(ratio(most->part(WorkClass::compute), most->span_ns())),
                       percent(ratio(most->idle.total_ns, most->span_ns())));
  }
  const bool several = attribution.devices.size() > 1;
  return fmt::format(
      "{}xposed communication is {} \u00b5s, {} of the span{}; {} of the communication is "
      "overlapped.",
      several ? "The most e" : "E", us_exact(most->exposed_ns()),
      percent(ratio(most->exposed_ns(), most->span_ns())), several ? " (" + label(*most) + ")" : "",
      percent(most->overlap_share()));
}

std::string main_kernel(const DeviceAttribution& device) {
  const analysis::KernelRow& row = device.communication.front();
  std::string text =
      fmt::format("{}: {} has {} of the exposed communication.", label(device),
                  plain_name(row.name), percent(ratio(row.exposed_ns, device.exposed_ns())));
  const analysis::Idle& idle = device.idle;
  text += fmt::format(" Of {} \u00b5s idle, {} are launch-bound.", us_exact(idle.total_ns),
                      percent(ratio(idle.launch_ns, idle.total_ns)));
  return text;
}

}  // namespace

std::vector<std::string> trace_findings(const TraceAttribution& attribution) {
  std::vector<std::string> out = {verdict(attribution)};
  for (const DeviceAttribution& device : attribution.devices) {
    if (device.exposed_ns() > 0) {
      out.push_back(main_kernel(device));
    }
    if (!device.fused.empty()) {
      out.push_back(fmt::format(
          "{}: fused kernels ran for {} \u00b5s. They communicate and compute at once; without "
          "in-kernel records nothing can be known of how much communication they expose inside. "
          "That time counts neither as exposed communication nor as computation.",
          label(device), us_exact(device.all(WorkClass::fused))));
    }
    if (!device.unclear.empty()) {
      out.push_back(fmt::format(
          "{}: {} kernel names look like communication and no rule says so; their {} "
          "\u00b5s stand apart as \"unclear\". A rules file (--rules FILE) settles them.",
          label(device), device.unclear.size(), us_exact(device.all(WorkClass::unclear))));
    }
    if (device.in_kernel_records) {
      out.push_back(label(device) +
                    ": in-kernel records: the fused kernels are opened up; communication counts as "
                    "exposed where no block of the rank computes.");
    }
    std::int64_t overlapping = 0;
    for (const analysis::StreamRow& stream : device.streams) {
      overlapping += stream.overlapping;
    }
    if (overlapping > 0 && !device.in_kernel_records) {
      out.push_back(
          fmt::format("{}: {} slices begin before the one before them on their stream "
                      "ends (programmatic dependent launch).",
                      label(device), overlapping));
    }
  }
  std::int64_t apart = 0;
  for (const analysis::SkewRow& row : attribution.skew) {
    apart += row.apart;
  }
  if (apart > 0) {
    out.push_back(fmt::format(
        "{} matched collectives do not overlap in time at all: the ranks' clocks differ, or these "
        "are not the same collectives. Do not trust the arrival skew then.",
        apart));
  }
  return out;
}

}  // namespace fusescope::reports
