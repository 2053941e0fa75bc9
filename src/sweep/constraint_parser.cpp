// Recursive descent over the text of a constraint, one function per level of precedence. Types are
// checked while the tree is built.

#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "layer/gemm_path.hpp"
#include "sweep/constraint_tree.hpp"

namespace fusescope::sweep {
namespace {

using Node = Constraint::Node;
using NodePtr = std::unique_ptr<Node>;

struct Field {
  std::string_view name;
  Value (*get)(const Scope&);
  Type type = Type::number;
};
Value number(int value) {
  return static_cast<double>(value);
}
Value runs_wgmma(const Scope& scope) {
  return with_gemm_chosen(scope.config, scope.device).gemm == GemmPath::wgmma;
}
constexpr std::array<Field, 10> kFields = {{
    {"device.sms", [](const Scope& scope) { return number(scope.device.sms); }},
    {"device.smem_per_block",
     [](const Scope& scope) { return number(scope.device.smem_per_block); }},
    {"device.wgmma", runs_wgmma, Type::truth},
    {"shape.ranks", [](const Scope& scope) { return number(scope.shape.ranks); }},
    {"shape.tokens_per_rank",
     [](const Scope& scope) { return number(scope.shape.tokens_per_rank); }},
    {"shape.tokens", [](const Scope& scope) { return number(scope.shape.tokens()); }},
    {"shape.hidden", [](const Scope& scope) { return number(scope.shape.hidden); }},
    {"shape.experts", [](const Scope& scope) { return number(scope.shape.experts); }},
    {"shape.topk", [](const Scope& scope) { return number(scope.shape.topk); }},
    {"shape.intermediate", [](const Scope& scope) { return number(scope.shape.intermediate); }},
}};

std::string_view name(Type type) {
  constexpr std::array<std::string_view, 3> kNames = {"a number", "a truth value", "a string"};
  return kNames[static_cast<std::size_t>(type)];
}

struct Token {
  enum class Kind { end, number, text, word, symbol } kind = Kind::end;
  std::string text;
  std::size_t column = 1;
};

class Parser {
 public:
  Parser(const std::string& text, const std::string& file, const std::string& place)
      : text_(text), file_(file), place_(place) {
    if (text.size() > kLongest) {
      throw InputError({file, place, "is " + std::to_string(text.size()) + " characters long",
                        "at most " + std::to_string(kLongest)});
    }
    advance();
  }

  NodePtr whole() {
    NodePtr root = disjunction();
    if (token_.kind != Token::Kind::end) {
      refuse(token_.column, "unexpected " + shown(token_), "an operator or the end");
    }
    want(*root, Type::truth);
    return root;
  }

 private:
  // ---- Levels of precedence, loosest first.

  NodePtr disjunction() {
    NodePtr left = conjunction();
    while (is("or")) {
      left =
          binary(Op::logical_or, std::move(left), &Parser::conjunction, Type::truth, Type::truth);
    }
    return left;
  }

  NodePtr conjunction() {
    NodePtr left = negation();
    while (is("and")) {
      left = binary(Op::logical_and, std::move(left), &Parser::negation, Type::truth, Type::truth);
    }
    return left;
  }

  NodePtr negation() {
    if (!is("not")) {
      return comparison();
    }
    const std::size_t column = token_.column;
    const Depth depth(*this);
    advance();
    return unary(Op::logical_not, column, negation(), Type::truth);
  }

  NodePtr comparison() {
    NodePtr left = sum();
    const std::optional<Op> op = comparison_here();
    if (!op) {
      return left;
    }
    if (*op == Op::equal || *op == Op::not_equal) {
      left = equality(*op, std::move(left));
    } else {
      left = binary(*op, std::move(left), &Parser::sum, Type::number, Type::truth);
    }
    if (comparison_here()) {
      refuse(token_.column, "comparisons do not chain", "two comparisons joined by \"and\"");
    }
    return left;
  }

  NodePtr sum() {
    NodePtr left = product();
    while (is("+") || is("-")) {
      const Op op = is("+") ? Op::add : Op::subtract;
      left = binary(op, std::move(left), &Parser::product, Type::number, Type::number);
    }
    return left;
  }

  NodePtr product() {
    NodePtr left = factor();
    while (is("*") || is("/") || is("%")) {
      const Op op = is("*") ? Op::multiply : is("/") ? Op::divide : Op::remainder;
      left = binary(op, std::move(left), &Parser::factor, Type::number, Type::number);
    }
    return left;
  }

  NodePtr factor() {
    const std::size_t column = token_.column;
    const Depth depth(*this);
    if (is("-")) {
      advance();
      return unary(Op::negate, column, factor(), Type::number);
    }
    if (is("(")) {
      advance();
      NodePtr inside = disjunction();
      if (!is(")")) {
        refuse(token_.column, "unexpected " + shown(token_),
               "\")\" for the \"(\" at column " + std::to_string(column));
      }
      advance();
      return inside;
    }
    return leaf();
  }

  NodePtr leaf() {
    const Token token = token_;
    auto node = std::make_unique<Node>();
    node->column = token.column;
    if (token.kind == Token::Kind::number) {
      double number = 0;
      const char* end = token.text.data() + token.text.size();
      const auto parsed = std::from_chars(token.text.data(), end, number);
      if (parsed.ec != std::errc{} || parsed.ptr != end) {
        refuse(token.column, "\"" + token.text + "\" is not a number",
               "a number such as 32 or 0.5");
      }
      node->value = number;
    } else if (token.kind == Token::Kind::text) {
      node->type = Type::text;
      node->value = token.text;
    } else if (token.text == "true" || token.text == "false") {
      node->type = Type::truth;
      node->value = token.text == "true";
    } else if (token.kind == Token::Kind::word && token.text != "and" && token.text != "or") {
      resolve(token, *node);
    } else {
      refuse(token.column, "unexpected " + shown(token),
             "a number, a name, a quoted string or \"(\"");
    }
    advance();
    return node;
  }

  // ---- Building and typing.

  void resolve(const Token& token, Node& node) {
    if (const Knob* knob = find_knob(token.text)) {
      const KnobValue value = knob->get(Config{});
      node.op = Op::knob;
      node.knob = knob;
      node.type = std::holds_alternative<bool>(value)          ? Type::truth
                  : std::holds_alternative<std::string>(value) ? Type::text
                                                               : Type::number;
      return;
    }
    std::vector<std::string> known;
    for (const Field& field : kFields) {
      if (field.name == token.text) {
        node.op = Op::field;
        node.field = field.get;
        node.type = field.type;
        return;
      }
      known.emplace_back(field.name);
    }
    for (const Knob& knob : knobs()) {
      known.emplace_back(knob.name);
      for (const std::string& choice : knob.choices) {
        if (choice == token.text) {
          refuse(token.column, "unknown name \"" + token.text + "\"",
                 "strings in quotes: '" + choice + "'");
        }
      }
    }
    const std::string nearest = nearest_name(token.text, known);
    refuse(token.column,
           "unknown name \"" + token.text + "\"" +
               (nearest.empty() ? "" : ", did you mean \"" + nearest + "\"?"),
           spoken_list(known));
  }

  NodePtr unary(Op op, std::size_t column, NodePtr operand, Type type) const {
    want(*operand, type);
    auto node = std::make_unique<Node>();
    node->op = op;
    node->type = type;
    node->column = column;
    node->left = std::move(operand);
    return node;
  }

  NodePtr binary(Op op, NodePtr left, NodePtr (Parser::*next)(), Type operands, Type result) {
    want(*left, operands);
    const std::size_t column = left->column;
    advance();
    auto node = std::make_unique<Node>();
    node->op = op;
    node->type = result;
    node->column = column;
    node->left = std::move(left);
    node->right = (this->*next)();
    want(*node->right, operands);
    return node;
  }

  NodePtr equality(Op op, NodePtr left) {
    const Type type = left->type;
    NodePtr node = binary(op, std::move(left), &Parser::sum, type, Type::truth);
    check_choice(*node->left, *node->right);
    check_choice(*node->right, *node->left);
    return node;
  }

  // A string that a knob is compared with must be one that the knob can have.
  void check_choice(const Node& knob, const Node& constant) const {
    if (knob.op != Op::knob || constant.op != Op::constant || knob.knob->choices.empty()) {
      return;
    }
    const auto& choices = knob.knob->choices;
    const auto& text = std::get<std::string>(constant.value);
    for (const std::string& choice : choices) {
      if (choice == text) {
        return;
      }
    }
    const std::string nearest = nearest_name(text, choices);
    refuse(constant.column,
           std::string(knob.knob->name) + " is never \"" + text + "\"" +
               (nearest.empty() ? "" : ", did you mean \"" + nearest + "\"?"),
           spoken_list(choices));
  }

  void want(const Node& node, Type type) const {
    if (node.type != type) {
      refuse(node.column, "this is " + std::string(name(node.type)),
             std::string(name(type)) +
                 (type == Type::truth ? ", such as \"dispatch_comm_sms < 32\"" : " here"));
    }
  }

  // ---- Tokens.

  bool is(std::string_view text) const {
    return token_.text == text &&
           (token_.kind == Token::Kind::word || token_.kind == Token::Kind::symbol);
  }

  std::optional<Op> comparison_here() const {
    constexpr std::array<std::pair<std::string_view, Op>, 6> kOps = {{{"==", Op::equal},
                                                                      {"!=", Op::not_equal},
                                                                      {"<", Op::less},
                                                                      {"<=", Op::less_equal},
                                                                      {">", Op::greater},
                                                                      {">=", Op::greater_equal}}};
    for (const auto& [text, op] : kOps) {
      if (is(text)) {
        return op;
      }
    }
    return std::nullopt;
  }

  static bool starts_word(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
  }
  static bool in_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  }

  template <typename Belongs>
  void take_while(Belongs belongs) {
    const std::size_t begin = position_;
    while (position_ < text_.size() && belongs(text_[position_])) {
      ++position_;
    }
    token_.text = text_.substr(begin, position_ - begin);
  }

  void advance() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) {
      ++position_;
    }
    token_ = {Token::Kind::end, "", position_ + 1};
    if (position_ == text_.size()) {
      return;
    }
    const char first = text_[position_];
    if (std::isdigit(static_cast<unsigned char>(first)) || first == '.') {
      token_.kind = Token::Kind::number;
      take_while(in_word);
    } else if (starts_word(first)) {
      token_.kind = Token::Kind::word;
      take_while(in_word);
    } else if (first == '"' || first == '\'') {
      quoted(first);
    } else {
      symbol();
    }
  }

  void quoted(char quote) {
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string::npos) {
      refuse(position_ + 1, "a string is not closed", std::string("a closing ") + quote);
    }
    token_.kind = Token::Kind::text;
    token_.text = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
  }

  void symbol() {
    token_.kind = Token::Kind::symbol;
    constexpr std::array<std::string_view, 13> kSymbols = {"==", "!=", "<=", ">=", "<", ">", "+",
                                                           "-",  "*",  "/",  "%",  "(", ")"};
    for (const std::string_view candidate : kSymbols) {
      if (text_.compare(position_, candidate.size(), candidate) == 0) {
        token_.text = candidate;
        position_ += candidate.size();
        return;
      }
    }
    refuse(position_ + 1, std::string("unexpected \"") + text_[position_] + "\"",
           "== != < <= > >= + - * / % ( ) and or not, a number, a name or a quoted string");
  }

  // A chain of operators becomes a tree as deep as the chain is long, so a hostile file's length is
  // bounded like its nesting.
  static constexpr std::size_t kLongest = 4096;

  static std::string shown(const Token& token) {
    return token.kind == Token::Kind::end ? "end of the expression" : "\"" + token.text + "\"";
  }

  [[noreturn]] void refuse(std::size_t column, const std::string& problem,
                           const std::string& accepted) const {
    throw InputError({file_, place_ + " column " + std::to_string(column),
                      problem + " in \"" + text_ + "\"", accepted});
  }

  // Parentheses nest only so deep, so that a hostile file cannot exhaust the stack.
  class Depth {
   public:
    explicit Depth(Parser& parser) : parser_(parser) {
      constexpr int kDeepest = 100;
      if (++parser_.depth_ > kDeepest) {
        parser_.refuse(parser_.token_.column, "nested too deeply", "at most 100 levels");
      }
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Parser& parser_;
  };

  const std::string& text_;
  const std::string& file_;
  const std::string& place_;
  std::size_t position_ = 0;
  Token token_;
  int depth_ = 0;
};

}  // namespace

std::unique_ptr<Constraint::Node> parse_constraint(const std::string& text, const std::string& file,
                                                   const std::string& place) {
  return Parser(text, file, place).whole();
}

}  // namespace fusescope::sweep
