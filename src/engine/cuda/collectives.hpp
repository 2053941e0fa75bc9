#pragma once
// The serial layer's all-gather and reduce-scatter through NCCL: one communicator per device, all in this
// process, made once per engine. The library is looked up when it is first wanted, so that a fusescope
// carried to a machine without NCCL still starts: $FUSESCOPE_NCCL, if set, names its file, else it is
// libnccl.so.2 where the loader finds it.
//
// Rounding. NCCL adds bf16 numbers and rounds after each addition, in an order of its own; peer copies and
// the final reduce add all planes in fp32, in rank order, and round once. With two ranks the two agree
// (but for the sign of a zero); with more, each further rank adds half a unit in the last place at most.
//
// NVLink multicast is never used: a program that dies with a multicast object in use can take the GPUs of
// a host out of service. NCCL is kept from it, and from the memory that it needs, before it is loaded.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/layer_args.hpp"

namespace fusescope::engine::cuda {

// What NCCL, or the loader in its place, said.
class NcclError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct NcclFound {
  std::string file;     // "" = none that can be used
  std::string version;  // "2.28.9"
  std::string why_not;  // where there is none
};
NcclFound find_nccl();

class NcclCollectives {
 public:
  // Rank r of the communicators is on devices[r]. Blocks until they are connected. Throws NcclError.
  explicit NcclCollectives(const std::vector<int>& devices);
  // Graphs that hold one of its collectives must be gone.
  ~NcclCollectives();
  NcclCollectives(const NcclCollectives&) = delete;
  NcclCollectives& operator=(const NcclCollectives&) = delete;

  const std::vector<int>& devices() const { return devices_; }
  std::string describe() const;  // "NCCL 2.28.9 (/usr/lib/libnccl.so.2)"

  // `own` [count] of every rank, one after another in `all` [ranks * count]. `own` may lie in its place
  // in `all`. Each rank calls it on a thread of its own, with its device current. Capturable.
  void all_gather(int rank, const kernels::Bf16* own, kernels::Bf16* all, std::size_t count,
                  cudaStream_t stream) const;
  // The sum over the ranks of the rank-th part of `parts` [ranks * count], in `sum` [count]. As above.
  void reduce_scatter(int rank, const kernels::Bf16* parts, kernels::Bf16* sum, std::size_t count,
                      cudaStream_t stream) const;

  // Ends what is under way on all devices; then no more can be done with it. Graphs that hold one of its
  // collectives must be gone, or about to go once they have ended. Thread-safe.
  void abort() noexcept;
  bool aborted() const;

 private:
  struct State;
  void connect();

  std::vector<int> devices_;
  std::unique_ptr<State> state_;
};

}  // namespace fusescope::engine::cuda
