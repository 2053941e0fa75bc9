// Which engine answers to a name. `auto` is cuda where a usable device is found, else the simulator.
#include "base/error.hpp"
#include "engine/engine.hpp"
#include "engine/sim/sim_engine.hpp"
#if defined(FUSESCOPE_HAVE_CUDA) && __has_include("engine/cuda/cuda_engine.hpp")
#include "engine/cuda/cuda_engine.hpp"
#define FUSESCOPE_CUDA_ENGINE 1
#endif

namespace fusescope::engine {
namespace {

std::unique_ptr<Engine> make_cuda([[maybe_unused]] const EngineOptions& options) {
#ifdef FUSESCOPE_CUDA_ENGINE
  return cuda::make_cuda_engine(options);
#else
  throw InputError({"", "engine",
                    "cuda is not in this build: it was built without a CUDA 13 toolkit",
                    "auto or sim, or a build with the toolkit"});
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
#ifdef FUSESCOPE_CUDA_ENGINE
  if (options.profile.empty()) {
    try {
      return make_cuda(options);
    } catch (const InputError&) {
      // Devices that were asked for by number are not replaced by a simulation.
      if (!options.devices.empty()) {
        throw;
      }
    }
  }
#endif
  return sim::make_sim_engine(options.profile);
}

}  // namespace fusescope::engine
