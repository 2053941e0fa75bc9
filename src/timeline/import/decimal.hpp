#pragma once
// Decimal numbers as they stand in a file, without a detour through double: a profiler's microseconds
// have 16 digits before the point and 3 behind it.

#include <cstdint>
#include <optional>
#include <string_view>

namespace fusescope::timeline {

// The number times 10^shift, rounded to the nearest (half away from zero). nullopt: not a number, or
// beyond +-4e18. "12.3456" with shift 3 is 12346; exponents are understood.
std::optional<std::int64_t> scaled_decimal(std::string_view text, int shift);

// A whole number, quoted or not; nullopt for anything else.
std::optional<std::int64_t> whole_number(std::string_view text);

}  // namespace fusescope::timeline
