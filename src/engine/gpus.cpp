#include "engine/gpus.hpp"

#include "base/error.hpp"
#ifdef FUSESCOPE_HAVE_CUDA
#include "engine/cuda/devices.hpp"
#include "engine/cuda/gpu_check.hpp"
#include "engine/cuda/machine.hpp"
#endif

namespace fusescope::engine {

#ifdef FUSESCOPE_HAVE_CUDA

Machine describe_machine() {
  return cuda::describe_machine();
}

std::vector<CheckResult> check_on_gpus(const EngineOptions& options, const RunRequest& request) {
  return cuda::check_on_gpus(cuda::select_devices(options.devices), request);
}

#else

namespace {
constexpr const char* kNotBuilt = "this build has no cuda engine: there was no CUDA 13 toolkit";
}

Machine describe_machine() {
  Machine machine;
  machine.why_no_gpu = kNotBuilt;
  machine.why_no_nccl = kNotBuilt;
  return machine;
}

std::vector<CheckResult> check_on_gpus(const EngineOptions&, const RunRequest&) {
  throw InputError({"", "engine", std::string("cuda: ") + kNotBuilt,
                    "sim or auto, or a build with the toolkit (FUSESCOPE_CUDA=ON)"});
}

#endif

}  // namespace fusescope::engine
