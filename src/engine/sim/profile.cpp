#include "engine/sim/profile.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "base/json_names.hpp"
#include "base/json_reader.hpp"
#include "base/suggest.hpp"
#include "layer/shape.hpp"

namespace fusescope::engine::sim {
namespace {

namespace fs = std::filesystem;

fs::path profiles_folder() {
  return fs::path(sweeps_folder()) / "profiles";
}

const std::vector<std::string> kProvenances = {"measured", "datasheet", "assumed", "fitted"};

void read_number(const JsonReader& entry, const ProfileNumber& number, Profile& profile) {
  entry.only({"value", "unit", "provenance", "source"});
  const JsonReader unit = entry.at("unit");
  if (unit.as_string() != number.unit) {
    unit.refuse("\"" + unit.as_string() + "\" is not the unit of " + number.key,
                std::string("\"") + number.unit + "\"");
  }
  const JsonReader source = entry.at("source");
  if (source.as_string().empty()) {
    source.refuse("is empty", "where the number comes from");
  }
  const std::size_t provenance = entry.at("provenance").as_choice(kProvenances);
  profile.origins.push_back({static_cast<NumberProvenance>(provenance), source.as_string()});
  profile.*number.member = entry.at("value").as_number(number.least, number.most);
}

ReferenceFigure read_figure(const JsonReader& figure) {
  figure.only({"name", "value", "unit", "source", "fitted"});
  return {figure.at("name").as_string(), figure.at("value").as_number(),
          figure.at("unit").as_string(), figure.at("source").as_string(),
          figure.at("fitted").as_bool()};
}

std::string find_profile(const std::string& name_or_path) {
  std::string name = name_or_path.empty() ? kSeedProfile : name_or_path;
  const bool is_path = name.find('/') != std::string::npos || fs::path(name).extension() == ".json";
  if (is_path) {
    return name;
  }
  const fs::path inside = profiles_folder() / (name + ".json");
  if (!fs::exists(inside)) {
    const std::vector<std::string> known = list_profiles();
    const std::string nearest = nearest_name(name, known);
    throw InputError({"", "profile",
                      "\"" + name + "\" is not a profile in " + profiles_folder().string() +
                          (nearest.empty() ? "" : ", did you mean \"" + nearest + "\"?"),
                      (known.empty() ? "" : spoken_list(known) + ", or ") +
                          std::string("the path of a profile's JSON file")});
  }
  return inside.string();
}

}  // namespace

const std::vector<ProfileNumber>& profile_numbers() {
  static const std::vector<ProfileNumber> kNumbers = {
      {"sms", "count", 1, 1024, &Profile::sms},
      {"smem_per_block", "KiB", 16, 1024, &Profile::smem_per_block},
      {"l2", "MiB", 1, 4096, &Profile::l2},
      {"dram_peak", "GB/s", 10, 1e5, &Profile::dram_peak},
      {"dram_copy_fraction", "ratio", 0.1, 1, &Profile::dram_copy_fraction},
      {"dram_gemm_fraction", "ratio", 0.1, 1.5, &Profile::dram_gemm_fraction},
      {"dram_gather_fraction", "ratio", 0.1, 1.5, &Profile::dram_gather_fraction},
      {"gemm_m128n256", "TFLOP/s", 1, 1e5, &Profile::gemm_m128n256},
      {"gemm_m128n128", "TFLOP/s", 1, 1e5, &Profile::gemm_m128n128},
      {"power_exponent", "ratio", 0, 1, &Profile::power_exponent},
      {"gemm_gather", "ratio", 0.01, 1, &Profile::gemm_gather},
      {"tile_fill", "us", 0, 100, &Profile::tile_fill},
      {"tile_epilogue", "us", 0.001, 100, &Profile::tile_epilogue},
      {"activation_epilogue", "us", 0, 100, &Profile::activation_epilogue},
      {"sm_pull_remote", "GB/s", 0.1, 1e4, &Profile::sm_pull_remote},
      {"sm_pull_local", "GB/s", 0.1, 1e4, &Profile::sm_pull_local},
      {"sm_store", "GB/s", 0.1, 1e4, &Profile::sm_store},
      {"sm_job_read", "GB/s", 0.1, 1e4, &Profile::sm_job_read},
      {"sm_push", "GB/s", 0.1, 1e4, &Profile::sm_push},
      {"pull_latency", "us", 0.001, 1e3, &Profile::pull_latency},
      {"store_latency", "us", 0.001, 1e3, &Profile::store_latency},
      {"arrive_latency", "us", 0.001, 1e3, &Profile::arrive_latency},
      {"poll_latency", "us", 0.001, 1e3, &Profile::poll_latency},
      {"claim_latency", "us", 0.001, 1e3, &Profile::claim_latency},
      {"job_latency", "us", 0.001, 1e3, &Profile::job_latency},
      {"push_latency", "us", 0.001, 1e3, &Profile::push_latency},
      {"elect_latency", "us", 0.001, 1e3, &Profile::elect_latency},
      {"watermark_latency", "us", 0.001, 1e3, &Profile::watermark_latency},
      {"block_launch", "us", 0.001, 1e3, &Profile::block_launch},
      {"job_blocks_per_sm", "count", 1, 64, &Profile::job_blocks_per_sm},
      {"job_blocks_per_freed_sm", "count", 0, 64, &Profile::job_blocks_per_freed_sm},
      {"link_pull", "GB/s", 0.1, 1e4, &Profile::link_pull},
      {"link_push", "GB/s", 0.1, 1e4, &Profile::link_push},
      {"fabric", "GB/s", 0.1, 1e5, &Profile::fabric},
      {"collective_rate", "GB/s", 0.1, 1e4, &Profile::collective_rate},
      {"collective_latency", "us", 0.001, 1e4, &Profile::collective_latency},
      {"ids_exchange", "us", 0.001, 1e4, &Profile::ids_exchange},
      {"schedule_device", "us", 0.001, 1e5, &Profile::schedule_device},
      {"schedule_device_eager", "us", 0.001, 1e5, &Profile::schedule_device_eager},
      {"schedule_host", "us", 0.001, 1e5, &Profile::schedule_host},
      {"schedule_host_per_hit", "ns", 0, 1e4, &Profile::schedule_host_per_hit},
      {"prologue_exchange", "us", 0.001, 1e4, &Profile::prologue_exchange},
      {"prologue_schedule", "us", 0.001, 1e5, &Profile::prologue_schedule},
      {"prologue_per_hit", "ns", 0, 1e4, &Profile::prologue_per_hit},
      {"barrier_latency", "us", 0.001, 1e4, &Profile::barrier_latency},
      {"small_kernel", "us", 0.001, 1e3, &Profile::small_kernel},
      {"launch_gap_graph", "us", 0, 1e3, &Profile::launch_gap_graph},
      {"launch_gap_eager", "us", 0, 1e3, &Profile::launch_gap_eager},
      {"activation_passes", "count", 1, 20, &Profile::activation_passes},
      {"jitter", "ratio", 0, 0.5, &Profile::jitter},
  };
  return kNumbers;
}

const char* name(NumberProvenance provenance) {
  return kProvenances[static_cast<std::size_t>(provenance)].c_str();
}

Profile load_profile(const std::string& name_or_path) {
  const std::string path = find_profile(name_or_path);
  const Json json = read_json_file(path);
  const JsonReader document(path, json);
  document.only({"name", "description", "numbers", "reference_figures"});

  Profile profile;
  profile.path = path;
  profile.name = document.at("name").as_string();
  profile.description = document.at("description").as_string();

  const JsonReader numbers = document.at("numbers");
  std::vector<std::string> known;
  for (const ProfileNumber& number : profile_numbers()) {
    known.emplace_back(number.key);
  }
  numbers.only(known);
  for (const ProfileNumber& number : profile_numbers()) {
    read_number(numbers.at(number.key), number, profile);
  }

  const JsonReader figures = document.at("reference_figures");
  for (std::size_t i = 0; i < figures.size(); ++i) {
    profile.reference_figures.push_back(read_figure(figures.element(i)));
  }
  return profile;
}

std::vector<std::string> list_profiles() {
  return json_names(profiles_folder());
}

}  // namespace fusescope::engine::sim
