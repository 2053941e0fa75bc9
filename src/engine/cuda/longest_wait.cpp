#include "engine/cuda/longest_wait.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/cuda/gemm_variant.hpp"
#include "engine/cuda/plan.hpp"

namespace fusescope::engine::cuda {
namespace {

constexpr long long kJobBlocksPerSm = 16;  // at most: threads, for short-lived blocks of one job

long long rounds(long long operations, long long at_once) {
  return (operations + at_once - 1) / std::max(1LL, at_once);
}

long long pulls_per_slot(const Shape& shape, const Config& config, const DeviceLimits& device) {
  const int blocks = config.dispatch_comm_sms > 0 ? config.dispatch_comm_sms : device.sms;
  const long long in_slots =
      rounds(shape.tokens(), static_cast<long long>(blocks) * config.tokens_per_block);
  // Beside tiles a block's tokens come one after the other.
  return config.dispatch_head < 100 ? std::max(in_slots, rounds(shape.tokens(), blocks)) : in_slots;
}

long long jobs_per_runner(const Shape& shape, const Config& config, const DeviceLimits& device) {
  if (config.combine == Combine::block_per_job) {
    const long long bytes =
        kernels::job_group_bytes(shape.hidden, shape.topk, job_ring(shape, config));
    return rounds(
        shape.tokens(),
        config.combine_comm_sms * std::clamp(device.smem_per_block / bytes, 1LL, kJobBlocksPerSm));
  }
  const int blocks = config.all_hands ? device.sms : config.combine_comm_sms;
  const int groups = kernels::job_groups(gemm_variant(config, kernels::Epilogue::kStore));
  return rounds(shape.tokens(), static_cast<long long>(blocks) * groups);
}

// How many of the delayed operations one thread may run one after the other.
long long delays_in_a_row(const Shape& shape, const Config& config, const DeviceLimits& device) {
  switch (config.inject.point) {
    case InjectPoint::none:
      return 0;
    case InjectPoint::pull:
    case InjectPoint::scatter:
    case InjectPoint::expert:  // any token may be routed to it
      return pulls_per_slot(shape, config, device);
    case InjectPoint::source_rank:
      return std::min<long long>(pulls_per_slot(shape, config, device), shape.tokens_per_rank);
    case InjectPoint::token:
      return 1;
    case InjectPoint::job:
    case InjectPoint::push:
      return jobs_per_runner(shape, config, device);
    case InjectPoint::watermark:  // one pusher may be elected for all of them
      return static_cast<long long>(shape.ranks) * config.watermark_chunks;
  }
  return 0;
}

double link_ns(const Shape& shape, const Config& config) {
  const double bytes = 2.0 * (shape.ranks - 1) * shape.tokens_per_rank * shape.hidden;
  return config.link_gbps > 0 ? bytes / config.link_gbps : 0;
}

double injected_ns(const Shape& shape, const Config& config, const DeviceLimits& device) {
  return static_cast<double>(delays_in_a_row(shape, config, device)) * config.inject.delay_ns;
}

}  // namespace

double longest_wait_ns(const Shape& shape, const Config& config, const DeviceLimits& device) {
  return link_ns(shape, config) + injected_ns(shape, config, device);
}

std::string why_past_deadline(const Shape& shape, const Config& config, const DeviceLimits& device,
                              std::uint64_t deadline_ns) {
  const double allowed = static_cast<double>(deadline_ns) / 2;
  if (longest_wait_ns(shape, config, device) <= allowed) {
    return "";
  }
  std::string why;
  if (const double link = link_ns(shape, config); link > 0) {
    why = fmt::format("link_gbps {}: a kernel's rows take {:.0f} ms", config.link_gbps, link / 1e6);
  }
  if (const long long in_a_row = delays_in_a_row(shape, config, device); in_a_row > 0) {
    why += fmt::format("{}inject: {} delays of {} ns may follow one another",
                       why.empty() ? "" : "; ", in_a_row, config.inject.delay_ns);
  }
  return why + fmt::format(
                   ": a wait on the device may then last {:.0f} ms, at most {:.0f} ms is legal, "
                   "half of the deadline at which waits are given up",
                   longest_wait_ns(shape, config, device) / 1e6, allowed / 1e6);
}

}  // namespace fusescope::engine::cuda
