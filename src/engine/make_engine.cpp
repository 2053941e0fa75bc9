// Which engine answers to a name. `auto` is cuda where a usable device is found, else the simulator.
#include "base/error.hpp"
#include "engine/engine.hpp"
#include "engine/sim/sim_engine.hpp"
#ifdef FUSESCOPE_HAVE_CUDA
#include "engine/cuda/cuda_engine.hpp"
#endif

namespace fusescope::engine {
namespace {

std::unique_ptr<Engine> make_cuda([[maybe_unused]] const EngineOptions& options) {
#ifdef FUSESCOPE_HAVE_CUDA
  return cuda::make_cuda_engine(options);
#else
  throw InputError({"", "engine",
                    "cuda is not in this build: it was built without a CUDA 13 toolkit",
                    "auto or sim, or a build with the toolkit (FUSESCOPE_CUDA=ON)"});
#endif
}

bool cuda_is_usable([[maybe_unused]] const EngineOptions& options) {
#ifdef FUSESCOPE_HAVE_CUDA
  return cuda::is_usable(options);
#else
  return false;
#endif
}

}  // namespace

std::unique_ptr<Engine> make_engine(const EngineOptions& options) {
  if (options.engine == "sim") {
    return sim::make_sim_engine(options.profile);
  }
  if (options.engine == "cuda") {
    return make_cuda(options);
  }
  if (options.engine != "auto") {
    throw InputError(
        {"", "engine", "\"" + options.engine + "\" is not an engine", "auto, sim or cuda"});
  }
  // Devices that are asked for by number are not replaced by a simulation; a profile asks for one.
  if (!options.devices.empty() || (options.profile.empty() && cuda_is_usable(options))) {
    return make_cuda(options);
  }
  return sim::make_sim_engine(options.profile);
}

}  // namespace fusescope::engine
