// The Markdown report: the same sections and tables as the page, with pictures where gnuplot drew them.

#include <fmt/format.h>

#include "reports/advice_sections.hpp"
#include "reports/findings.hpp"
#include "reports/format.hpp"
#include "reports/knob_effects.hpp"
#include "reports/prose.hpp"
#include "reports/report.hpp"
#include "reports/sections.hpp"

namespace fusescope::reports {

namespace {

class Document {
 public:
  Document(std::string word, const Charts& charts) : word_(std::move(word)), charts_(charts) {}

  void heading(const std::string& text, bool with_word = true) {
    out_ += "\n## " + escape_markdown(text) + (with_word ? " (" + word_ + ")" : "") + "\n\n";
  }
  void paragraph(const std::string& text) {
    if (!text.empty()) {
      out_ += escape_markdown(text) + "\n\n";
    }
  }
  void strong(const std::string& text) { out_ += "**" + escape_markdown(text) + "**\n\n"; }
  void title(const std::string& text) { out_ += "# " + escape_markdown(text) + "\n\n"; }
  void quote(const std::string& text) { out_ += "> " + escape_markdown(text) + "\n\n"; }
  void list(const std::vector<std::string>& items) {
    for (const std::string& item : items) {
      out_ += "- " + escape_markdown(item) + "\n";
    }
    out_ += "\n";
  }
  void table(const Table& table) {
    if (!table.empty()) {
      strong(table.caption + ", " + word_);
      out_ += to_markdown(table) + "\n";
    }
  }
  // Not numbers of a run, so neither measured nor simulated.
  void plain_table(const Table& table) { out_ += to_markdown(table) + "\n"; }
  void picture(const char* key, const std::string& alternative) {
    if (charts_.svg.contains(key)) {
      out_ += fmt::format("![{} ({})]({}.svg)\n\n", alternative, word_, key);
    }
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
  std::string word_;
  const Charts& charts_;
};

void write_verdict(Document& out, const ReportInput& input, const Findings& findings) {
  out.heading("Verdict");
  out.picture("path", "Critical path along the wall");
  for (const std::string& sentence : findings.verdict) {
    out.paragraph(sentence);
  }
  if (const std::vector<std::string> changes = suggestions(input); !changes.empty()) {
    out.strong("Suggestions");
    out.list(changes);
  }
  if (!findings.next.empty()) {
    out.strong("What to try next");
    out.list(findings.next);
  }
  if (!input.notes.empty()) {
    out.strong("Notes");
    out.list(input.notes);
  }
}

void write_sweep(Document& out, const ReportInput& input, const Findings& findings) {
  if (!input.ladder.steps.empty()) {
    out.heading("Ladder");
    out.paragraph(prose::kLadder);
    out.picture("ladder", "Wall after each rung of the ladder");
    out.table(ladder_table(input));
  }
  if (!input.published.empty()) {
    out.heading("Published figures");
    out.paragraph(prose::kPublished);
    out.table(published_table(input));
  }
  const StepRows rows = step_rows(input, findings);
  if (!rows.trials.empty()) {
    out.heading("Steps per config");
    out.paragraph(prose::kSteps);
    out.picture("steps", "Critical path by step of the fastest configs and the serial layer");
    out.table(steps_table(input, rows));
  }
  if (const auto map = heatmap(input, findings)) {
    out.heading("Sweep");
    out.paragraph(prose::heatmap(*map, findings));
    out.table(heatmap_table(*map));
  }
  if (const Table effects = knob_effect_table(input, findings); !effects.empty()) {
    out.heading("Knobs");
    out.paragraph(prose::kKnobs);
    out.table(effects);
  }
  if (!findings.ranked.empty()) {
    out.heading("Configs");
    out.paragraph(prose::configs(findings));
    out.table(top_table(input, findings));
  }
  if (!findings.failed.empty()) {
    out.heading("Failures", false);
    out.plain_table(failed_table(findings));
  }
}

void write_path(Document& out, const ChosenRun& run) {
  out.heading("Critical path");
  out.paragraph(prose::which(run));
  if (!run.attribution.refusal.empty()) {
    out.paragraph(run.attribution.refusal);
    return;
  }
  out.paragraph(prose::kPath);
  out.table(path_table(run));
  out.paragraph(prose::kExposure);
  out.table(exposure_table(run));
  out.list(exposure_sentences(run));
  out.table(rungs_table(run));
  if (!run.attribution.caveats.empty()) {
    out.strong("Caveats");
    out.list(run.attribution.caveats);
  }
}

void write_waits(Document& out, const ChosenRun& run) {
  out.heading("Wait accounting");
  out.paragraph(prose::which(run));
  out.paragraph(prose::kAccounting);
  out.picture("accounting", "What the SMs of each rank did");
  out.table(accounting_table(run));
  out.table(role_table(run));
  out.heading("Who waits for whom");
  out.paragraph(prose::kWaits);
  out.table(blame_matrix(run));
  Table gates = blame_table(run);
  gates.columns.pop_back();  // the page's button
  for (std::vector<Cell>& row : gates.rows) {
    row.pop_back();
  }
  out.table(gates);
  out.table(wait_table(run));
}

void write_links(Document& out, const ChosenRun& run) {
  std::vector<timeline::Kind> kinds;
  for (const timeline::Kind kind : {timeline::Kind::pull, timeline::Kind::push}) {
    if (!link_statement(run, kind).empty()) {
      kinds.push_back(kind);
    }
  }
  if (kinds.empty()) {
    return;
  }
  out.heading("Rows between GPUs");
  out.paragraph(prose::kLinks);
  out.picture("links", "Rows on the way by the rank whose link they share");
  for (const timeline::Kind kind : kinds) {
    out.paragraph(link_statement(run, kind));
    Table table = link_table(run, kind);
    table.columns.pop_back();  // the page's strip
    for (std::vector<Cell>& row : table.rows) {
      row.pop_back();
    }
    out.table(table);
  }
}

void write_changes(Document& out, const ReportInput& input) {
  if (input.comparison) {
    out.heading("Against the other run");
    out.paragraph(input.comparison->headline);
    out.table(compared_steps_table(*input.comparison));
    out.table(compared_uses_table(*input.comparison));
    out.list(input.comparison->caveats);
  }
  if (input.advice) {
    out.heading("Suggestions");
    out.list(advice_notes(input));
    out.table(suggestion_table(input));
    out.table(refuted_table(input));
  }
}

}  // namespace

std::string render_markdown(const ReportInput& input, const Charts& charts) {
  const Findings findings = find(input);
  Document out(findings.word, charts);
  out.title(findings.headline);
  out.strong(prose::ribbon(input));
  out.paragraph(prose::subtitle(input));
  if (!input.why.empty()) {
    out.quote(input.why);
  }
  out.paragraph(charts.missing.empty() ? "" : charts.missing + ".");
  write_verdict(out, input, findings);
  write_sweep(out, input, findings);
  if (input.chosen) {
    if (input.chosen->attribution.refusal.empty()) {
      write_waits(out, *input.chosen);
      write_links(out, *input.chosen);
    }
    write_path(out, *input.chosen);
    out.paragraph("The block timeline is in report.html.");
  }
  write_changes(out, input);
  out.heading("Provenance", false);
  out.plain_table(run_table(input));
  if (!input.profile_numbers.empty()) {
    out.strong("Numbers of the device profile and where each comes from");
    out.plain_table(profile_table(input));
  }
  out.paragraph(prose::footer(input));
  return "<!-- generated by fusescope -->\n" + out.take();
}

}  // namespace fusescope::reports
