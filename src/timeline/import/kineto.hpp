#pragma once
// PyTorch profiler (Kineto) traces: Chrome trace event JSON, plain or gzip. Also fusescope's own Chrome
// JSON, whose slices are in-kernel records.
//
// Read: complete events ("ph": "X") of kernels, copies, memsets, stream synchronisation, runtime and
// driver calls, user annotations, operators; names of threads; deviceProperties, distributedInfo,
// traceName. Flow arrows and GPU copies of user annotations are left out: correlation ids say the same.
// Times become nanoseconds exactly. What is lost or odd stands in Trace::notes.

#include <string>

#include "timeline/import/byte_source.hpp"
#include "timeline/import/trace.hpp"

namespace fusescope::timeline {

// Throws InputError: no list of events, or none that could be read.
Trace read_kineto(ByteSource& source, const std::string& file);

}  // namespace fusescope::timeline
