#pragma once
// Inside the layer library: NumPy's .npy format (versions 1 to 3), little-endian, C order.
// Format: numpy.lib.format in NumPy's documentation.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusescope {

struct NpyArray {
  std::string type;  // "<i4"
  std::vector<long long> shape;
  std::string_view data;  // exactly as long as type and shape say
};

bool is_npy(std::string_view bytes);

// `bytes` must outlive the result. Throws InputError with `path`: not .npy, truncated, too long, Fortran
// order, or of a type that is not among `types`.
NpyArray read_npy(std::string_view bytes, const std::string& path,
                  const std::vector<std::string>& types);

// "[1024, 8]"
std::string spoken_shape(const std::vector<long long>& shape);

// Element `index` of the data as it is stored. Type must be trivially copyable and of the stored size.
template <typename Type>
Type npy_element(std::string_view data, std::size_t index) {
  Type value;
  __builtin_memcpy(&value, data.data() + index * sizeof(Type), sizeof(Type));
  return value;
}

}  // namespace fusescope
