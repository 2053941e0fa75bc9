#include "cli/profile_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/ladder.hpp"
#include "engine/sim/figures.hpp"
#include "engine/sim/profile.hpp"
#include "engine/sim/sim_engine.hpp"

namespace fusescope::cli {
namespace {

namespace sim = engine::sim;

constexpr const char* kPublishedShape = "seed-tp4";  // what the published figures are about

// A figure's name in words.
std::string spoken(const std::string& name) {
  const std::array<std::pair<std::string, std::string>, 5> words = {
      {{sim::figure::kFusedUnorderedVsSerial, "first fused form, wall against serial"},
       {sim::figure::kTunedVsSerial, "tuned form, wall against serial"},
       {sim::figure::kExposedKernel1, "exposed communication of kernel 1"},
       {sim::figure::kHeadShare, "head latency's share of kernel 1's exposed communication"},
       {sim::figure::kScheduleRebuild, "schedule rebuild"}}};
  const auto found = std::find_if(words.begin(), words.end(),
                                  [&](const auto& each) { return each.first == name; });
  return found == words.end() ? name : found->second;
}

bool is_published_shape(const Shape& shape) {
  Shape published = load_shape(kPublishedShape);
  published.name = shape.name;
  published.source = shape.source;
  return published == shape;
}

}  // namespace

ProfileFacts profile_facts(const std::string& profile) {
  const sim::Profile loaded = sim::load_profile(profile);
  ProfileFacts facts{loaded.name, loaded.description, {}};
  const Json document = read_json_file(loaded.path);
  const JsonReader numbers = JsonReader(loaded.path, document).at("numbers");
  for (const sim::ProfileNumber& number : sim::profile_numbers()) {
    const JsonReader entry = numbers.at(number.key);
    facts.numbers.push_back({number.key, fmt::format("{}", entry.at("value").as_number()),
                             entry.at("unit").as_string(), entry.at("provenance").as_string(),
                             entry.at("source").as_string()});
  }
  return facts;
}

std::vector<reports::PublishedFigure> published_figures(const sweep::SweepConfig& sweep,
                                                        const Config& tuned) {
  sim::SimEngine engine(sim::load_profile(sweep.profile));
  const std::vector<sim::ReferenceFigure> references =
      sim::load_profile(sweep.profile).reference_figures;
  if (references.empty() || !is_published_shape(sweep.shape)) {
    return {};
  }
  const Problem problem = make_problem(sweep.shape, sweep.routing);
  const std::vector<analysis::LadderRung> rungs = analysis::ladder_configs(sweep.base, tuned);
  const auto unordered = std::find_if(rungs.begin(), rungs.end(), [](const auto& rung) {
    return rung.config.form == LayerForm::fused;
  });
  const std::vector<sim::FigurePrediction> predictions =
      sim::predict_figures(engine, problem, unordered->config, tuned);

  std::vector<reports::PublishedFigure> figures;
  for (const sim::ReferenceFigure& reference : references) {
    const double scale = reference.unit == "ratio" ? 100 : 1;
    reports::PublishedFigure figure;
    figure.name = spoken(reference.name);
    figure.unit = reference.unit == "ratio" ? "%" : reference.unit;
    figure.published = reference.value * scale;
    figure.fitted = reference.fitted;
    figure.note = reference.source;
    for (const sim::FigurePrediction& prediction : predictions) {
      if (prediction.name == reference.name) {
        figure.ours = prediction.value * scale;
      }
    }
    figures.push_back(figure);
  }
  return figures;
}

std::string simulator_identity(const std::string& profile) {
  return sim::SimEngine(sim::load_profile(profile)).identity();
}

}  // namespace fusescope::cli
