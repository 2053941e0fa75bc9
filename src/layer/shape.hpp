#pragma once
// The shape of one tensor-parallel MoE layer (DESIGN: "The layer").

#include <cstdint>
#include <string>
#include <vector>

namespace fusescope {

inline constexpr int kRowBlock =
    128;  // rows of a row block, which never spans two experts; of tiles: row_tiles.hpp

struct Shape {
  std::string name;
  int ranks = 0;            // R
  int tokens_per_rank = 0;  // T
  int hidden = 0;           // H
  int experts = 0;          // E
  int topk = 0;             // K
  int intermediate = 0;     // I, per rank
  std::string source;       // where the numbers come from

  int tokens() const { return ranks * tokens_per_rank; }  // R*T, the global token ids
  long long hits() const { return static_cast<long long>(tokens()) * topk; }
  int source_rank(int token) const { return token / tokens_per_rank; }
  bool operator==(const Shape&) const = default;
};

// The folder of sweeps, shapes/, profiles/ and tuned/: $FUSESCOPE_SWEEPS_DIR if set, else the source tree's
// sweeps/.
std::string sweeps_folder();

// Throws InputError if no layer of this shape can exist (K > E, odd sizes the copies cannot move,
// ...).
void validate(const Shape& shape, const std::string& file);

// `name_or_path`: a name in the shapes folder ("seed-tp4") or a JSON file's path. The file is one
// object with every key of Shape and no other.
Shape load_shape(const std::string& name_or_path);
std::vector<Shape> list_shapes();  // of the shapes folder, by name

}  // namespace fusescope
