#include "cli/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace fusescope::cli {
namespace {

using analysis::Attribution;

double us(std::int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

double percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string steps_text(const Attribution& attribution) {
  std::string text =
      fmt::format("{:<20} {:>10} {:>7} {:>10}\n", "critical path", "us", "wall", "exposed");
  for (const analysis::Finding& finding : attribution.findings) {
    text += fmt::format("{:<20} {:>10.1f} {:>6.1f}%", analysis::name(finding.step), us(finding.ns),
                        finding.share * 100);
    text += finding.exposed_ns > 0 ? fmt::format(" {:>10.1f}\n", us(finding.exposed_ns)) : "\n";
    if (!finding.reason.empty()) {
      text += fmt::format("    {}\n", wrapped(finding.reason, 4));
    }
  }
  return text + fmt::format("{:<20} {:>10.1f} {:>6.1f}% {:>10.1f}\n", "wall",
                            us(attribution.wall_ns), 100.0, us(attribution.exposed_ns));
}

std::string accounting_text(const analysis::Accounting& accounting) {
  std::array<std::int64_t, analysis::kUses> by_use{};
  std::int64_t area = 0;
  for (const analysis::RankAccounting& rank : accounting.ranks) {
    area += rank.area_ns;
    for (std::size_t use = 0; use < by_use.size(); ++use) {
      by_use[use] += rank.by_use[use];
    }
  }
  std::string text = "SM time, all ranks:";
  for (std::size_t use = 0; use < by_use.size(); ++use) {
    if (by_use[use] > 0) {
      text += fmt::format(" {} {:.1f}%,", analysis::name(static_cast<analysis::Use>(use)),
                          percent(by_use[use], area));
    }
  }
  text.back() = '\n';
  return wrapped(text, 4);
}

std::string links_text(const Attribution& attribution) {
  std::string text;
  for (const analysis::LinkLoad* load : {&attribution.pulls, &attribution.pushes}) {
    if (!load->statement.empty()) {
      text += "  " + wrapped(load->statement + ".", 4, 98) + "\n";
    }
  }
  return text.empty() ? text : "\nRows between GPUs:\n" + text;
}

std::string gates_text(const analysis::Accounting& accounting, std::size_t most) {
  if (accounting.gates.empty() || most == 0) {
    return "";
  }
  std::string text = fmt::format("\nLongest waits at gates (of {}):\n", accounting.gates.size());
  // Blocks that wait for the same row block wait equally long: one of them stands for all.
  std::set<std::pair<int, int>> shown;
  for (const analysis::GateBlame& gate : accounting.gates) {
    if (shown.size() == most || !shown.emplace(gate.rank, gate.row_block).second) {
      continue;
    }
    text += fmt::format(
        "  {:.1f} us: rank {} block {} for row block {} (expert {}); last to land: token {} from "
        "rank {}, {} when the wait began\n",
        us(gate.wait_ns), gate.rank, gate.block, gate.row_block, gate.expert, gate.last_token,
        gate.source_rank, analysis::name(gate.blame));
  }
  return text;
}

}  // namespace

std::string attribution_text(const Attribution& attribution, std::size_t gates) {
  if (!attribution.refusal.empty()) {
    return "Nothing is attributed: " + attribution.refusal + "\n";
  }
  std::string text = wrapped(attribution.headline, 0) + "\n\n" + steps_text(attribution) + "\n" +
                     analysis::exposure_text(attribution.exposure) + "\n" +
                     accounting_text(attribution.accounting) + links_text(attribution) +
                     gates_text(attribution.accounting, gates);
  for (const std::string& caveat : attribution.caveats) {
    text += fmt::format("\n{}\n", wrapped("Caveat: " + caveat, 4));
  }
  return text;
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::string result;
  std::size_t column = indent;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::size_t length = end - begin;
    if (column > indent && column + 1 + length > width) {
      result += fmt::format("\n{:{}}", "", indent);
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += text.substr(begin, length);
    column += length;
    begin = end + 1;
  }
  return result;
}

}  // namespace fusescope::cli
