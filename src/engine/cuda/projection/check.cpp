#include "engine/cuda/projection/check.hpp"

#include <cmath>
#include <limits>

#include "kernels/reference_layer.hpp"
#include "kernels/reference_projection.hpp"

namespace fusescope::engine::cuda::projection {
namespace {

// Of one row. A row of zeros may only be found as zeros.
double relative(const kernels::RowDifference& row) {
  if (row.not_finite > 0 || (row.squared_norm == 0 && row.squared_error > 0)) {
    return std::numeric_limits<double>::infinity();
  }
  return row.squared_norm == 0 ? 0 : std::sqrt(row.squared_error / row.squared_norm);
}

}  // namespace

void Check::compute_reference() {
  const Shape& s = memory_.shape();
  for (int r = 0; r < s.ranks; ++r) {
    const Rank& m = memory_.rank(r);
    const kernels::OnDevice on(m.device);
    if (static_cast<int>(parts_.size()) == r) {
      parts_.push_back(kernels::allocate_device(static_cast<std::size_t>(s.tokens()) * s.hidden *
                                                sizeof(float)));
    }
    kernels::launch_reference_projection(
        m.x, m.weights, static_cast<float*>(parts_[static_cast<std::size_t>(r)].get()), s.tokens(),
        s.hidden, s.rank_depth(), nullptr);
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
  }
  current_ = true;
}

OutputError Check::output_error() {
  if (!current_) {
    compute_reference();
  }
  OutputError found;
  double error = 0;
  double norm = 0;
  for (int r = 0; r < memory_.ranks(); ++r) {
    const std::vector<kernels::RowDifference> rows = compare(r);
    for (std::size_t t = 0; t < rows.size(); ++t) {
      const double off = relative(rows[t]);
      if (off > found.worst_row) {
        found.worst_row = off;
        found.worst_rank = r;
        found.worst_token = static_cast<int>(t);
      }
      error += rows[t].squared_error;
      norm += rows[t].squared_norm;
    }
  }
  found.relative = std::isinf(found.worst_row) ? found.worst_row : std::sqrt(error / norm);
  return found;
}

std::vector<kernels::RowDifference> Check::compare(int rank) const {
  const Shape& s = memory_.shape();
  const kernels::OnDevice on(memory_.rank(rank).device);
  const std::int64_t plane = static_cast<std::int64_t>(s.tokens_per_rank) * s.hidden;
  std::vector<const float*> expected;
  for (const kernels::DeviceBlock& part : parts_) {
    expected.push_back(static_cast<const float*>(part.get()) + rank * plane);
  }
  std::vector<kernels::RowDifference> rows(static_cast<std::size_t>(s.tokens_per_rank));
  const std::size_t bytes = rows.size() * sizeof(kernels::RowDifference);
  const kernels::DeviceBlock on_device = kernels::allocate_device(bytes);
  kernels::launch_compare(memory_.rank(rank).args.output, expected.data(),
                          static_cast<int>(expected.size()), s.tokens_per_rank, s.hidden,
                          static_cast<kernels::RowDifference*>(on_device.get()), nullptr);
  FUSESCOPE_CUDA(cudaMemcpy(rows.data(), on_device.get(), bytes, cudaMemcpyDeviceToHost));
  return rows;
}

}  // namespace fusescope::engine::cuda::projection
