// fusescope list: what there is to choose from.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "cli/command.hpp"
#include "cli/files.hpp"
#include "cli/list_devices.hpp"
#include "cli/list_tuned.hpp"
#include "cli/profile_facts.hpp"
#include "cli/sweep_folder.hpp"
#include "cli/text.hpp"
#include "engine/engine.hpp"
#include "engine/sim/profile.hpp"
#include "layer/config.hpp"
#include "layer/shape.hpp"
#include "timeline/writers.hpp"

namespace fusescope::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFooter =
    "\nExamples:\n"
    "  fusescope list knobs\n"
    "  fusescope list shapes --json\n"
    "  fusescope list tuned                configs that \"run --config tuned\" finds";

Json shapes() {
  Json rows = Json::array();
  for (const Shape& shape : list_shapes()) {
    rows.push_back({{"name", shape.name},
                    {"ranks", shape.ranks},
                    {"tokens_per_rank", shape.tokens_per_rank},
                    {"hidden", shape.hidden},
                    {"experts", shape.experts},
                    {"topk", shape.topk},
                    {"intermediate", shape.intermediate},
                    {"source", shape.source}});
  }
  return rows;
}

Json profiles() {
  Json rows = Json::array();
  for (const std::string& name : engine::sim::list_profiles()) {
    rows.push_back({{"name", name}, {"about", profile_facts(name).about}});
  }
  return rows;
}

Json knob_rows() {
  Json rows = Json::array();
  for (const Knob& knob : knobs()) {
    const KnobValue value = knob.get(Config{});
    const Json json_value = std::visit([](const auto& given) { return Json(given); }, value);
    Json row = {{"name", knob.name}, {"default", json_value}};
    if (!knob.choices.empty()) {
      row["choices"] = knob.choices;
    }
    row["meaning"] = knob.meaning;
    rows.push_back(row);
  }
  return rows;
}

Json routings() {
  return {
      {{"name", "balanced"}, {"meaning", "every expert receives equally many hits"}},
      {{"name", "uniform"}, {"meaning", "experts drawn at random, all equally likely"}},
      {{"name", "zipf:ALPHA"}, {"meaning", "the i-th most popular expert has weight 1/i^ALPHA"}},
      {{"name", "hot:EXPERTS,SHARE"},
       {"meaning", "that many experts receive that share of the hits: hot:2,0.5"}},
      {{"name", "file:PATH"},
       {"meaning",
        "real routing: .npy of ids [tokens, K] or [tokens, layers, K], Megatron Core router "
        "traces, per-token JSON lines; gzip or not"}},
      {{"name", "...@SEED"}, {"meaning", "behind a generated routing: zipf:1.2@7"}},
      {{"name", "...#layer=N,skip=N"},
       {"meaning", "behind a file: which layer, how many tokens to leave out at the start"}}};
}

// Whether an engine can be made here is found out by making it.
Json engines() {
  Json rows = Json::array();
  for (const auto& [name, meaning] :
       {std::pair{"cuda", "the kernels on this machine's GPUs: measured"},
        std::pair{"sim", "a discrete-event model on a device profile: simulated"}}) {
    Json row = {{"name", name}};
    try {
      const auto engine = engine::make_engine({name, "", {}});
      row["usable"] = true;
      row["device"] = engine->device().name;
    } catch (const std::exception& error) {
      row["usable"] = false;
      row["reason"] = error.what();
    }
    row["meaning"] = meaning;
    rows.push_back(row);
  }
  return rows;
}

Json sweeps() {
  Json rows = Json::array();
  for (const std::string& name : list_sweeps()) {
    const sweep::SweepConfig config =
        sweep::read_sweep_config(joined(sweeps_folder(), name + ".json"));
    long long points = 1;  // before constraints and legality
    for (const sweep::Axis& axis : config.axes) {
      points *= static_cast<long long>(axis.values.size());
    }
    rows.push_back({{"name", name},
                    {"shape", config.shape.name},
                    {"grid_points", points},
                    {"ladder", config.ladder},
                    {"why", config.why}});
  }
  return rows;
}

Json formats() {
  Json rows = Json::array();
  for (const timeline::Format& format : timeline::formats()) {
    rows.push_back(
        {{"name", format.name}, {"extension", format.extension}, {"meaning", format.meaning}});
  }
  return rows;
}

struct Subject {
  const char* name;
  Json (*rows)();
  void (*print)(bool json) = nullptr;  // instead of rows, for what reads badly as such
};
constexpr Subject kSubjects[] = {{"shapes", shapes},
                                 {"routings", routings},
                                 {"knobs", knob_rows},
                                 {"sweeps", sweeps},
                                 {"tuned", nullptr, list_tuned},
                                 {"engines", engines},
                                 {"profiles", profiles},
                                 {"devices", nullptr, list_devices},
                                 {"formats", formats}};

std::vector<std::string> subject_names() {
  std::vector<std::string> names;
  for (const Subject& subject : kSubjects) {
    names.emplace_back(subject.name);
  }
  return names;
}

std::string cell(const Json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (value.is_array()) {
    std::string text;
    for (const Json& each : value) {
      text += fmt::format("{}{}", text.empty() ? "" : " | ", cell(each));
    }
    return text;
  }
  return value.dump();
}

// A name per row with its short facts on one line; sentences on the lines below.
void print_rows(const Json& rows) {
  const auto is_sentence = [](const std::string& key) {
    return key == "meaning" || key == "about" || key == "why" || key == "source" ||
           key == "reason" || key == "identity";
  };
  std::size_t width = 0;
  for (const Json& row : rows) {
    width = std::max(width, cell(row["name"]).size());
  }
  for (const Json& row : rows) {
    std::string line = cell(row["name"]);
    std::string below;
    for (const auto& [key, value] : row.items()) {
      const std::string text = cell(value);
      if (key == "name") {
        continue;
      }
      if (is_sentence(key)) {
        below += fmt::format("    {}\n", wrapped(text, 4));
      } else {
        line = fmt::format("{:<{}}  {} {}", line, width, key, text);
      }
    }
    std::printf("%s\n%s", line.c_str(), below.c_str());
  }
}

int execute(const std::string& subject_name, bool json) {
  for (const Subject& subject : kSubjects) {
    if (subject_name == subject.name) {
      if (subject.print != nullptr) {
        subject.print(json);
        return kFine;
      }
      const Json rows = subject.rows();
      if (json) {
        std::printf("%s\n", rows.dump(2).c_str());
      } else {
        print_rows(rows);
      }
      return kFine;
    }
  }
  const std::string nearest = nearest_name(subject_name, subject_names());
  throw InputError(
      {"list", "",
       fmt::format("there is no list of \"{}\"{}", subject_name,
                   nearest.empty() ? "" : fmt::format(", did you mean \"{}\"?", nearest)),
       spoken_list(subject_names())});
}

}  // namespace

void add_list(CLI::App& app, Context& context) {
  const auto subject = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("list", "List what there is to choose from");
  command->add_option("what", *subject, spoken_list(subject_names()))
      ->type_name("WHAT")
      ->required();
  command->add_flag("--json", *json, "Print JSON instead of text");
  command->footer(kFooter);
  command->callback([subject, json, &context] {
    context.selected = [subject, json] { return execute(*subject, *json); };
  });
}

}  // namespace fusescope::cli
