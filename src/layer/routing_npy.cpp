// Routing from .npy: ids [tokens, K] or [tokens, layers, K], weights in a second file of the same shape.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/error.hpp"
#include "base/file_bytes.hpp"
#include "layer/npy.hpp"
#include "layer/routing_source.hpp"

namespace fusescope {
namespace {

// The chosen layer's part of an array: row i is elements [first + i * stride, + topk).
struct Selection {
  std::size_t rows;
  std::size_t topk;
  std::size_t first;
  std::size_t stride;
};

Selection select_layer(const NpyArray& array, const RoutingSpec& spec) {
  const std::size_t dimensions = array.shape.size();
  if (dimensions != 2 && dimensions != 3) {
    throw InputError({spec.path, ".npy header",
                      fmt::format("an array of shape {}", spoken_shape(array.shape)),
                      "[tokens, K] or [tokens, layers, K]"});
  }
  if (std::find(array.shape.begin(), array.shape.end(), 0) != array.shape.end()) {
    throw InputError({spec.path, "", "has no tokens: its shape is " + spoken_shape(array.shape),
                      "at least one token"});
  }
  const long long layers = dimensions == 3 ? array.shape[1] : 1;
  if (spec.layer >= layers) {
    throw InputError(
        {spec.path, "",
         fmt::format("layer {} of an array of shape {}", spec.layer, spoken_shape(array.shape)),
         fmt::format("layer 0 to {}", layers - 1)});
  }
  const std::size_t topk = static_cast<std::size_t>(array.shape.back());
  if (array.shape[0] * static_cast<long long>(topk) > std::numeric_limits<std::int32_t>::max()) {
    throw InputError({spec.path, "", fmt::format("{} tokens are too many", array.shape[0]),
                      "at most 2147483647 hits"});
  }
  return {static_cast<std::size_t>(array.shape[0]), topk, spec.layer * topk,
          static_cast<std::size_t>(layers) * topk};
}

template <typename Stored, typename Wanted, typename Convert>
void read_rows(const NpyArray& array, const Selection& part, std::vector<Wanted>& out,
               const Convert& convert) {
  out.reserve(part.rows * part.topk);
  for (std::size_t row = 0; row < part.rows; ++row) {
    for (std::size_t k = 0; k < part.topk; ++k) {
      const std::size_t index = part.first + row * part.stride + k;
      out.push_back(convert(npy_element<Stored>(array.data, index), row));
    }
  }
}

void read_ids(const NpyArray& array, const Selection& part, const std::string& path,
              std::vector<std::int32_t>& ids) {
  const auto convert = [&](auto id, std::size_t row) {
    const long long wide = id;
    if (wide < std::numeric_limits<std::int32_t>::min() ||
        wide > std::numeric_limits<std::int32_t>::max()) {
      throw InputError({path, fmt::format("row {}", row),
                        fmt::format("expert id {} is out of range", wide), "an expert's id"});
    }
    return static_cast<std::int32_t>(wide);
  };
  if (array.type == "<i2") {
    read_rows<std::int16_t>(array, part, ids, convert);
  } else if (array.type == "<i4") {
    read_rows<std::int32_t>(array, part, ids, convert);
  } else {
    read_rows<std::int64_t>(array, part, ids, convert);
  }
}

std::vector<float> read_weights(const RoutingSpec& spec, const NpyArray& ids,
                                const Selection& part) {
  const std::string bytes = read_file_bytes(spec.weights_path);
  const NpyArray array = read_npy(bytes, spec.weights_path, {"<f4", "<f8"});
  if (array.shape != ids.shape) {
    throw InputError({spec.weights_path, "", "weights of shape " + spoken_shape(array.shape),
                      "the shape of the ids, " + spoken_shape(ids.shape)});
  }
  std::vector<float> weights;
  const auto convert = [](auto weight, std::size_t) { return static_cast<float>(weight); };
  if (array.type == "<f4") {
    read_rows<float>(array, part, weights, convert);
  } else {
    read_rows<double>(array, part, weights, convert);
  }
  return weights;
}

std::string spoken_type(const std::string& type) {
  return "int" + std::to_string((type.back() - '0') * 8);
}

}  // namespace

RecordedRouting read_npy_routing(const RoutingSpec& spec, std::string_view bytes) {
  const NpyArray array = read_npy(bytes, spec.path, {"<i2", "<i4", "<i8"});
  const Selection part = select_layer(array, spec);
  RecordedRouting recorded;
  recorded.tokens = static_cast<int>(part.rows);
  recorded.topk = static_cast<int>(part.topk);
  read_ids(array, part, spec.path, recorded.experts);
  if (!spec.weights_path.empty()) {
    recorded.weights = read_weights(spec, array, part);
  }
  recorded.form = spoken_type(array.type) + " .npy";
  if (array.shape.size() == 3) {
    recorded.form += fmt::format(", layer {} of {}", spec.layer, array.shape[1]);
  }
  return recorded;
}

}  // namespace fusescope
