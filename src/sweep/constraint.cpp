#include "sweep/constraint.hpp"

#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "sweep/constraint_tree.hpp"

namespace fusescope::sweep {
namespace {

using Node = Constraint::Node;

struct DivisionByZero {
  std::size_t column;
};

Value value_of(const Knob& knob, const Config& config) {
  struct Widen {
    Value operator()(bool given) const { return given; }
    Value operator()(long long given) const { return static_cast<double>(given); }
    Value operator()(double given) const { return given; }
    Value operator()(const std::string& given) const { return given; }
  };
  return std::visit(Widen{}, knob.get(config));
}

Value evaluate(const Node& node, const Scope& scope);

double number(const Node& node, const Scope& scope) {
  return std::get<double>(evaluate(node, scope));
}
bool truth(const Node& node, const Scope& scope) {
  return std::get<bool>(evaluate(node, scope));
}

double divisor(const Node& node, const Scope& scope) {
  const double value = number(*node.right, scope);
  if (value == 0) {
    throw DivisionByZero{node.right->column};
  }
  return value;
}

Value evaluate(const Node& node, const Scope& scope) {
  const Node* left = node.left.get();
  const Node* right = node.right.get();
  switch (node.op) {
    case Op::constant:
      return node.value;
    case Op::knob:
      return value_of(*node.knob, scope.config);
    case Op::field:
      return node.field(scope);
    case Op::negate:
      return -number(*left, scope);
    case Op::logical_not:
      return !truth(*left, scope);
    case Op::add:
      return number(*left, scope) + number(*right, scope);
    case Op::subtract:
      return number(*left, scope) - number(*right, scope);
    case Op::multiply:
      return number(*left, scope) * number(*right, scope);
    case Op::divide:
      return number(*left, scope) / divisor(node, scope);
    case Op::remainder:
      return std::fmod(number(*left, scope), divisor(node, scope));
    case Op::equal:
      return evaluate(*left, scope) == evaluate(*right, scope);
    case Op::not_equal:
      return evaluate(*left, scope) != evaluate(*right, scope);
    case Op::less:
      return number(*left, scope) < number(*right, scope);
    case Op::less_equal:
      return number(*left, scope) <= number(*right, scope);
    case Op::greater:
      return number(*left, scope) > number(*right, scope);
    case Op::greater_equal:
      return number(*left, scope) >= number(*right, scope);
    case Op::logical_and:
      return truth(*left, scope) && truth(*right, scope);
    case Op::logical_or:
      return truth(*left, scope) || truth(*right, scope);
  }
  return false;
}

}  // namespace

Constraint::Constraint(const std::string& text, const std::string& file, const std::string& place)
    : text_(text), file_(file), place_(place), root_(parse_constraint(text, file, place)) {}

bool Constraint::holds(const Config& config, const DeviceLimits& device, const Shape& shape) const {
  try {
    return truth(*root_, Scope{config, device, shape});
  } catch (const DivisionByZero& division) {
    throw InputError({file_, place_ + " column " + std::to_string(division.column),
                      "divides by zero in \"" + text_ + "\" for " + describe(config),
                      "a divisor that is not zero for any config of the sweep"});
  }
}

}  // namespace fusescope::sweep
