// The options of the cuda engine on a machine without GPUs: each says what is missing, or what is accepted.
#include "program.hpp"

namespace fusescope::cli {
namespace {

using GpuOptions = test::ProgramTest;

TEST_F(GpuOptions, WithoutAGpuTheEngineIsRefused) {
  const Json machine = fusescope("list devices --json").json();
  if (!machine["devices"].empty()) {
    GTEST_SKIP() << "this machine has a GPU";
  }
  for (const char* command : {"run", "check"}) {
    refused(std::string(command) + " --shape tiny.json --engine cuda", {"--engine", "cuda"});
    const std::string with_devices =
        std::string(command) + " --shape tiny.json --engine cuda --devices 0";
    if (fusescope(with_devices).err.find("not in this build") == std::string::npos) {
      refused(with_devices, {"--devices", "0"});
    } else {
      refused(with_devices, {"--engine", "cuda"});
    }
  }
  const test::Said text = fusescope("list devices");
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("No GPU: "), std::string::npos) << text.out;
  EXPECT_FALSE(machine["why_none"].get<std::string>().empty());
  EXPECT_TRUE(machine["links"].empty());
  // What the kernels are compiled for, and where they have been run.
  ASSERT_EQ(machine["kernels"].size(), 3U);
  EXPECT_EQ(machine["kernels"][2]["compute_capability"], "12.0");
  EXPECT_EQ(machine["kernels"][2]["run_on"], "");
  EXPECT_NE(text.out.find("compiled and checked only"), std::string::npos) << text.out;
}

TEST_F(GpuOptions, SayWhatIsAccepted) {
  refused("run --shape tiny.json --engine cude", {"--engine", "cude", "auto, sim or cuda"});
  refused("run --shape tiny.json --devices 0,x", {"--devices", "0,x", "such as 0,1"});
  refused("run --shape tiny.json --devices 0,", {"--devices", "such as 0,1"});
  refused("run --shape tiny.json --engine sim --devices 0", {"--devices", "--engine cuda"});
  refused("run --shape tiny.json --engine cuda --profile h200-nvlink", {"--profile", "simulator"});
  refused("run --shape tiny.json --deadline-ms 0", {"--deadline-ms"});
  for (const char* command : {"run --shape tiny.json", "sweep sweep.json", "tune sweep.json"}) {
    refused(std::string(command) + " --rest-ms -1", {"--rest-ms"});
    refused(std::string(command) + " --rest-ms 10001", {"--rest-ms"});
  }
  refused("run --shape tiny.json --ranks 0", {"--ranks"});
  refused("run --shape tiny.json --ranks 100000", {"--ranks", "out of range", "integer from"});
  refused("run --shape tiny.json --iteration fastest",
          {"--iteration", "fastest", "median, slowest, or a number"});
  refused("run --shape tiny.json --engine sim --set collectives=mpi",
          {"collectives", "auto, nccl or peer_copies"});
}

TEST_F(GpuOptions, GemmIsTheKnobOfThatName) {
  const std::string run = "run --shape tiny.json --engine sim --profile ";
  const test::Said forced = fusescope(run + "h200-nvlink --gemm mma");
  EXPECT_EQ(forced.code, 0) << forced.err;
  EXPECT_NE(forced.out.find("gemm=mma"), std::string::npos) << forced.out;
  const test::Said pcie = fusescope(run + "rtx-pro-5000-pcie5 --gemm mma");
  EXPECT_EQ(pcie.code, 0) << pcie.err;
  refused(run + "h200-nvlink --gemm mmma", {"--gemm", "mmma", "auto, wgmma, mma or mma_small"});
  refused(run + "rtx-pro-5000-pcie5 --gemm wgmma", {"--gemm", "wgmma", "auto or mma run there"});
  refused(run + "rtx-pro-5000-pcie5 --set tile=128x256", {"tile 128x256 needs wgmma", "mma.sync"});
  const test::Said sweep = fusescope("sweep sweep.json --gemm mma --trials 1 --out s");
  EXPECT_EQ(sweep.code, 0) << sweep.err;
  EXPECT_EQ(Json::parse(test::read_text(folder_ / "s/best/run.json"))["config"]["gemm"], "mma");
  EXPECT_EQ(fusescope("check --shape tiny.json --gemm mma").code, 0);
}

TEST_F(GpuOptions, RanksStandInForTheShapes) {
  for (const int ranks : {1, 2, 4, 8}) {
    const std::string given =
        " --shape tiny.json --routing uniform --ranks " + std::to_string(ranks);
    const test::Said run = fusescope("run --engine sim" + given);
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_NE(run.out.find("(R=" + std::to_string(ranks) + " T=64"), std::string::npos) << run.out;
    const test::Said serial = fusescope("run --engine sim --set form=serial" + given);
    EXPECT_EQ(serial.code, 0) << serial.err;
    const test::Said check = fusescope("check" + given);
    EXPECT_EQ(check.code, 0) << check.err << check.out;
  }
}

TEST_F(GpuOptions, DevicesAreListedForMachinesToo) {
  const Json machine = fusescope("list devices --json").json();
  for (const char* key : {"driver", "devices", "why_none", "links", "most_ranks", "nccl"}) {
    EXPECT_TRUE(machine.contains(key)) << key;
  }
  EXPECT_NE(machine["nccl"]["file"].get<std::string>().empty(),
            machine["nccl"]["why_none"].get<std::string>().empty());
  const test::Said text = fusescope("list devices");
  EXPECT_NE(text.out.find("NCCL"), std::string::npos) << text.out;
}

TEST_F(GpuOptions, AnNcclThatIsNotThereIsNamed) {
  ::setenv("FUSESCOPE_NCCL", "/nowhere/libnccl.so.2", 1);
  const test::Said said = fusescope("list devices --json");
  ::unsetenv("FUSESCOPE_NCCL");
  ASSERT_EQ(said.code, 0) << said.err;
  const Json nccl = said.json()["nccl"];
  EXPECT_EQ(nccl["file"], "");
  const std::string why = nccl["why_none"].get<std::string>();
  // A build without CUDA or without nccl.h says that instead.
  EXPECT_TRUE(why.find("/nowhere/libnccl.so.2") != std::string::npos ||
              why.find("this build has no") != std::string::npos)
      << why;
}

}  // namespace
}  // namespace fusescope::cli
