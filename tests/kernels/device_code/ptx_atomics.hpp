#pragma once
// Reads a PTX file and says of each of its atomic operations on global memory which pointer its address
// comes from: a kernel parameter, at which offset.
//
// An address is followed back through the 64-bit registers that it is computed from, over all definitions
// of each, in whatever order control may reach them. Registers of 32 bits are indices, and end the search:
// no pointer fits. So nothing is missed; what cannot be followed is said, and is for the caller to refuse.

#include <map>
#include <set>
#include <string>
#include <vector>

namespace fusescope::kernels::testing {

struct PtxAtomic {
  std::string kernel;       // mangled
  std::string instruction;  // "atom.add.relaxed.gpu.u32 %r491,[%rd77],%r492"
  // Pointers that the address is made of, by their offset in the kernel's only struct parameter.
  std::set<int> parameters;
  // What else: "param+1512[i]", a pointer out of an array of parameters; "ld.global.u64 ...", one out of
  // memory; "..." a definition that is not understood.
  std::set<std::string> others;
};

struct PtxFile {
  std::vector<std::string> kernels;  // mangled
  std::vector<PtxAtomic> atomics;
  int functions = 0;  // that are no kernels: what they do is not attributed to a kernel
};

PtxFile read_ptx(const std::string& text);

}  // namespace fusescope::kernels::testing
