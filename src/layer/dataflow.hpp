#pragma once
// The dataflow check: the real tables of all ranks drive scatter, grouped GEMMs, weighted combine, push and
// final reduce in fp32 on the host, as the kernels do it, and the result is compared with the reference.
// Every buffer starts as NaN, every counter must end where the protocol says.

#include <string>
#include <vector>

#include "layer/config.hpp"
#include "layer/problem.hpp"
#include "layer/tables.hpp"

namespace fusescope {

// The tables do not depend on H and I, so a check may compute few columns of either.
struct DataflowSize {
  int hidden = 64;
  int intermediate = 32;  // per rank
};

struct DataflowResult {
  DataflowSize size;
  double max_error = 0;        // max |out - reference| / max |reference|
  double frobenius_error = 0;  // |out - reference| / |reference|
  std::string fault;  // "" or the first broken step, or the error beyond its bound, in words

  bool passed() const { return fault.empty(); }
};

inline constexpr double kDataflowTolerance = 2e-6;  // of both errors; fp32 gives about 1e-7

// `tables`: one per rank. `reference`: reference_layer(problem, dataflow_values(...)), computed once for
// several checks of one problem. Throws InputError for watermark_chunks that no plane can have.
DataflowResult check_dataflow(const Problem& problem, const Config& config,
                              const std::vector<ScheduleTables>& tables,
                              const std::vector<double>& reference, DataflowSize size);

// The same with the golden tables of the config's slot order and its own reference.
DataflowResult check_dataflow(const Problem& problem, const Config& config, DataflowSize size = {});

struct LayerValues;
LayerValues dataflow_values(const Problem& problem, DataflowSize size);

}  // namespace fusescope
