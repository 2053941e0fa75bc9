#pragma once
// A whole file in memory, inflated when it is gzip (by its magic bytes, whatever its name).

#include <string>

namespace fusescope {

// Throws InputError: missing, unreadable, a folder, truncated or corrupt gzip.
std::string read_file_bytes(const std::string& path);

}  // namespace fusescope
