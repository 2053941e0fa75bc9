#pragma once
// A timeline in one compact file, lossless: `*.fst`.
//
// gzip of:  "fusescope timeline 1\n"  what it is, and the version of the format
//           one line of JSON          meta, scalars of the wiring, names of kinds, stages and
//                                     roles, and how many rows each table has
//           columns                   wiring, tracks, events, counters (byte_columns.hpp)
//
// `zcat file.fst | head -2` shows the readable part. Kinds, stages and roles are stored by name, so
// that a kind may be added without a new version.

#include <string>
#include <string_view>

#include "timeline/timeline.hpp"

namespace fusescope::timeline {

// Throws InputError if the file cannot be written; what was at `path` before is then still there.
void save_timeline(const Timeline& timeline, const std::string& path);

// Throws InputError with the file and the place: missing, not a timeline, of a newer version,
// truncated, corrupt. The indices within what is returned are safe to follow; whether the events
// make sense is check()'s question. [about 15 ms per 100k events]
Timeline load_timeline(const std::string& path);

// The same without a file; `file` is what errors call it.
std::string encode_timeline(const Timeline& timeline);
Timeline decode_timeline(std::string_view bytes, const std::string& file);

}  // namespace fusescope::timeline
