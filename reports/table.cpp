#include "reports/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reports/format.hpp"

namespace fusescope::reports {

namespace {

std::string html_strip(const Strip& strip) {
  std::string out = fmt::format(
      "<svg viewBox=\"0 0 {} 1\" preserveAspectRatio=\"none\" shape-rendering=\"crispEdges\" "
      "aria-hidden=\"true\" style=\"fill:var(--{})\">",
      strip.shades.size(), escape_html(strip.color));
  for (std::size_t i = 0; i < strip.shades.size(); ++i) {
    out += fmt::format("<rect x=\"{}\" width=\"1\" height=\"1\" fill-opacity=\"{:.2f}\"/>", i,
                       std::clamp(strip.shades[i], 0.0, 1.0));
  }
  return out + "</svg>";
}

std::string html_cell(const Cell& cell, const Column& column, bool first) {
  std::string classes = column.numeric ? "num" : "";
  if (cell.bar) {
    classes += classes.empty() ? "bar" : " bar";
  }
  if (cell.strip) {
    classes += classes.empty() ? "shades" : " shades";
  }
  std::string out = first ? "<th scope=\"row\"" : "<td";
  if (!classes.empty()) {
    out += fmt::format(" class=\"{}\"", classes);
  }
  if (cell.bar) {
    out += fmt::format(" style=\"--bar:{:.1f}%\"", std::clamp(*cell.bar, 0.0, 1.0) * 100);
  }
  out += ">";
  if (!cell.swatch.empty()) {
    out += fmt::format("<i class=\"key\" style=\"background:var(--{})\" aria-hidden=\"true\"></i>",
                       escape_html(cell.swatch));
  }
  std::string text = escape_html(cell.text);
  if (cell.code) {
    text = "<code>" + text + "</code>";
  }
  out += cell.strong ? "<strong>" + text + "</strong>" : text;
  if (cell.show) {
    out += fmt::format(
        " <button type=\"button\" class=\"show\" data-begin=\"{}\" data-end=\"{}\" "
        "data-rank=\"{}\"{}>show</button>",
        cell.show->begin_ns, cell.show->end_ns, cell.show->rank,
        cell.show->gate ? " data-gate" : "");
  }
  if (cell.strip) {
    out += html_strip(*cell.strip);
  }
  return out + (first ? "</th>" : "</td>");
}

std::string html_row(const std::vector<Cell>& row, const std::vector<Column>& columns) {
  std::string out = "<tr>";
  for (std::size_t i = 0; i < row.size(); ++i) {
    out += html_cell(row[i], columns[i], i == 0);
  }
  return out + "</tr>\n";
}

std::string markdown_cell(const Cell& cell) {
  if (cell.text.empty()) {
    return " ";
  }
  if (cell.code && cell.text.find_first_of("`|\n\r\\") == std::string::npos) {
    return "`" + cell.text + "`";
  }
  const std::string text = escape_markdown(cell.text);
  return cell.strong ? "**" + text + "**" : text;
}

std::string markdown_row(const std::vector<Cell>& row) {
  std::string out = "|";
  for (const Cell& cell : row) {
    out += " " + markdown_cell(cell) + " |";
  }
  return out + "\n";
}

}  // namespace

std::string to_html(const Table& table) {
  const std::size_t shown = std::min(table.shown, table.rows.size());
  const std::size_t folded = table.rows.size() - shown;
  std::string out = "<div class=\"table\"><div class=\"scroll\" tabindex=\"0\" role=\"region\"";
  out += fmt::format(" aria-label=\"{}\"><table>\n", escape_html(table.caption));
  out += fmt::format("<caption>{}</caption>\n<thead><tr>", escape_html(table.caption));
  for (const Column& column : table.columns) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>", column.numeric ? " class=\"num\"" : "",
                       escape_html(column.name));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < shown; ++i) {
    out += html_row(table.rows[i], table.columns);
  }
  out += "</tbody>\n";
  if (folded > 0) {
    out += "<tbody class=\"more\">\n";
    for (std::size_t i = shown; i < table.rows.size(); ++i) {
      out += html_row(table.rows[i], table.columns);
    }
    out += "</tbody>\n";
  }
  if (!table.total.empty()) {
    out += "<tfoot>" + html_row(table.total, table.columns) + "</tfoot>\n";
  }
  out += "</table></div>";
  if (folded > 0) {
    out += fmt::format(
        "<button type=\"button\" class=\"unfold\" aria-expanded=\"true\">{} more rows</button>",
        folded);
  }
  return out + "</div>\n";
}

std::string to_markdown(const Table& table) {
  std::string out = "|";
  std::string rule = "|";
  for (const Column& column : table.columns) {
    out += " " + escape_markdown(column.name) + " |";
    rule += column.numeric ? "---:|" : "---|";
  }
  const std::string head = out + "\n" + rule + "\n";
  out = head;
  const std::size_t shown = std::min(table.shown, table.rows.size());
  for (std::size_t i = 0; i < shown; ++i) {
    out += markdown_row(table.rows[i]);
  }
  if (!table.total.empty()) {
    std::vector<Cell> total = table.total;
    for (Cell& cell : total) {
      cell.strong = !cell.text.empty();
    }
    out += markdown_row(total);
  }
  if (shown < table.rows.size()) {
    out += fmt::format("\n<details><summary>{} more rows</summary>\n\n{}",
                       table.rows.size() - shown, head);
    for (std::size_t i = shown; i < table.rows.size(); ++i) {
      out += markdown_row(table.rows[i]);
    }
    out += "\n</details>\n";
  }
  return out;
}

}  // namespace fusescope::reports
