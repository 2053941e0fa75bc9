#pragma once
// Inside constraints: the expression tree that the parser builds and the evaluator walks.

#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "sweep/constraint.hpp"

namespace fusescope::sweep {

// What an expression is evaluated over.
struct Scope {
  const Config& config;
  const DeviceLimits& device;
  const Shape& shape;
};

using Value = std::variant<double, bool, std::string>;
enum class Type { number, truth, text };  // in the order of Value's alternatives

enum class Op {
  constant,
  knob,
  field,
  negate,
  logical_not,
  add,
  subtract,
  multiply,
  divide,
  remainder,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
};

struct Constraint::Node {
  Op op = Op::constant;
  Type type = Type::number;
  std::size_t column = 1;                  // where it stands in the text, from 1
  Value value;                             // constant
  const Knob* knob = nullptr;              // knob
  Value (*field)(const Scope&) = nullptr;  // field of the device or the shape
  std::unique_ptr<Node> left;              // operand, or left operand
  std::unique_ptr<Node> right;
};

// Throws InputError with file, place and column.
std::unique_ptr<Constraint::Node> parse_constraint(const std::string& text, const std::string& file,
                                                   const std::string& place);

}  // namespace fusescope::sweep
