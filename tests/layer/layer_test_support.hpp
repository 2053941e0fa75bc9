#pragma once
// Small problems and files for the layer's tests.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "layer/problem.hpp"

namespace fusescope::test {

inline Shape small_shape(int ranks, int tokens_per_rank, int experts, int topk) {
  Shape shape;
  shape.name = "small";
  shape.ranks = ranks;
  shape.tokens_per_rank = tokens_per_rank;
  shape.hidden = 64;
  shape.experts = experts;
  shape.topk = topk;
  shape.intermediate = 32;
  shape.source = "a test";
  return shape;
}

// The error that `act` must throw.
inline InputError::Parts refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.parts();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A folder of its own for each test, gone afterwards.
class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("fusescope_layer_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::filesystem::path folder_;
};

}  // namespace fusescope::test
