// Nothing in the protocol needs native peer atomics: in the device code, every atomic on global memory has
// an address that comes from one of a few pointers, all of them to this rank's own memory, and none has
// system scope. Over the PTX of all kernels that a GPU without wgmma runs; the wgmma kernels differ from
// them in the GEMM's consumers alone, which have no global atomics. Needs no device.
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "kernels/dispatch_gemm.hpp"
#include "kernels/final_reduce.hpp"
#include "kernels/gemm_combine_push.hpp"
#include "kernels/gemm_reduce_scatter.hpp"
#include "kernels/prologue.hpp"
#include "ptx_atomics.hpp"

namespace fusescope::kernels::testing {
namespace {

PtxFile read(const std::string& name) {
  std::ifstream file(std::string(FUSESCOPE_PTX_DIR) + "/" + name + ".ptx");
  EXPECT_TRUE(file) << name;
  return read_ptx({std::istreambuf_iterator<char>(file), {}});
}

// What a kernel's struct parameter is, by its name in the mangled signature; where LayerArgs lies in it, and
// the GEMM's arguments, if any.
struct Signature {
  const char* type;
  int layer;  // -1: none
  int gemm = -1;
};
constexpr Signature kSignatures[] = {
    {"16DispatchGemmArgs", offsetof(DispatchGemmArgs, layer), offsetof(DispatchGemmArgs, gemm)},
    {"19GemmCombinePushArgs", offsetof(GemmCombinePushArgs, layer),
     offsetof(GemmCombinePushArgs, gemm)},
    {"21GemmReduceScatterArgs", offsetof(GemmReduceScatterArgs, layer),
     offsetof(GemmReduceScatterArgs, gemm)},
    {"16ReducePlanesArgs", offsetof(ReducePlanesArgs, layer)},
    {"15FinalReduceArgs", offsetof(FinalReduceArgs, layer)},
    {"12PrologueArgs", offsetof(PrologueArgs, layer)},
    {"9LayerArgs", 0},
    {"15GroupedGemmArgs", -1, 0},
};

// The pointers that atomics may go to. All are allocated by the rank whose kernel gets them: layer_memory.cpp.
std::map<int, std::string> own_pointers(const std::string& kernel) {
  std::map<int, std::string> own;
  for (const Signature& s : kSignatures) {
    if (kernel.find(s.type) == std::string::npos) {
      continue;
    }
    if (s.gemm >= 0) {
      own[s.gemm + static_cast<int>(offsetof(GroupedGemmArgs, next_tile))] = "next_tile";
    }
    if (s.layer < 0) {
      return own;
    }
    own[s.layer + static_cast<int>(offsetof(LayerArgs, arrivals))] = "arrivals";
    own[s.layer + static_cast<int>(offsetof(LayerArgs, done))] = "done";
    own[s.layer + static_cast<int>(offsetof(LayerArgs, computed))] = "computed";
    own[s.layer + static_cast<int>(offsetof(LayerArgs, counters))] = "counters";
    own[s.layer + static_cast<int>(offsetof(LayerArgs, guard) + offsetof(Guard, claimed))] =
        "claimed";
    own[s.layer + static_cast<int>(offsetof(LayerArgs, records) +
                                   offsetof(timeline::RecordBuffers, phases))] = "phases";
    if (std::string(s.type) == "12PrologueArgs") {
      own[static_cast<int>(offsetof(PrologueArgs, marks))] = "marks";
    }
    return own;
  }
  return own;
}

// "" if the atomic stays in this rank's memory, else why not.
std::string why_not_own(const PtxAtomic& atomic, std::map<std::string, int>& seen) {
  if (!atomic.others.empty()) {
    return "its address is computed from " + *atomic.others.begin();
  }
  if (atomic.parameters.size() != 1) {
    return std::to_string(atomic.parameters.size()) + " pointers make its address";
  }
  const std::map<int, std::string> own = own_pointers(atomic.kernel);
  const auto found = own.find(*atomic.parameters.begin());
  if (found == own.end()) {
    return "its address comes from the parameters' byte " +
           std::to_string(*atomic.parameters.begin()) + ", which is no counter of this rank";
  }
  if (atomic.instruction.find(".sys") != std::string::npos) {
    return "it has system scope";
  }
  ++seen[found->second];
  return "";
}

struct Checked {
  const char* file;
  std::size_t kernels;  // as a guard against reading nothing
};

class PeerAtomics : public ::testing::TestWithParam<Checked> {};

TEST_P(PeerAtomics, EveryAtomicStaysInTheRanksOwnMemory) {
  const PtxFile file = read(GetParam().file);
  EXPECT_EQ(file.kernels.size(), GetParam().kernels);
  EXPECT_EQ(file.functions, 0) << "device functions that are not inlined are not followed";
  std::map<std::string, int> seen;
  for (const PtxAtomic& atomic : file.atomics) {
    EXPECT_EQ(why_not_own(atomic, seen), "") << atomic.instruction << " in " << atomic.kernel;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, PeerAtomics,
                         ::testing::Values(Checked{"gemm_mma", 4}, Checked{"dispatch_gemm_mma", 8},
                                           Checked{"gemm_combine_push_mma", 4},
                                           Checked{"gemm_reduce_scatter_mma", 4},
                                           Checked{"block_per_job", 3}, Checked{"prologue", 2},
                                           Checked{"ids_exchange", 3}, Checked{"device_barrier", 4},
                                           Checked{"final_reduce", 2}, Checked{"reduce_planes", 2}),
                         [](const auto& tested) { return std::string(tested.param.file); });

std::map<std::string, int> counters_of(const std::string& name) {
  std::map<std::string, int> seen;
  for (const PtxAtomic& atomic : read(name).atomics) {
    static_cast<void>(why_not_own(atomic, seen));
  }
  return seen;
}

// The atomics that the protocol does have are found, so that the check is not one of nothing.
TEST(PeerAtomicsAreLookedFor, WhereTheProtocolHasAtomics) {
  const std::map<std::string, int> dispatch = counters_of("dispatch_gemm_mma");
  EXPECT_GE(dispatch.at("arrivals"), 8);   // an increment per kernel at least
  EXPECT_GE(dispatch.at("counters"), 16);  // the emulated link: two per booking
  EXPECT_GE(dispatch.at("claimed"), 8);
  EXPECT_GE(dispatch.at("next_tile"), 8);
  const std::map<std::string, int> combine = counters_of("gemm_combine_push_mma");
  EXPECT_GE(combine.at("done"), 4);
  EXPECT_GE(combine.at("counters"), 4 * 4);  // residency, dispenser, link, pushes
  EXPECT_GE(combine.at("phases"), 4);        // two kernels that record, begin and end
  EXPECT_GE(counters_of("prologue").at("marks"), 1);
}

TEST(PeerAtomicsAreLookedFor, AndThePlantedOnesAreFound) {
  const PtxFile file = read("planted_peer_atomic");
  ASSERT_EQ(file.atomics.size(), 4U);
  std::map<std::string, int> seen;
  for (const PtxAtomic& atomic : file.atomics) {
    const std::string why = why_not_own(atomic, seen);
    if (atomic.kernel.find("adds_to_own_counter") != std::string::npos) {
      EXPECT_EQ(why, "");
    } else {
      EXPECT_NE(why, "") << atomic.kernel << ": " << atomic.instruction;
    }
  }
  EXPECT_EQ(seen.at("arrivals"), 1);
}

}  // namespace
}  // namespace fusescope::kernels::testing
