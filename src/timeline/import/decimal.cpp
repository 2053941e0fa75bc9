#include "timeline/import/decimal.hpp"

#include <charconv>

namespace fusescope::timeline {
namespace {

constexpr std::int64_t kMost = 4'000'000'000'000'000'000;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The exponent after 'e' or 'E'; nullopt if that is not all of `text`.
std::optional<int> exponent(std::string_view text) {
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < -400 || value > 400) {
    return std::nullopt;
  }
  return value;
}

struct Digits {
  std::int64_t value = 0;
  bool overflow = false;
  void add(int digit) {
    if (value > (kMost - digit) / 10) {
      overflow = true;
    } else {
      value = value * 10 + digit;
    }
  }
};

}  // namespace

std::optional<std::int64_t> scaled_decimal(std::string_view text, int shift) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' ||
                           text.back() == '\t')) {
    text.remove_suffix(1);
  }
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) {
    text.remove_prefix(1);
  }
  if (text.empty() || !is_digit(text.front())) {
    return std::nullopt;
  }
  std::size_t end = text.find_first_of("eE");
  if (end != std::string_view::npos) {
    const std::optional<int> power = exponent(text.substr(end + 1));
    if (!power) {
      return std::nullopt;
    }
    shift += *power;
  } else {
    end = text.size();
  }
  const std::string_view mantissa = text.substr(0, end);
  const std::size_t point = mantissa.find('.');
  const std::string_view whole = mantissa.substr(0, point);
  const std::string_view fraction =
      point == std::string_view::npos ? std::string_view{} : mantissa.substr(point + 1);
  for (const char c : whole) {
    if (!is_digit(c)) {
      return std::nullopt;
    }
  }
  for (const char c : fraction) {
    if (!is_digit(c)) {
      return std::nullopt;
    }
  }
  // The digit at 10^-shift is the last that counts; the one behind it rounds.
  const auto digit_at = [&](std::int64_t index) -> int {  // 0 = first digit of `whole`
    const auto wholes = static_cast<std::int64_t>(whole.size());
    if (index < 0) {
      return 0;
    }
    if (index < wholes) {
      return whole[static_cast<std::size_t>(index)] - '0';
    }
    const auto behind = static_cast<std::size_t>(index - wholes);
    return behind < fraction.size() ? fraction[behind] - '0' : 0;
  };
  const std::int64_t count = static_cast<std::int64_t>(whole.size()) + shift;
  Digits digits;
  for (std::int64_t i = 0; i < count && !digits.overflow; ++i) {
    digits.add(digit_at(i));
  }
  if (!digits.overflow && digit_at(count) >= 5) {
    ++digits.value;
  }
  if (digits.overflow) {
    return std::nullopt;
  }
  return negative ? -digits.value : digits.value;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' ||
                           text.back() == '\t')) {
    text.remove_suffix(1);
  }
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace fusescope::timeline
