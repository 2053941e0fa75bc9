// What a listening tool is told: the domain, the names of the levels, ranges with their numbers. A program
// of its own, because NVTX looks for its listener once.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "timeline/collect/nvtx.hpp"

namespace fusescope::timeline {
namespace {

TEST(Nvtx, AToolSeesDomainLevelsAndPayloads) {
  std::string pattern = (std::filesystem::temp_directory_path() / "fusescope-nvtx-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  const std::string heard = (folder / "heard").string();
  setenv("NVTX_INJECTION64_PATH", FUSESCOPE_NVTX_LISTENER, 1);
  setenv("NVTX_LISTENER_OUT", heard.c_str(), 1);
  {
    const NvtxRange iteration(RangeLevel::iteration, "iteration", 12);
    const NvtxRange step(RangeLevel::step, "dispatch_gemm", 1);
  }
  std::ostringstream text;
  text << std::ifstream(heard).rdbuf();
  EXPECT_EQ(text.str(),
            "domain fusescope\n"
            "category 1 run\ncategory 2 iteration\ncategory 3 step\ncategory 4 check\n"
            "push 7 iteration category 2 payload 12\n"
            "push 7 dispatch_gemm category 3 payload 1\n"
            "pop\npop\n");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fusescope::timeline
