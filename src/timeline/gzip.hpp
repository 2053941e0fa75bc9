#pragma once
// Whole buffers through gzip (RFC 1952).

#include <string>
#include <string_view>

namespace fusescope::timeline {

// The same bytes for the same content: no time, no name in the header.
std::string gzip(std::string_view content);

// Throws InputError naming `file` and the byte: not gzip, truncated, corrupt, something after the
// end, or content beyond 1 GiB.
std::string gunzip(std::string_view bytes, const std::string& file);

}  // namespace fusescope::timeline
