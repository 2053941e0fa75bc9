#include "engine/cuda/link_comparison.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "engine/cuda/counter_sampling.hpp"
#include "kernels/clock_ping.hpp"
#include "kernels/cuda_check.hpp"

namespace fusescope::engine::cuda {
namespace {

using Json = nlohmann::json;

constexpr double kAgreement = 0.1;
constexpr double kAtTheirTime = 0.99;
constexpr std::size_t kCopyBytes = std::size_t{64} << 20;

// The four ways of payload, and what each is called in print.
struct Way {
  std::string_view key;
  std::string_view words;
  double timeline::LinkBytes::*counted;
};
constexpr std::array<Way, 4> kWays = {
    {{"read", "pulled from others", &timeline::LinkBytes::read},
     {"served", "pulled by others", &timeline::LinkBytes::served},
     {"written", "pushed", &timeline::LinkBytes::written},
     {"written_here", "pushed here", &timeline::LinkBytes::written_here}}};

// Rows that are pulled from all other ranks; by symmetry as many are pulled from here.
double pulled_bytes(const Shape& shape) {
  return 2.0 * (shape.ranks - 1) * shape.tokens_per_rank * shape.hidden;
}
// Partial rows for all other ranks, their ids and weights before that, and flags: three barriers' and one
// watermark.
double pushed_bytes(const Shape& shape) {
  constexpr double kFlags = 4 * sizeof(std::uint64_t);
  const double ids = 8.0 * shape.tokens_per_rank * shape.topk;
  return pulled_bytes(shape) + (shape.ranks - 1) * (ids + kFlags);
}

// Of what the counter of reads shows, the part within [first pull from elsewhere, last such pull's landing]
// of the rank, a sample wider on both sides.
double share_at_its_time(const timeline::Timeline& timeline, int rank, const Shape& shape) {
  const std::size_t metric = timeline::pm_metric("nvlrx__bytes_packet_response_data_user.sum");
  const std::string_view name = timeline::pm_metrics()[metric].name;
  const auto counter = std::find_if(
      timeline.counters.begin(), timeline.counters.end(),
      [&](const timeline::Counter& one) { return one.rank == rank && one.name == name; });
  if (counter == timeline.counters.end() || counter->time_ns.size() < 2) {
    return 0;
  }
  const std::int64_t sample_ns = counter->time_ns[1] - counter->time_ns[0];
  std::int64_t begin_ns = INT64_MAX;
  std::int64_t end_ns = INT64_MIN;
  for (const timeline::Event& event : timeline.events) {
    if (event.kind == timeline::Kind::pull && timeline.tracks[event.track].rank == rank &&
        event.token / shape.tokens_per_rank != rank) {
      begin_ns = std::min(begin_ns, event.begin_ns - sample_ns);
      end_ns = std::max(end_ns, event.end_ns + sample_ns);
    }
  }
  double all = 0;
  double within = 0;
  for (std::size_t i = 0; i < counter->time_ns.size(); ++i) {
    all += counter->value[i];
    within +=
        counter->time_ns[i] >= begin_ns && counter->time_ns[i] < end_ns ? counter->value[i] : 0;
  }
  return all > 0 ? within / all : 0;
}

// A wall on the device's own clock, for link_bytes.
timeline::Timeline wall(std::uint64_t length_ns) {
  timeline::Timeline timeline;
  timeline.wiring.ranks = 1;
  timeline.end_ns = static_cast<std::int64_t>(length_ns);
  return timeline;
}

// A copy between two devices' buffers, and when it was on the sender's clock.
struct Copy {
  std::size_t from = 0;
  std::size_t to = 0;
  timeline::ClockSpan span;
};

class PlainCopies {
 public:
  explicit PlainCopies(const std::vector<Device>& devices) : devices_(devices) {
    for (const Device& device : devices) {
      const kernels::OnDevice on(device.index);
      buffers_.push_back(kernels::allocate_device(kCopyBytes));
    }
  }

  // Each device to the next. The first time takes much longer: the driver sets up what it needs.
  std::vector<Copy> run() const {
    std::vector<Copy> copies;
    for (std::size_t from = 0; from < devices_.size(); ++from) {
      const std::size_t to = (from + 1) % devices_.size();
      copies.push_back({from, to, copy(from, to)});
    }
    return copies;
  }

 private:
  timeline::ClockSpan copy(std::size_t from, std::size_t to) const {
    const int sender = devices_[from].index;
    const kernels::OnDevice on(sender);
    timeline::ClockSpan span;
    span.begin_ns = kernels::stamp_clock(sender, 1).front();
    FUSESCOPE_CUDA(cudaMemcpyPeerAsync(buffers_[to].get(), devices_[to].index, buffers_[from].get(),
                                       sender, kCopyBytes, nullptr));
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
    span.end_ns = kernels::stamp_clock(sender, 1).front();
    return span;
  }

  const std::vector<Device>& devices_;
  std::vector<kernels::DeviceBlock> buffers_;
};

}  // namespace

Json compare_links(const RecordedTimeline& recorded, const Shape& shape, std::size_t devices) {
  Json rows = Json::array();
  if (devices != static_cast<std::size_t>(shape.ranks) || devices < 2) {
    return rows;
  }
  for (const DeviceLinkBytes& link : recorded.link_bytes) {
    Json row = {{"gpu", link.device},
                {"wire_sent", link.bytes.sent},
                {"wire_received", link.bytes.received},
                {"pulls_at_their_time",
                 share_at_its_time(recorded.timeline, static_cast<int>(rows.size()), shape)}};
    for (const Way& way : kWays) {
      const bool pull = way.key == "read" || way.key == "served";
      const double scheduled = pull ? pulled_bytes(shape) : pushed_bytes(shape);
      const double counted = link.bytes.*way.counted;
      row[std::string(way.key)] = {
          {"scheduled", scheduled}, {"counted", counted}, {"ratio", counted / scheduled}};
    }
    rows.push_back(row);
  }
  return rows;
}

bool links_agree(const Json& links) {
  for (const Json& link : links) {
    if (link["pulls_at_their_time"].get<double>() < kAtTheirTime) {
      return false;
    }
    for (const Way& way : kWays) {
      if (std::abs(link[std::string(way.key)]["ratio"].get<double>() - 1) > kAgreement) {
        return false;
      }
    }
  }
  return true;
}

std::string describe_link(const Json& link) {
  std::string text =
      fmt::format("GPU {} NVLink payload, counted over scheduled:", link["gpu"].get<int>());
  for (const Way& way : kWays) {
    const Json& bytes = link[std::string(way.key)];
    text += fmt::format("{} {} {:.3f} ({:.2f} MB)", &way == kWays.data() ? "" : ",", way.words,
                        bytes["ratio"].get<double>(), bytes["counted"].get<double>() / 1e6);
  }
  return text +
         fmt::format(
             "; {:.1f}% of the pulls at their time; on the wire {:.2f} MB sent, {:.2f} MB received",
             100 * link["pulls_at_their_time"].get<double>(), link["wire_sent"].get<double>() / 1e6,
             link["wire_received"].get<double>() / 1e6);
}

Json count_plain_copies(const std::vector<Device>& devices) {
  Json rows = Json::array();
  std::string why_not;
  const auto counters = CounterSampling::make(devices, why_not);
  if (counters == nullptr || devices.size() < 2) {
    rows.push_back({{"why_not", counters == nullptr ? why_not : "one GPU"}});
    return rows;
  }
  try {
    const PlainCopies plain(devices);
    plain.run();
    counters->begin();
    const std::vector<Copy> copies = plain.run();
    const std::vector<timeline::PmSamples> samples = counters->end();
    for (const Copy& copy : copies) {
      const timeline::LinkBytes bytes = link_bytes(samples[copy.from], timeline::ClockLine(),
                                                   static_cast<std::int64_t>(copy.span.begin_ns),
                                                   wall(copy.span.end_ns - copy.span.begin_ns));
      rows.push_back({{"from", devices[copy.from].index},
                      {"to", devices[copy.to].index},
                      {"bytes", kCopyBytes},
                      {"payload", bytes.written},
                      {"wire", bytes.sent},
                      {"back", bytes.received},
                      {"samples_moved_us", samples[copy.from].shift_ns / 1e3},
                      {"samples_bound_us", samples[copy.from].bound_ns / 1e3}});
    }
  } catch (const CheckFailure& refused) {
    rows.push_back({{"why_not", refused.what()}});
  }
  return rows;
}

std::string describe_plain_copy(const Json& copy) {
  if (copy.contains("why_not")) {
    return "plain copy: not counted: " + copy["why_not"].get<std::string>();
  }
  const auto bytes = copy["bytes"].get<double>();
  return fmt::format(
      "plain copy GPU {} -> {}: payload {:.4f} of its {:.1f} MB, wire {:.4f} sent, {:.4f} back; "
      "samples "
      "moved by {:+.1f} us, then known to +-{:.1f} us",
      copy["from"].get<int>(), copy["to"].get<int>(), copy["payload"].get<double>() / bytes,
      bytes / 1e6, copy["wire"].get<double>() / bytes, copy["back"].get<double>() / bytes,
      copy["samples_moved_us"].get<double>(), copy["samples_bound_us"].get<double>());
}

}  // namespace fusescope::engine::cuda
