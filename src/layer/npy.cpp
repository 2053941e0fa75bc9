#include "layer/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace fusescope {
namespace {

static_assert(std::endian::native == std::endian::little, ".npy elements are copied as they lie");

constexpr std::string_view kMagic = "\x93NUMPY";

// The header is a Python dict literal: {'descr': '<i4', 'fortran_order': False, 'shape': (8, 4), }
class Header {
 public:
  Header(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  std::string type() const {
    std::string_view rest = after("descr");
    if (rest.empty() || (rest.front() != '\'' && rest.front() != '"')) {
      refuse("'descr' is not a plain type (structured arrays are not routing)");
    }
    const std::size_t end = rest.find(rest.front(), 1);
    if (end == std::string_view::npos) {
      refuse("'descr' does not end");
    }
    return std::string(rest.substr(1, end - 1));
  }

  bool fortran_order() const { return after("fortran_order").starts_with("True"); }

  std::vector<long long> shape() const {
    std::string_view rest = after("shape");
    const std::size_t end = rest.find(')');
    if (!rest.starts_with('(') || end == std::string_view::npos) {
      refuse("'shape' is not a tuple");
    }
    rest = rest.substr(1, end - 1);
    std::vector<long long> sizes;
    while (true) {
      rest.remove_prefix(std::min(rest.find_first_not_of(" ,"), rest.size()));
      if (rest.empty()) {
        return sizes;
      }
      long long size = 0;
      const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
      if (error != std::errc{} || size < 0) {
        refuse(fmt::format("'shape' holds \"{}\"", rest));
      }
      sizes.push_back(size);
      rest.remove_prefix(stop - rest.data());
    }
  }

  [[noreturn]] void refuse(const std::string& problem) const {
    throw InputError({path_, ".npy header", problem,
                      "a dict with 'descr', 'fortran_order' and 'shape', as numpy.save writes it"});
  }

 private:
  // What stands behind a key and its colon.
  std::string_view after(std::string_view key) const {
    for (const char quote : {'\'', '"'}) {
      const std::string quoted = fmt::format("{}{}{}", quote, key, quote);
      const std::size_t found = text_.find(quoted);
      if (found != std::string_view::npos) {
        std::string_view rest = text_.substr(found + quoted.size());
        rest.remove_prefix(std::min(rest.find_first_not_of(" :"), rest.size()));
        return rest;
      }
    }
    refuse(fmt::format("'{}' is missing", key));
  }

  std::string_view text_;
  const std::string& path_;
};

[[noreturn]] void refuse_truncated(const std::string& path, std::size_t found,
                                   const std::string& expected) {
  throw InputError(
      {path, fmt::format("byte {}", found), "the file ends too early: it is truncated", expected});
}

// Bytes of the elements; `most` + 1 if they are more than `most`, however absurd the header.
std::size_t bytes_of(const std::vector<long long>& shape, std::size_t element, std::size_t most) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    return 0;
  }
  std::size_t bytes = element;
  for (const long long size : shape) {
    if (static_cast<std::size_t>(size) > most / bytes) {
      return most + 1;
    }
    bytes *= static_cast<std::size_t>(size);
  }
  return bytes;
}

}  // namespace

bool is_npy(std::string_view bytes) {
  return bytes.starts_with(kMagic);
}

std::string spoken_shape(const std::vector<long long>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

NpyArray read_npy(std::string_view bytes, const std::string& path,
                  const std::vector<std::string>& types) {
  if (!is_npy(bytes)) {
    throw InputError({path, "", "is not a .npy file", "a file that numpy.save wrote"});
  }
  constexpr std::size_t kVersion1Prefix = 10;  // magic, version, 2 bytes of header length
  if (bytes.size() < kVersion1Prefix + 2) {
    refuse_truncated(path, bytes.size(), "a complete .npy header");
  }
  const int version = static_cast<unsigned char>(bytes[kMagic.size()]);
  if (version < 1 || version > 3) {
    throw InputError({path, ".npy header", fmt::format("format version {}", version), "1, 2 or 3"});
  }
  const std::size_t prefix = version == 1 ? kVersion1Prefix : kVersion1Prefix + 2;
  const std::string_view length_bytes = bytes.substr(kMagic.size() + 2);
  const std::size_t length = version == 1 ? npy_element<std::uint16_t>(length_bytes, 0)
                                          : npy_element<std::uint32_t>(length_bytes, 0);
  if (bytes.size() < prefix + length) {
    refuse_truncated(path, bytes.size(), "a complete .npy header");
  }

  const Header header(bytes.substr(prefix, length), path);
  NpyArray array{header.type(), header.shape(), bytes.substr(prefix + length)};
  if (std::find(types.begin(), types.end(), array.type) == types.end()) {
    throw InputError({path, ".npy header", fmt::format("elements of type '{}'", array.type),
                      spoken_list(types)});
  }
  if (header.fortran_order() && array.shape.size() > 1) {
    throw InputError({path, ".npy header", "the array lies in Fortran order",
                      "C order, as numpy.ascontiguousarray makes it"});
  }
  const std::size_t element = array.type.back() - '0';
  const std::size_t expected = bytes_of(array.shape, element, array.data.size());
  if (expected > array.data.size()) {
    refuse_truncated(path, bytes.size(),
                     fmt::format("{} elements of {} bytes behind the header",
                                 spoken_shape(array.shape), element));
  }
  if (expected < array.data.size()) {
    throw InputError({path, fmt::format("byte {}", prefix + length + expected),
                      fmt::format("{} bytes too many", array.data.size() - expected),
                      "exactly the elements of " + spoken_shape(array.shape)});
  }
  return array;
}

}  // namespace fusescope
