// Shapes from JSON: sweeps/shapes/*.json by name, or any file by path. Data enters as a name or
// path and leaves as a validated Shape.
#include "layer/shape.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>

#include "base/error.hpp"
#include "base/json_names.hpp"
#include "base/json_reader.hpp"
#include "base/suggest.hpp"

namespace fusescope {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRanks = 64;
constexpr int kMostTokensPerRank = 1 << 20;
constexpr int kMostHidden = 1 << 16;
constexpr int kMostExperts = 4096;  // the vectorised builder sorts 16-bit expert keys
constexpr int kMostTopk = 64;
constexpr int kCopyElements = 8;  // bf16 elements in the 16 bytes that a bulk copy moves at least

struct Field {
  const char* key;
  int Shape::*member;
  int least;
  int most;
  int multiple;
};

constexpr Field kFields[] = {
    {"ranks", &Shape::ranks, 1, kMostRanks, 1},
    {"tokens_per_rank", &Shape::tokens_per_rank, 1, kMostTokensPerRank, 1},
    {"hidden", &Shape::hidden, kCopyElements, kMostHidden, kCopyElements},
    {"experts", &Shape::experts, 1, kMostExperts, 1},
    {"topk", &Shape::topk, 1, kMostTopk, 1},
    {"intermediate", &Shape::intermediate, kCopyElements, kMostHidden, kCopyElements},
};

bool is_path(const std::string& name_or_path) {
  return name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json");
}

Shape read_shape(const std::string& path) {
  const Json document = read_json_file(path);
  const JsonReader reader(path, document);
  std::vector<std::string> known = {"name", "source"};
  for (const Field& field : kFields) {
    known.emplace_back(field.key);
  }
  reader.only(known);
  Shape shape;
  shape.name = reader.at("name").as_string();
  shape.source = reader.at("source").as_string();
  for (const Field& field : kFields) {
    shape.*field.member =
        static_cast<int>(reader.at(field.key).as_integer(field.least, field.most));
  }
  validate(shape, path);
  return shape;
}

}  // namespace

std::string sweeps_folder() {
  const char* chosen = std::getenv("FUSESCOPE_SWEEPS_DIR");
  return chosen && *chosen ? chosen : FUSESCOPE_SWEEPS_DIR;
}

void validate(const Shape& shape, const std::string& file) {
  const auto refuse = [&](const std::string& key, const std::string& problem,
                          const std::string& accepted) {
    throw InputError({file, "/" + key, problem, accepted});
  };
  for (const Field& field : kFields) {
    const int value = shape.*field.member;
    if (value < field.least || value > field.most) {
      refuse(
          field.key, std::to_string(value) + " is out of range",
          "an integer from " + std::to_string(field.least) + " to " + std::to_string(field.most));
    }
    if (value % field.multiple != 0) {
      refuse(field.key,
             std::to_string(value) + " is not a multiple of " + std::to_string(field.multiple) +
                 ", so a bf16 row is not a whole number of 16-byte copies",
             "a multiple of " + std::to_string(field.multiple));
    }
  }
  if (shape.topk > shape.experts) {
    refuse("topk",
           std::to_string(shape.topk) + " is more than the " + std::to_string(shape.experts) +
               " experts, and a token goes to distinct experts",
           "an integer from 1 to " + std::to_string(shape.experts));
  }
  const long long most_rows = shape.hits() + static_cast<long long>(shape.experts) * kRowBlock;
  if (most_rows > std::numeric_limits<std::int32_t>::max()) {
    refuse("tokens_per_rank",
           "ranks * tokens_per_rank * topk + padding is up to " + std::to_string(most_rows) +
               " rows, and slots are 32-bit",
           "at most 2147483647 rows");
  }
}

Shape load_shape(const std::string& name_or_path) {
  if (is_path(name_or_path)) {
    return read_shape(name_or_path);
  }
  const fs::path folder = fs::path(sweeps_folder()) / "shapes";
  const std::vector<std::string> names = json_names(folder);
  if (std::find(names.begin(), names.end(), name_or_path) == names.end()) {
    const std::string nearest = nearest_name(name_or_path, names);
    throw InputError(
        {"", "shape",
         "\"" + name_or_path + "\" is not in " + folder.string() +
             (nearest.empty() ? "" : ", did you mean \"" + nearest + "\"?"),
         (names.empty() ? "" : spoken_list(names) + ", or ") + "the path of a shape's JSON file"});
  }
  return read_shape((folder / (name_or_path + ".json")).string());
}

std::vector<Shape> list_shapes() {
  const fs::path folder = fs::path(sweeps_folder()) / "shapes";
  std::vector<Shape> shapes;
  for (const std::string& name : json_names(folder)) {
    shapes.push_back(read_shape((folder / (name + ".json")).string()));
  }
  return shapes;
}

}  // namespace fusescope
