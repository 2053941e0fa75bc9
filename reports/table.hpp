#pragma once
// A table as data, so that Markdown and HTML show the same rows. Cells hold plain text; the
// renderers escape it.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fusescope::reports {

// A place in the block timeline [ns from the iteration's begin].
struct Span {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  int rank = -1;
  bool gate = false;  // a wait at a gate: the rank's compute blocks of kernel 1 open
};

// Something that changes along a span, as shades of one colour.
struct Strip {
  std::string color;           // a slug of the palette
  std::vector<double> shades;  // 0 to 1, in equal parts of the span
};

struct Cell {
  std::string text;
  bool strong = false;
  bool code = false;
  // HTML only: a colour key before the text, a bar of this share of the cell behind it, a button that
  // shows a span in the block timeline, and a strip that takes what room there is.
  std::string swatch;
  std::optional<double> bar;
  std::optional<Span> show;
  std::optional<Strip> strip;

  Cell() = default;
  Cell(std::string text_)
      : text(std::move(text_)) {}  // NOLINT(google-explicit-constructor): rows read as lists
  Cell(const char* text_) : text(text_) {}  // NOLINT(google-explicit-constructor)
};

struct Column {
  std::string name;
  bool numeric = false;
};

struct Table {
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<Cell> total;       // a closing row; empty: none
  std::size_t shown = SIZE_MAX;  // the rows after these are folded
  bool empty() const { return rows.empty(); }
};

std::string to_html(const Table& table);
std::string to_markdown(const Table& table);

}  // namespace fusescope::reports
