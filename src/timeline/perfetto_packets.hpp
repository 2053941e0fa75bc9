#pragma once
// What the writers of Perfetto's format share: packets of one sequence, framed into the stream, and
// the events and names in them. For the .cpp files of writers.

#include <cstdint>
#include <ostream>
#include <protozero/pbf_builder.hpp>
#include <string>

#include "timeline/perfetto_fields.hpp"

namespace fusescope::timeline {

class PerfettoPackets {
 public:
  using Packet = protozero::pbf_builder<perfetto::TracePacket>;

  // `origin_ns`: the time that viewers see as 0.
  PerfettoPackets(std::ostream& out, std::int64_t origin_ns) : out_(out), origin_(origin_ns) {}

  // One packet: `fill` adds to it.
  template <typename Fill>
  void packet(Fill fill, std::uint32_t flags = perfetto::kNeedsIncrementalState) {
    constexpr std::uint32_t kSequence = 1;
    content_.clear();
    Packet builder(content_);
    builder.add_uint32(perfetto::TracePacket::trusted_packet_sequence_id, kSequence);
    builder.add_uint32(perfetto::TracePacket::sequence_flags, flags);
    fill(builder);
    framed_.clear();
    protozero::pbf_builder<perfetto::Trace> trace(framed_);
    trace.add_message(perfetto::Trace::packet, content_);
    out_.write(framed_.data(), static_cast<std::streamsize>(framed_.size()));
  }

  template <typename Fill>
  void event(std::int64_t time_ns, std::uint64_t track, std::int32_t type, Fill fill) {
    packet([&](Packet& packet) {
      packet.add_uint64(perfetto::TracePacket::timestamp,
                        static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(origin_));
      protozero::pbf_builder<perfetto::TrackEvent> message(packet,
                                                           perfetto::TracePacket::track_event);
      message.add_enum(perfetto::TrackEvent::type, type);
      message.add_uint64(perfetto::TrackEvent::track_uuid, track);
      fill(message);
    });
  }

 private:
  std::ostream& out_;
  std::int64_t origin_;
  std::string content_;
  std::string framed_;
};

// An entry of a table of names.
inline void add_name(protozero::pbf_builder<perfetto::InternedData>& data,
                     perfetto::InternedData table, std::uint64_t iid, const std::string& name) {
  protozero::pbf_builder<perfetto::InternedName> entry(data, table);
  entry.add_uint64(perfetto::InternedName::iid, iid);
  entry.add_string(perfetto::InternedName::name, name);
}

}  // namespace fusescope::timeline
