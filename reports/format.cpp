#include "reports/format.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <cstdlib>

namespace fusescope::reports {

namespace {

constexpr const char* kMinus = "\u2212";

// "1234567.8" -> "1,234,567.8"; a leading minus becomes the typographic one.
std::string separated(std::string digits) {
  const bool negative = !digits.empty() && digits.front() == '-';
  if (negative) {
    digits.erase(0, 1);
  }
  const std::size_t point = digits.find('.');
  std::size_t at = point == std::string::npos ? digits.size() : point;
  while (at > 3) {
    at -= 3;
    digits.insert(at, ",");
  }
  const bool zero = digits.find_first_of("123456789") == std::string::npos;
  return (negative && !zero ? kMinus : "") + digits;
}

std::string with_sign(const std::string& text) {
  const bool zero = text.find_first_of("123456789") == std::string::npos;
  const bool negative = text.starts_with(kMinus);
  return zero || negative ? text : "+" + text;
}

}  // namespace

std::string us(double microseconds) {
  return separated(fmt::format("{:.1f}", microseconds));
}

std::string us_exact(std::int64_t nanoseconds) {
  const std::int64_t size = std::abs(nanoseconds);
  return separated(fmt::format("{}{}.{:03}", nanoseconds < 0 ? "-" : "", size / 1000, size % 1000));
}

std::string count(long long value) {
  return separated(fmt::format("{}", value));
}

std::string percent(double fraction) {
  return separated(fmt::format("{:.1f}", fraction * 100)) + "%";
}

std::string signed_percent(double fraction) {
  return with_sign(percent(fraction));
}

std::string signed_us(double microseconds) {
  return with_sign(us(microseconds));
}

std::string number(double value) {
  if (!std::isfinite(value)) {
    return "not a number";
  }
  const double size = std::fabs(value);
  const int decimals = size >= 1000 || size == std::floor(size) ? 0
                       : size >= 100                            ? 1
                       : size >= 10                             ? 2
                                                                : 3;
  return separated(fmt::format("{:.{}f}", value, decimals));
}

std::string with_micro_sign(std::string text) {
  for (std::size_t at = text.find(" us"); at != std::string::npos; at = text.find(" us", at + 1)) {
    const std::size_t after = at + 3;
    if (after == text.size() || std::isalnum(static_cast<unsigned char>(text[after])) == 0) {
      text.replace(at + 1, 1, "µ");
    }
  }
  return text;
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\0':
        out += "\uFFFD";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '\n':
      case '\r':
        out += ' ';
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '\0':
        out += "\uFFFD";
        break;
      case '\\':
      case '`':
      case '*':
      case '_':
      case '[':
      case ']':
      case '|':
      case '#':
      case '!':
      case '~':
        out += '\\';
        [[fallthrough]];
      default:
        out += c;
    }
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = (group << 8) | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += i + j > bytes.size() ? '=' : kAlphabet[(group >> (18 - 6 * j)) & 63U];
    }
  }
  return out;
}

}  // namespace fusescope::reports
