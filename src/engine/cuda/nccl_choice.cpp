#include "engine/cuda/nccl_choice.hpp"

#include <fmt/format.h>

#include <set>

#include "base/error.hpp"
#include "kernels/cuda_check.hpp"

namespace fusescope::engine::cuda {

NcclChoice::Chosen NcclChoice::choose(const Config& config,
                                      const std::vector<int>& device_of_rank) {
  if (config.form != LayerForm::serial || device_of_rank.size() < 2) {
    return {};
  }
  if (config.collectives == Collectives::peer_copies) {
    return {nullptr, "peer copies"};
  }
  const std::string why = why_not(device_of_rank);
  if (why.empty()) {
    return {nccl_.get(), nccl_->describe()};
  }
  if (config.collectives == Collectives::nccl) {
    throw InputError({"", "config", "collectives nccl: " + why, "auto or peer_copies"});
  }
  return {nullptr, "peer copies: " + why};
}

// "" once there are communicators.
std::string NcclChoice::why_not(const std::vector<int>& device_of_rank) {
  const std::set<int> distinct(device_of_rank.begin(), device_of_rank.end());
  if (distinct.size() < device_of_rank.size()) {
    return fmt::format("NCCL takes one GPU per rank, and {} ranks share {}", device_of_rank.size(),
                       distinct.size());
  }
  if (aborted()) {
    return "NCCL was aborted in a launch that did not end";
  }
  if (nccl_ != nullptr && nccl_->devices() == device_of_rank) {
    return "";
  }
  if (!failure_.empty() && failed_devices_ == device_of_rank) {
    return failure_;
  }
  nccl_.reset();
  try {
    nccl_ = std::make_unique<NcclCollectives>(device_of_rank);
    return "";
  } catch (const NcclError& error) {
    failure_ = error.what();
    failed_devices_ = device_of_rank;
    return failure_;
  }
}

}  // namespace fusescope::engine::cuda
