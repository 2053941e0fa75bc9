// The attribution as JSON. Times are integer nanoseconds: `ns` keys are wall time, `sm_ns` keys are
// area.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/summary.hpp"

namespace fusescope::analysis {
namespace {

using Json = nlohmann::ordered_json;

Json blames(const std::array<std::int64_t, kBlames>& ns_by_blame) {
  Json json;
  for (int i = 0; i < kBlames; ++i) {
    json[std::string(name(static_cast<Blame>(i)))] = ns_by_blame[static_cast<std::size_t>(i)];
  }
  return json;
}

Json uses(const std::array<std::int64_t, kUses>& by_use) {
  Json json;
  for (int i = 0; i < kUses; ++i) {
    json[std::string(name(static_cast<Use>(i)))] = by_use[static_cast<std::size_t>(i)];
  }
  return json;
}

// The first `rows` of a list, each through `form`.
template <typename Row, typename Form>
Json list(const std::vector<Row>& all, int rows, Form form) {
  Json json = Json::array();
  const auto count = std::min(all.size(), static_cast<std::size_t>(std::max(rows, 0)));
  for (std::size_t i = 0; i < count; ++i) {
    json.push_back(form(all[i]));
  }
  return json;
}

Json path_json(const Attribution& attribution, int rows) {
  const CriticalPath& path = attribution.path;
  Json json;
  json["steps"] = Json::array();
  for (const Finding& finding : attribution.findings) {
    json["steps"].push_back({{"step", name(finding.step)},
                             {"ns", finding.ns},
                             {"exposed_ns", finding.exposed_ns},
                             {"share", finding.share},
                             {"reason", finding.reason}});
  }
  Json kinds = Json::object();
  for (int i = 0; i < timeline::kKinds; ++i) {
    if (const std::int64_t ns = path.by_kind[static_cast<std::size_t>(i)]; ns > 0) {
      kinds[std::string(timeline::name(static_cast<timeline::Kind>(i)))] = ns;
    }
  }
  json["ns_by_kind"] = kinds;
  json["pull_ns_by_source_rank"] = path.by_source_rank;
  json["ns_by_rank"] = path.by_rank;
  json["tokens"] = list(path.by_token, rows, [](const TokenTime& time) {
    return Json{{"token", time.token}, {"ns", time.ns}};
  });
  return json;
}

Json accounting_json(const Accounting& accounting, int rows) {
  Json json;
  json["ranks"] = Json::array();
  for (const RankAccounting& rank : accounting.ranks) {
    Json roles;
    for (int i = 0; i < timeline::kRoles; ++i) {
      roles[std::string(timeline::name(static_cast<timeline::Role>(i)))] =
          uses(rank.by_role[static_cast<std::size_t>(i)]);
    }
    json["ranks"].push_back({{"rank", rank.rank},
                             {"area_sm_ns", rank.area_ns},
                             {"sm_ns_by_use", uses(rank.by_use)},
                             {"sm_ns_by_role", roles}});
  }
  json["gate_count"] = accounting.gates.size();
  json["gates"] = list(accounting.gates, rows, [](const GateBlame& gate) {
    return Json{{"rank", gate.rank},
                {"block", gate.block},
                {"row_block", gate.row_block},
                {"expert", gate.expert},
                {"last_token", gate.last_token},
                {"source_rank", gate.source_rank},
                {"wait_ns", gate.wait_ns},
                {"blame_at_begin", name(gate.blame)},
                {"ns_by_blame", blames(gate.ns_by_blame)},
                {"pull_ns", gate.pull_ns},
                {"scatter_ns", gate.scatter_ns}};
  });
  return json;
}

Json waits_json(const WaitTable& waits, int rows) {
  const auto total = [](const char* called) {
    return [called](const WaitTotal& row) {
      Json json{{called, row.id},
                {"waits", row.waits},
                {"wait_ns", row.wait_ns},
                {"ns_by_blame", blames(row.ns_by_blame)}};
      if (row.rank >= 0) {
        json["rank"] = row.rank;
      }
      return json;
    };
  };
  Json json;
  json["edges"] = list(waits.edges, rows, [](const WaitEdge& edge) {
    return Json{{"waiting_rank", edge.waiting_rank},
                {"role", timeline::name(edge.role)},
                {"wait", timeline::name(edge.kind)},
                {"source_rank", edge.source_rank},
                {"waits", edge.waits},
                {"wait_ns", edge.wait_ns},
                {"ns_by_blame", blames(edge.ns_by_blame)}};
  });
  json["row_blocks"] = list(waits.row_blocks, rows, total("row_block"));
  json["experts"] = list(waits.experts, rows, total("expert"));
  json["source_ranks"] = list(waits.source_ranks, rows, total("source_rank"));
  return json;
}

Json links_json(const LinkLoad& load) {
  if (load.ranks.empty()) {
    return nullptr;
  }
  Json ranks = Json::array();
  for (std::size_t rank = 0; rank < load.ranks.size(); ++rank) {
    const LinkEnd& end = load.ranks[rank];
    std::vector<double> rows = end.load;
    for (double& slice : rows) {
      slice = std::round(slice * 100) / 100;
    }
    ranks.push_back({{"rank", rank},
                     {"rows", end.rows},
                     {"row_ns", end.row_ns},
                     {"convoy_ns", end.convoy_ns},
                     {"convoy_row_ns", end.convoy_row_ns},
                     {"rows_on_the_way", rows}});
  }
  Json json = {{"begin_ns", load.begin_ns},
               {"end_ns", load.end_ns},
               {"ranks", ranks},
               {"convoy_rows", load.convoy_rows},
               {"convoy_mean_ns", load.convoy_mean_ns},
               {"other_rows", load.other_rows},
               {"other_mean_ns", load.other_mean_ns}};
  json["bottleneck"] = load.bottleneck < 0 ? Json(nullptr) : Json(load.bottleneck);
  json["statement"] = load.statement;
  return json;
}

Json exposure_json(const Exposure& exposure) {
  Json views = Json::array();
  for (const ExposedView& view : exposure.views) {
    Json row = {{"view", view.view}};
    if (view.missing.empty()) {
      row.update({{"us", view.us}, {"error_us", view.error_us}, {"of_error", view.of_error}});
    } else {
      row["missing"] = view.missing;
    }
    views.push_back(row);
  }
  return {{"views", views},
          {"residual_us", exposure.residual_us},
          {"agree", exposure.agree},
          {"statement", exposure.statement},
          {"warnings", exposure.warnings}};
}

}  // namespace

std::string to_json(const Attribution& attribution, const timeline::Timeline& timeline, int rows) {
  const timeline::Meta& meta = timeline.meta;
  Json json;
  json["provenance"] = timeline::name(meta.provenance);
  json["device"] = meta.device;
  json["problem"] = meta.problem;
  json["config"] = meta.config;
  json["command"] = meta.command;
  json["commit"] = meta.commit;
  json["clock_bound_ns"] = meta.clock_bound_ns;
  if (!attribution.refusal.empty()) {
    json["refused"] = attribution.refusal;
    json["exposed_communication"] = exposure_json(attribution.exposure);
    return json.dump(2);
  }
  json["headline"] = attribution.headline;
  json["caveats"] = attribution.caveats;
  json["wall_ns"] = attribution.wall_ns;
  json["exposed_communication_ns"] = attribution.exposed_ns;
  json["exposed_communication"] = exposure_json(attribution.exposure);
  json["critical_path"] = path_json(attribution, rows);
  json["accounting"] = accounting_json(attribution.accounting, rows);
  json["waits"] = waits_json(attribution.waits, rows);
  json["links"] = {{"pulls_by_source_rank", links_json(attribution.pulls)},
                   {"pushes_by_receiving_rank", links_json(attribution.pushes)}};
  return json.dump(2);
}

}  // namespace fusescope::analysis
