#include "perfetto_decoder.hpp"

#include <protozero/pbf_reader.hpp>
#include <set>
#include <stdexcept>

namespace fusescope::timeline {
namespace {

using protozero::pbf_reader;

[[noreturn]] void unknown(const std::string& message, std::uint32_t field) {
  throw std::runtime_error(message + " has the unknown field " + std::to_string(field));
}

using Names = std::map<std::uint64_t, std::string>;

class Decoder {
 public:
  DecodedTrace decode(std::string_view bytes) {
    pbf_reader trace(bytes.data(), bytes.size());
    while (trace.next()) {
      if (trace.tag() != 1) {
        unknown("Trace", trace.tag());
      }
      packet(trace.get_message());
    }
    return std::move(trace_);
  }

 private:
  void packet(pbf_reader message) {
    std::uint64_t time = 0;
    std::uint32_t flags = 0;
    std::uint32_t sequence = 0;
    while (message.next()) {
      switch (message.tag()) {
        case 8:
          time = message.get_uint64();
          break;
        case 10:
          sequence = message.get_uint32();
          break;
        case 13:
          flags = message.get_uint32();
          cleared_ = cleared_ || (flags & 1) != 0;
          break;
        case 11:
          event(message.get_message(), time);
          break;
        case 12:
          interned(message.get_message());
          break;
        case 60:
          track(message.get_message());
          break;
        case 126:
          attributes(message.get_message());
          break;
        default:
          unknown("TracePacket", message.tag());
      }
    }
    if (sequence == 0 || !cleared_ || (flags & 3) == 0) {
      throw std::runtime_error("a packet outside a sequence with incremental state");
    }
  }

  static void names(pbf_reader message, Names& into) {
    std::uint64_t iid = 0;
    std::string name;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          iid = message.get_uint64();
          break;
        case 2:
          name = message.get_string();
          break;
        default:
          unknown("interned name", message.tag());
      }
    }
    if (iid == 0 || !into.emplace(iid, name).second) {
      throw std::runtime_error("interned id " + std::to_string(iid) + " is 0 or there twice");
    }
  }

  void interned(pbf_reader message) {
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          names(message.get_message(), categories_);
          break;
        case 2:
          names(message.get_message(), event_names_);
          break;
        case 3:
          names(message.get_message(), annotation_names_);
          break;
        default:
          unknown("InternedData", message.tag());
      }
    }
  }

  void attributes(pbf_reader message) {
    while (message.next()) {
      if (message.tag() != 1) {
        unknown("TraceAttributes", message.tag());
      }
      pbf_reader attribute = message.get_message();
      std::string key;
      std::string value;
      while (attribute.next()) {
        switch (attribute.tag()) {
          case 1:
            key = attribute.get_string();
            break;
          case 3:
            value = attribute.get_string();
            break;
          default:
            unknown("Attribute", attribute.tag());
        }
      }
      trace_.attributes[key] = value;
    }
  }

  static void process(pbf_reader message, DecodedTrack& track) {
    track.is_process = true;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          track.pid = message.get_int32();
          break;
        case 6:
          track.name = message.get_string();
          break;
        default:
          unknown("ProcessDescriptor", message.tag());
      }
    }
  }

  static void thread(pbf_reader message, DecodedTrack& track) {
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          track.pid = message.get_int32();
          break;
        case 2:
          track.tid = message.get_int64();
          break;
        case 5:
          track.name = message.get_string();
          break;
        default:
          unknown("ThreadDescriptor", message.tag());
      }
    }
  }

  static void counter(pbf_reader message, DecodedTrack& track) {
    track.is_counter = true;
    while (message.next()) {
      if (message.tag() != 6) {
        unknown("CounterDescriptor", message.tag());
      }
      track.unit = message.get_string();
    }
  }

  void track(pbf_reader message) {
    DecodedTrack track;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          track.uuid = message.get_uint64();
          break;
        case 2:
          track.name = message.get_string();
          break;
        case 3:
          process(message.get_message(), track);
          break;
        case 4:
          thread(message.get_message(), track);
          break;
        case 5:
          track.parent = message.get_uint64();
          break;
        case 8:
          counter(message.get_message(), track);
          break;
        case 11:
          message.skip();
          break;
        case 12:
          track.order = message.get_int32();
          break;
        case 19:
          track.process_ordering = message.get_enum();
          break;
        case 20:
          track.thread_ordering = message.get_enum();
          break;
        default:
          unknown("TrackDescriptor", message.tag());
      }
    }
    trace_.tracks.push_back(track);
  }

  static const std::string& lookup(const Names& names, std::uint64_t iid) {
    const auto found = names.find(iid);
    if (found == names.end()) {
      throw std::runtime_error("name " + std::to_string(iid) + " is used but not interned");
    }
    return found->second;
  }

  void annotation(pbf_reader message, DecodedEvent& event) const {
    std::string name;
    std::string value;
    while (message.next()) {
      switch (message.tag()) {
        case 1:
          name = lookup(annotation_names_, message.get_uint64());
          break;
        case 4:
          value = std::to_string(message.get_int64());
          break;
        case 6:
          value = message.get_string();
          break;
        case 10:
          name = message.get_string();
          break;
        default:
          unknown("DebugAnnotation", message.tag());
      }
    }
    event.annotations[name] = value;
  }

  void event(pbf_reader message, std::uint64_t time) {
    DecodedEvent event;
    event.time_ns = time;
    while (message.next()) {
      switch (message.tag()) {
        case 3:
          event.category = lookup(categories_, message.get_uint64());
          break;
        case 4:
          annotation(message.get_message(), event);
          break;
        case 9:
          event.type = message.get_enum();
          break;
        case 10:
          event.name = lookup(event_names_, message.get_uint64());
          break;
        case 11:
          event.track = message.get_uint64();
          break;
        case 23:
          event.name = message.get_string();
          break;
        case 30:
          event.value = static_cast<double>(message.get_int64());
          break;
        case 44:
          event.value = message.get_double();
          break;
        case 47:
          event.flows.push_back(message.get_fixed64());
          break;
        case 48:
          event.last_flows.push_back(message.get_fixed64());
          break;
        default:
          unknown("TrackEvent", message.tag());
      }
    }
    trace_.events.push_back(std::move(event));
  }

  DecodedTrace trace_;
  Names categories_;
  Names event_names_;
  Names annotation_names_;
  bool cleared_ = false;
};

}  // namespace

DecodedTrace decode_perfetto(std::string_view bytes) {
  return Decoder().decode(bytes);
}

}  // namespace fusescope::timeline
