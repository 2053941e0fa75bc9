// What the kernels take of an sm_120: ptxas compiles their PTX and says. No spills, and with the shared
// memory that the launchers ask for, no more than such a GPU gives a block. Needs no device.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/gemm/gemm_variants.hpp"

namespace fusescope::kernels::testing {
namespace {

struct Resources {
  std::string kernel;  // mangled
  int registers = -1;
  int spilled_bytes = -1;
  int static_shared_bytes = 0;
};

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 4096> buffer{};
  while (pipe != nullptr && std::fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr) {
    text += buffer.data();
  }
  return text;
}

std::vector<Resources> compiled(const std::string& name) {
  const std::string text =
      output_of(std::string(FUSESCOPE_PTXAS) + " -v -arch=sm_120 -o /dev/null \"" +
                FUSESCOPE_PTX_DIR + "/" + name + ".ptx\" 2>&1");
  static const std::regex kKernel(R"(Compiling entry function '([\w$]+)' for 'sm_120')");
  static const std::regex kSpills(R"((\d+) bytes spill stores, (\d+) bytes spill loads)");
  static const std::regex kUsed(R"(Used (\d+) registers)");
  static const std::regex kShared(R"((\d+) bytes smem)");
  std::vector<Resources> all;
  std::smatch match;
  std::size_t at = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (std::regex_search(line, match, kKernel)) {
      all.push_back({match[1], -1, -1, 0});
    } else if (all.empty()) {
      continue;
    } else if (std::regex_search(line, match, kSpills)) {
      all.back().spilled_bytes = std::stoi(match[1]) + std::stoi(match[2]);
    } else if (std::regex_search(line, match, kUsed)) {
      all.back().registers = std::stoi(match[1]);
      if (std::regex_search(line, match, kShared)) {
        all.back().static_shared_bytes = std::stoi(match[1]);
      }
    }
  }
  EXPECT_FALSE(all.empty()) << text;
  return all;
}

// "...kernelILi7E...": the variant that a kernel is instantiated for.
const GemmVariant& variant_of(const std::string& kernel) {
  static const std::regex kIndex(R"(_kernelILi(\d+)E)");
  std::smatch match;
  if (!std::regex_search(kernel, match, kIndex)) {
    throw std::runtime_error("no variant in " + kernel);
  }
  return kGemmVariants.at(std::stoul(match[1]));
}

class OnSm120 : public ::testing::TestWithParam<const char*> {};

TEST_P(OnSm120, GemmsSpillNothingAndFitItsSharedMemory) {
  int small = 0;
  for (const Resources& r : compiled(GetParam())) {
    SCOPED_TRACE(r.kernel);
    const GemmVariant& variant = variant_of(r.kernel);
    EXPECT_EQ(variant.mainloop, Mainloop::kMma);
    EXPECT_EQ(r.spilled_bytes, 0);
    EXPECT_GT(r.registers, 128);  // the accumulators' alone: a reading of something else fails
    EXPECT_LE(r.registers * gemm_threads(variant), 65536);
    if (shared_bytes(variant) <= kSmallSharedBytes) {
      ++small;
      EXPECT_LE(shared_bytes(variant) + r.static_shared_bytes, 101376);
    }
  }
  EXPECT_GE(small, 2);  // the forms with room for both epilogues, or with records and without
}

INSTANTIATE_TEST_SUITE_P(Kernels, OnSm120,
                         ::testing::Values("gemm_mma", "dispatch_gemm_mma", "gemm_combine_push_mma",
                                           "gemm_reduce_scatter_mma"),
                         [](const auto& tested) { return std::string(tested.param); });

class OthersOnSm120 : public ::testing::TestWithParam<const char*> {};

// These travel as PTX, which the driver compiles.
TEST_P(OthersOnSm120, CompileAndSpillNothing) {
  for (const Resources& r : compiled(GetParam())) {
    EXPECT_EQ(r.spilled_bytes, 0) << r.kernel;
    EXPECT_GT(r.registers, 0) << r.kernel;
    EXPECT_LE(r.static_shared_bytes, 48 * 1024) << r.kernel;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, OthersOnSm120,
                         ::testing::Values("block_per_job", "prologue", "ids_exchange",
                                           "device_barrier", "final_reduce", "reduce_planes"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace fusescope::kernels::testing
