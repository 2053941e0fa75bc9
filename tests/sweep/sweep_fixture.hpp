#pragma once
// What the tests of sweeps share: a folder of their own, a small problem, a sweep over it.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/error.hpp"
#include "layer/problem.hpp"
#include "sweep/sweep_config.hpp"
#include "sweep/trial_log.hpp"

namespace fusescope::sweep::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fusescope-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline Json small_sweep_document() {
  return Json::parse(R"({
    "name": "small",
    "shape": {"ranks": 2, "tokens_per_rank": 16, "hidden": 64, "experts": 4, "topk": 2,
              "intermediate": 32},
    "axes": {"dispatch_comm_sms": [8, 16, 24, 32], "tokens_per_block": [4, 8, 12],
             "all_hands": [true, false]}
  })");
}
inline SweepConfig small_sweep() {
  return parse_sweep_config(small_sweep_document(), "small.json");
}
inline Problem small_problem() {
  const SweepConfig sweep = small_sweep();
  return make_problem(sweep.shape, sweep.routing);
}

inline LogHeader small_header(const SweepConfig& sweep = small_sweep()) {
  return {"0 (test)",
          "beef",
          "fake",
          "fake device",
          "small problem",
          "00ff",
          sweep.name,
          identity(sweep).dump(),
          "a test",
          "2026-01-01T00:00:00Z",
          {"fake device", 110, 101376}};
}

// The message that `action` throws as an InputError; "" and a test failure if it does not.
template <typename Action>
std::string input_error(Action action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no InputError";
  return "";
}

}  // namespace fusescope::sweep::test
