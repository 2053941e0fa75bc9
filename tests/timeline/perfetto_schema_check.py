#!/usr/bin/env python3
"""Decodes a trace with Perfetto's published message definitions (PyPI: perfetto, protobuf).

perfetto_schema_check.py TRACE prints what it found; exit code 1 and one line per fault:
fields that the definitions do not know, tracks that are there twice, slices that do not
nest, names and flows that do not resolve. --available: 0 where the definitions are installed.
"""
import sys

try:
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
except ImportError as error:
    print(f"Perfetto's message definitions are not installed: {error}")
    sys.exit(3)

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def unknown_fields(message, path, faults):
    for field in UnknownFieldSet(message):
        faults.append(f"{path}: field {field.field_number} is not defined")
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        for item in value if not hasattr(value, "ListFields") else [value]:
            if hasattr(item, "ListFields"):
                unknown_fields(item, f"{path}.{descriptor.name}", faults)


class Checker:
    def __init__(self):
        self.faults = []
        self.tracks = {}
        self.names = {}
        self.open = {}
        self.flows = {}
        self.ended_flows = set()
        self.slices = 0
        self.samples = 0

    def packet(self, packet):
        unknown_fields(packet, "TracePacket", self.faults)
        if packet.HasField("interned_data"):
            for entry in packet.interned_data.event_names:
                self.names[entry.iid] = entry.name
        if packet.HasField("track_descriptor"):
            self.track(packet.track_descriptor)
        if packet.HasField("track_event"):
            self.event(packet.timestamp, packet.track_event)

    def track(self, track):
        if track.uuid in self.tracks:
            self.faults.append(f"track {track.uuid} is there twice")
        if track.parent_uuid and track.parent_uuid not in self.tracks:
            self.faults.append(f"track {track.uuid}: parent {track.parent_uuid} is not declared")
        self.tracks[track.uuid] = track

    def event(self, time, event):
        if event.track_uuid not in self.tracks:
            self.faults.append(f"an event at {time} is on undeclared track {event.track_uuid}")
        stack = self.open.setdefault(event.track_uuid, [])
        if event.type == BEGIN:
            self.slices += 1
            if not event.name and event.name_iid not in self.names:
                self.faults.append(f"a slice at {time}: name {event.name_iid} is not interned")
            if stack and time < stack[-1]:
                self.faults.append(f"track {event.track_uuid} goes back in time at {time}")
            stack.append(time)
        elif event.type == END:
            if not stack:
                self.faults.append(f"track {event.track_uuid}: an end without a begin at {time}")
            elif stack.pop() > time:
                self.faults.append(f"track {event.track_uuid}: a slice ends before it begins")
        elif event.type == COUNTER:
            self.samples += 1
            if not self.tracks[event.track_uuid].HasField("counter"):
                self.faults.append(f"track {event.track_uuid} is no counter")
        for flow in list(event.flow_ids) + list(event.terminating_flow_ids):
            self.flows.setdefault(flow, set()).add((time, event.track_uuid))
        self.ended_flows.update(event.terminating_flow_ids)

    def end(self):
        for track, stack in self.open.items():
            if stack:
                self.faults.append(f"track {track}: {len(stack)} slices do not end")
        for flow, points in self.flows.items():
            if len(points) < 2 or flow not in self.ended_flows:
                self.faults.append(f"flow {flow} has {len(points)} ends and does not resolve")


def main():
    if sys.argv[1] == "--available":
        return 0
    trace = pb.Trace()
    with open(sys.argv[1], "rb") as file:
        trace.ParseFromString(file.read())
    checker = Checker()
    for packet in trace.packet:
        checker.packet(packet)
    checker.end()
    print(f"{len(trace.packet)} packets, {len(checker.tracks)} tracks, {checker.slices} slices, "
          f"{checker.samples} samples, {len(checker.flows)} flows, {len(checker.faults)} faults")
    for fault in checker.faults[:20]:
        print(fault)
    return 1 if checker.faults else 0


if __name__ == "__main__":
    sys.exit(main())
