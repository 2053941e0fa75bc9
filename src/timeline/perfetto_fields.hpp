#pragma once
// Field numbers of the parts of Perfetto's trace format that the writer uses, by message, from the
// public files of https://github.com/google/perfetto (read at ec5d16b14b74), below protos/perfetto/:
//   trace/trace.proto, trace/trace_packet.proto, trace/interned_data/interned_data.proto,
//   trace/track_event/{track_event,track_descriptor,process_descriptor,thread_descriptor,
//   counter_descriptor,debug_annotation}.proto, common/trace_attributes.proto

#include <cstdint>
#include <protozero/types.hpp>

namespace fusescope::timeline::perfetto {

enum class Trace : protozero::pbf_tag_type { packet = 1 };

enum class TracePacket : protozero::pbf_tag_type {
  timestamp = 8,  // uint64, ns on the trace's own clock unless timestamp_clock_id says otherwise
  trusted_packet_sequence_id = 10,  // uint32
  track_event = 11,
  interned_data = 12,
  sequence_flags = 13,  // uint32
  track_descriptor = 60,
  trace_attributes = 126,
};
// TracePacket.SequenceFlags
inline constexpr std::uint32_t kIncrementalStateCleared = 1;
inline constexpr std::uint32_t kNeedsIncrementalState = 2;

enum class TrackEvent : protozero::pbf_tag_type {
  category_iids = 3,      // repeated uint64
  debug_annotations = 4,  // repeated DebugAnnotation
  type = 9,               // enum
  name_iid = 10,          // uint64
  track_uuid = 11,        // uint64
  name = 23,              // string
  counter_value = 30,     // int64
  double_counter_value = 44,
  flow_ids = 47,              // repeated fixed64
  terminating_flow_ids = 48,  // repeated fixed64
};
// TrackEvent.Type
inline constexpr std::int32_t kSliceBegin = 1;
inline constexpr std::int32_t kSliceEnd = 2;
inline constexpr std::int32_t kCounter = 4;

enum class DebugAnnotation : protozero::pbf_tag_type {
  name_iid = 1,      // uint64
  int_value = 4,     // int64
  string_value = 6,  // string
  name = 10,         // string
};

enum class TrackDescriptor : protozero::pbf_tag_type {
  uuid = 1,     // uint64; 0 is the root
  name = 2,     // string
  process = 3,  // ProcessDescriptor
  thread = 4,   // ThreadDescriptor
  parent_uuid = 5,
  counter = 8,              // CounterDescriptor
  child_ordering = 11,      // enum
  sibling_order_rank = 12,  // int32
  process_ordering = 19,    // enum, on the root
  thread_ordering = 20,     // enum, on the root
};
// TrackDescriptor.ChildTracksOrdering, .ProcessOrdering, .ThreadOrdering
inline constexpr std::int32_t kChildrenExplicit = 3;
inline constexpr std::int32_t kProcessesExplicit = 1;
inline constexpr std::int32_t kThreadsExplicit = 1;

enum class ProcessDescriptor : protozero::pbf_tag_type {
  pid = 1,           // int32
  process_name = 6,  // string
};

enum class ThreadDescriptor : protozero::pbf_tag_type {
  pid = 1,          // int32
  tid = 2,          // int64
  thread_name = 5,  // string
};

enum class CounterDescriptor : protozero::pbf_tag_type { unit_name = 6 };

enum class InternedData : protozero::pbf_tag_type {
  event_categories = 1,        // repeated EventCategory
  event_names = 2,             // repeated EventName
  debug_annotation_names = 3,  // repeated DebugAnnotationName
};
// EventCategory, EventName and DebugAnnotationName alike.
enum class InternedName : protozero::pbf_tag_type {
  iid = 1,   // uint64, not 0
  name = 2,  // string
};

enum class TraceAttributes : protozero::pbf_tag_type { attribute = 1 };
enum class TraceAttribute : protozero::pbf_tag_type {
  key = 1,           // string
  string_value = 3,  // string
};

}  // namespace fusescope::timeline::perfetto
