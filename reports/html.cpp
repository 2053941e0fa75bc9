// The HTML page: sections of prose, tables and places for charts, put into assets/report.html together
// with the style, the scripts and the data they read.

#include <fmt/format.h>

#include <map>

#include "reports/advice_sections.hpp"
#include "reports/assets.hpp"
#include "reports/findings.hpp"
#include "reports/format.hpp"
#include "reports/knob_effects.hpp"
#include "reports/page_data.hpp"
#include "reports/palette.hpp"
#include "reports/prose.hpp"
#include "reports/report.hpp"
#include "reports/sections.hpp"

namespace fusescope::reports {

namespace {

// Replaces each {{name}} of the template; what is put in is not looked at again.
std::string fill(std::string_view form,
                 const std::map<std::string, std::string, std::less<>>& parts) {
  std::string out;
  std::size_t at = 0;
  while (true) {
    const std::size_t open = form.find("{{", at);
    out += form.substr(at, open - at);
    if (open == std::string_view::npos) {
      return out;
    }
    const std::size_t close = form.find("}}", open);
    const auto part = parts.find(form.substr(open + 2, close - open - 2));
    if (part != parts.end()) {
      out += part->second;
    }
    at = close + 2;
  }
}

std::string badge(const std::string& word) {
  return fmt::format("<span class=\"badge {0}\">{0}</span>", word);
}

std::string paragraph(const std::string& text, const char* css = "") {
  return fmt::format("<p{}>{}</p>\n", *css != 0 ? fmt::format(" class=\"{}\"", css) : "",
                     escape_html(text));
}

std::string list(const std::vector<std::string>& items) {
  std::string out = "<ul>\n";
  for (const std::string& item : items) {
    out += "<li>" + escape_html(item) + "</li>\n";
  }
  return out + "</ul>\n";
}

std::string chart(const char* id, const std::string& title, const std::string& word,
                  const std::string& says) {
  return fmt::format(
      "<figure class=\"chart\"><figcaption>{} {}</figcaption><div class=\"plot\"><canvas id=\"{}\" "
      "role=\"img\" "
      "aria-label=\"{}\"></canvas></div></figure>\n",
      escape_html(title), badge(word), id, escape_html(says));
}

std::string strip_svg(const ChosenRun& run, const std::string& word) {
  std::string out = fmt::format(
      "<figure><figcaption>Critical path along the wall {}</figcaption>\n"
      "<svg class=\"strip\" viewBox=\"0 0 1000 64\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"Which step the critical path is in, from the begin of the iteration to its "
      "end; the table "
      "below has the sums\">\n",
      badge(word));
  const auto wall = static_cast<double>(run.timeline.wall_ns());
  std::map<std::string_view, std::string> keys;
  for (const StripRun& piece : path_strip(run, 1000)) {
    out += fmt::format(
        "<rect x=\"{:.1f}\" width=\"{:.1f}\" y=\"0\" height=\"64\" "
        "style=\"fill:var(--{})\"><title>{}: "
        "{} to {} µs</title></rect>",
        piece.begin * 1000, (piece.end - piece.begin) * 1000, color(piece.step).slug,
        analysis::name(piece.step), us(piece.begin * wall / 1000), us(piece.end * wall / 1000));
    keys[color(piece.step).slug] = analysis::name(piece.step);
  }
  out += "\n</svg>\n<ul class=\"keys\">";
  for (int i = 0; i < analysis::kSteps; ++i) {
    const auto step = static_cast<analysis::Step>(i);
    if (keys.contains(color(step).slug) &&
        run.attribution.path.by_step[static_cast<std::size_t>(i)] > 0) {
      out += fmt::format("<li><i class=\"key\" style=\"background:var(--{})\"></i>{}</li>",
                         color(step).slug, escape_html(analysis::name(step)));
    }
  }
  return out + "</ul></figure>\n";
}

std::string tile(const std::string& name, const std::string& value, const std::string& unit,
                 const std::string& more) {
  return fmt::format("<div class=\"tile\"><dt>{}</dt><dd>{}{}</dd><dd>{}</dd></div>\n",
                     escape_html(name), escape_html(value),
                     unit.empty() ? "" : " <small>" + escape_html(unit) + "</small>",
                     escape_html(more));
}

std::string tiles(const ReportInput& input, const Findings& findings) {
  std::string out = "<dl class=\"tiles\">\n";
  if (const ReportTrial* best = findings.best()) {
    out += tile(
        "Best config", us(best->wall_us()), "µs",
        findings.word + (findings.tied > 1 ? fmt::format(", {} configs tie", findings.tied) : ""));
    if (findings.serial != nullptr) {
      out += tile("Against the serial layer", signed_percent(findings.to_serial() - 1), "wall",
                  fmt::format("serial: {} µs, {}", us(findings.serial->median_us), findings.word));
    }
  }
  if (input.chosen && input.chosen->attribution.refusal.empty() &&
      input.chosen->timeline.wall_ns() > 0) {
    const auto exposed =
        static_cast<double>(input.chosen->attribution.path.exposed_communication_ns());
    out +=
        tile("Exposed communication", us(exposed / 1000), "µs",
             fmt::format("{} of the wall of {}, {}",
                         percent(exposed / static_cast<double>(input.chosen->timeline.wall_ns())),
                         input.chosen->name, findings.word));
  }
  if (is_single_run(input)) {
    return out + "</dl>\n";
  }
  out += tile("Trials", count(static_cast<long long>(input.trials.size())), "",
              findings.failed.empty() ? std::string("all ran")
                                      : fmt::format("{} ran, {} could not or failed",
                                                    input.trials.size() - findings.failed.size(),
                                                    findings.failed.size()));
  return out + "</dl>\n";
}

struct Page {
  std::string nav;
  std::string body;
  std::string word;

  void add(const char* id, const std::string& title, const std::string& content,
           bool with_badge = true) {
    nav += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", id, escape_html(title));
    body += fmt::format(
        "<section id=\"{}\" aria-labelledby=\"h-{}\"><h2 id=\"h-{}\">{}{}</h2>\n{}</section>\n", id,
        id, id, escape_html(title), with_badge ? " " + badge(word) : "", content);
  }
};

void add_verdict(Page& page, const ReportInput& input, const Findings& findings) {
  std::string content;
  if (input.chosen && input.chosen->attribution.refusal.empty()) {
    content += strip_svg(*input.chosen, page.word);
  }
  for (const std::string& sentence : findings.verdict) {
    content += paragraph(sentence);
  }
  if (const std::vector<std::string> changes = suggestions(input); !changes.empty()) {
    content += "<div class=\"next\"><h3>Suggestions</h3>\n" + list(changes) + "</div>\n";
  }
  if (!findings.next.empty()) {
    content += "<div class=\"next\"><h3>What to try next</h3>\n" + list(findings.next) + "</div>\n";
  }
  if (!input.notes.empty()) {
    content += "<h3>Notes</h3>\n" + list(input.notes);
  }
  page.add("verdict", "Verdict", content);
}

void add_advice(Page& page, const ReportInput& input) {
  if (!input.advice) {
    return;
  }
  std::string content = list(advice_notes(input));
  for (const Table& table : {suggestion_table(input), refuted_table(input)}) {
    content += table.empty() ? "" : to_html(table);
  }
  page.add("advice", "Suggestions", content);
}

void add_comparison(Page& page, const ReportInput& input) {
  if (!input.comparison) {
    return;
  }
  const analysis::Comparison& comparison = *input.comparison;
  std::string content = paragraph(comparison.headline);
  for (const Table& table : {compared_steps_table(comparison), compared_uses_table(comparison)}) {
    content += table.empty() ? "" : to_html(table);
  }
  page.add("comparison", "Against the other run",
           content +
               (comparison.caveats.empty() ? "" : "<h3>Caveats</h3>\n" + list(comparison.caveats)));
}

void add_sweep(Page& page, const ReportInput& input, const Findings& findings) {
  if (!input.ladder.steps.empty()) {
    page.add("ladder", "Ladder",
             paragraph(prose::kLadder, "lead") +
                 chart("chart-ladder",
                       "Wall after each rung; the coloured part is what the rung gained or lost",
                       page.word, "Ladder of features; the table below has its numbers") +
                 to_html(ladder_table(input)));
  }
  if (!input.published.empty()) {
    page.add("published", "Published figures",
             paragraph(prose::kPublished, "lead") + to_html(published_table(input)));
  }
  const StepRows rows = step_rows(input, findings);
  if (!rows.trials.empty()) {
    page.add(
        "steps", "Steps per config",
        paragraph(prose::kSteps, "lead") +
            chart("chart-steps",
                  "Critical path by step, fastest configs first, then the serial layer", page.word,
                  "Stacked step times of configs; the table below has the numbers") +
            "<details><summary>The numbers of the chart</summary>\n" +
            to_html(steps_table(input, rows)) + "</details>\n");
  }
  if (const auto map = heatmap(input, findings)) {
    page.add("sweep", "Sweep",
             paragraph(prose::heatmap(*map, findings), "lead") + "<div id=\"heatmap\">" +
                 to_html(heatmap_table(*map)) + "</div>\n");
  }
  if (const Table effects = knob_effect_table(input, findings); !effects.empty()) {
    page.add("knobs", "Knobs", paragraph(prose::kKnobs, "lead") + to_html(effects));
  }
  if (!findings.ranked.empty()) {
    page.add("configs", "Configs",
             paragraph(prose::configs(findings), "lead") + to_html(top_table(input, findings)));
  }
  if (!findings.failed.empty()) {
    page.add("failures", "Failures", to_html(failed_table(findings)), false);
  }
}

void add_links(Page& page, const ChosenRun& run) {
  std::string content;
  for (const timeline::Kind kind : {timeline::Kind::pull, timeline::Kind::push}) {
    const std::string statement = link_statement(run, kind);
    content += statement.empty() ? "" : paragraph(statement) + to_html(link_table(run, kind));
  }
  if (!content.empty()) {
    page.add("links", "Rows between GPUs", paragraph(prose::kLinks, "lead") + content);
  }
}

void add_run(Page& page, const ChosenRun& run) {
  const std::string which = prose::which(run);
  if (!run.attribution.refusal.empty()) {
    page.add("path", "Critical path", paragraph(which) + paragraph(run.attribution.refusal));
  } else {
    page.add("accounting", "Wait accounting",
             paragraph(which) + paragraph(prose::kAccounting, "lead") +
                 chart("chart-accounting", "What the SMs of each rank did", page.word,
                       "Shares of SM time by use; the table below has the numbers") +
                 to_html(accounting_table(run)) +
                 "<details><summary>By role of the block</summary>\n" + to_html(role_table(run)) +
                 "</details>\n");
    page.add("waits", "Who waits for whom",
             paragraph(prose::kWaits, "lead") + to_html(blame_matrix(run)) +
                 to_html(blame_table(run)) + "<details><summary>All kinds of waits</summary>\n" +
                 to_html(wait_table(run)) + "</details>\n");
    add_links(page, run);
    page.add("path", "Critical path",
             paragraph(which) + paragraph(prose::kPath, "lead") + strip_svg(run, page.word) +
                 to_html(path_table(run)) + "<h3>Exposed communication</h3>\n" +
                 paragraph(prose::kExposure, "lead") + to_html(exposure_table(run)) +
                 list(exposure_sentences(run)) + (run.rungs ? to_html(rungs_table(run)) : "") +
                 (run.attribution.caveats.empty()
                      ? ""
                      : "<h3>Caveats</h3>\n" + list(run.attribution.caveats)));
  }
  page.add("timeline", "Block timeline",
           paragraph(prose::kTimeline, "lead") +
               "<div id=\"timeline-box\" class=\"timeline\"><p class=\"help\">The timeline is "
               "drawn by a script.</p></div>\n");
}

std::string style() {
  const std::string dark = std::string(asset("dark.css")) + css_variables(true);
  return fmt::format(":root{{{}}}\n", css_variables(false)) + std::string(asset("report.css")) +
         "\n@media screen and (prefers-color-scheme: dark){:root:not([data-theme=light]){" + dark +
         "}}\n" + "@media screen{:root[data-theme=dark]{" + dark + "}}\n";
}

}  // namespace

std::string render_html(const ReportInput& input) {
  const Findings findings = find(input);
  Page page;
  page.word = findings.word;
  add_verdict(page, input, findings);
  add_sweep(page, input, findings);
  PackedTimeline packed;
  if (input.chosen) {
    add_run(page, *input.chosen);
    packed = pack(*input.chosen);
  }
  add_comparison(page, input);
  add_advice(page, input);
  page.add("provenance", "Provenance",
           paragraph(prose::kProvenance, "lead") + to_html(run_table(input)) +
               (input.profile_numbers.empty() ? "" : to_html(profile_table(input))),
           false);

  std::string scripts;
  for (const char* name : {"base.js", "page.js", "charts.js", "heatmap.js", "timeline_data.js",
                           "timeline_draw.js", "timeline.js"}) {
    scripts += asset(name);
  }
  return fill(asset("report.html"), {{"word", findings.word},
                                     {"title", escape_html(input.name + ": " + findings.headline)},
                                     {"style", style()},
                                     {"ribbon", prose::ribbon_html(input)},
                                     {"badge", badge(findings.word)},
                                     {"nav", page.nav},
                                     {"headline", escape_html(findings.headline)},
                                     {"subtitle", escape_html(prose::subtitle(input))},
                                     {"why", input.why.empty() ? "" : paragraph(input.why, "why")},
                                     {"tiles", tiles(input, findings)},
                                     {"sections", page.body},
                                     {"footer", escape_html(prose::footer(input))},
                                     {"data", chart_json(input, findings)},
                                     {"timeline_head", packed.head},
                                     {"timeline_bytes", packed.bytes},
                                     {"chart_library", std::string(asset("chart.js"))},
                                     {"scripts", scripts}});
}

}  // namespace fusescope::reports
