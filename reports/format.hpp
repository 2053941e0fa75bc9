#pragma once
// Numbers and foreign text as both renderers write them.

#include <cstdint>
#include <string>
#include <string_view>

namespace fusescope::reports {

std::string us(double microseconds);             // "1,234.5"
std::string us_exact(std::int64_t nanoseconds);  // "1,234.567": microseconds to the nanosecond
std::string count(long long value);              // "16,384"
std::string percent(double fraction);            // "12.3%"
std::string signed_percent(double fraction);     // "+12.3%", with a true minus
std::string signed_us(double microseconds);      // "+12.3"
std::string number(double value);                // four significant digits, thousands separated

// " us" as " µs": the analysis writes for terminals.
std::string with_micro_sign(std::string text);

std::string escape_html(std::string_view text);
// Also for table cells: a pipe or a line break would end one.
std::string escape_markdown(std::string_view text);

std::string base64(std::string_view bytes);

}  // namespace fusescope::reports
