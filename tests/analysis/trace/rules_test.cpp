// Which kernel is communication, by the built-in rules and by a file's.

#include "analysis/trace/rules.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"

namespace fusescope::analysis {
namespace {

using timeline::GpuKind;

TEST(Rules, DefaultNames) {
  const Rules rules = load_rules("default");
  const std::pair<const char*, WorkClass> names[] = {
      {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       WorkClass::communication},
      {"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", WorkClass::communication},
      {"void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*)",
       WorkClass::communication},
      {"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(x)",
       WorkClass::communication},
      {"void at::native::vectorized_elementwise_kernel<4>(int)", WorkClass::compute},
      {"Cijk_Ailk_Bljk_HHS_BH_MT128x128x16", WorkClass::compute},
      {"flash_fwd_splitkv_combine_kernel", WorkClass::compute},
      {"__amd_rocclr_copyBuffer", WorkClass::memory},
      {"CopyDeviceToDevice", WorkClass::memory},
      {"void dispatch_gemm<Config>(Args)", WorkClass::fused},
      {"fused_all_gather_matmul_kernel", WorkClass::fused},
      {"trtllm_allreduce_fusion_kernel", WorkClass::fused},
      {"my_all_to_all_thing", WorkClass::unclear},
      {"xyz_nvshmem_put_kernel", WorkClass::unclear},
  };
  for (const auto& [name, work] : names) {
    EXPECT_EQ(rules.classify(name, GpuKind::kernel), work) << name;
  }
  EXPECT_EQ(rules.classify("anything", GpuKind::memset), WorkClass::memory);
  EXPECT_EQ(rules.classify("anything", GpuKind::sync), WorkClass::sync);
}

TEST(Rules, HtaDecidesByNameAlone) {
  const Rules rules = load_rules("hta");
  EXPECT_EQ(rules.classify("ncclDevKernel_AllReduce", GpuKind::kernel), WorkClass::communication);
  EXPECT_EQ(rules.classify("x ncclKernel y", GpuKind::kernel), WorkClass::communication);
  EXPECT_EQ(rules.classify("my_all_to_all_thing", GpuKind::kernel), WorkClass::compute);
  EXPECT_EQ(rules.classify("Memset (Device)", GpuKind::memset), WorkClass::memory);
  EXPECT_EQ(rules.classify("Event Sync", GpuKind::sync), WorkClass::sync);
  EXPECT_EQ(rules.classify("Stream Wait Event", GpuKind::sync), WorkClass::sync);
}

class RulesFile : public testing::Test {
 protected:
  ~RulesFile() override { std::filesystem::remove(path_); }
  std::string write(const std::string& text) const {
    std::ofstream(path_) << text;
    return path_;
  }
  std::string path_ = (std::filesystem::temp_directory_path() /
                       ("fusescope-rules-" + std::to_string(::getpid()) + ".json"))
                          .string();
};

TEST_F(RulesFile, AFileReplacesTheBuiltInRules) {
  const Rules rules = load_rules(
      write(R"({"name": "mine", "rules": [{"class": "communication", "loosely": ["My_Comm"]}]})"));
  EXPECT_EQ(rules.name, "mine");
  EXPECT_EQ(rules.classify("fast_mycomm", GpuKind::kernel), WorkClass::communication);
  EXPECT_EQ(rules.classify("ncclKernel", GpuKind::kernel), WorkClass::compute);
}

TEST_F(RulesFile, MistakesAreNamedWithTheirPlace) {
  const std::pair<const char*, const char*> files[] = {
      {R"({"name": "a", "rules": [{"class": "comunication", "starts": ["x"]}]})", "/rules/0/class"},
      {R"({"name": "a", "rules": [{"class": "compute"}]})", "/rules/0"},
      {R"({"name": "a", "rules": [{"class": "compute", "starts": [""]}]})", "/rules/0/starts"},
      {R"({"name": "a", "rules": [], "otherwize": "compute"})", "otherwise"},
      {R"({"rules": []})", "name"}};
  for (const auto& [text, place] : files) {
    try {
      load_rules(write(text));
      FAIL() << text;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(place), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(load_rules("no such file"), InputError);
}

}  // namespace
}  // namespace fusescope::analysis
