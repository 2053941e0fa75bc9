#pragma once
// Who gathers and reduces for the serial layer: what the knob `collectives` comes to on these devices.

#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/collectives.hpp"
#include "layer/config.hpp"

namespace fusescope::engine::cuda {

class NcclChoice {
 public:
  struct Chosen {
    NcclCollectives* nccl = nullptr;  // null = peer copies
    std::string said;                 // for the run's record; "" where nothing is gathered
  };
  // `device_of_rank`: one per rank. Communicators are kept for the next call with the same devices; graphs
  // on other devices' must be gone. Throws InputError where the config asks for NCCL and cannot have it.
  Chosen choose(const Config& config, const std::vector<int>& device_of_rank);

  // Whether what was chosen last was aborted by a launch. Then drop() it, and whatever uses it before.
  bool aborted() const { return nccl_ != nullptr && nccl_->aborted(); }
  void drop() { nccl_.reset(); }

 private:
  std::string why_not(const std::vector<int>& device_of_rank);

  std::unique_ptr<NcclCollectives> nccl_;
  std::vector<int> failed_devices_;  // on which NCCL did not start
  std::string failure_;
};

}  // namespace fusescope::engine::cuda
