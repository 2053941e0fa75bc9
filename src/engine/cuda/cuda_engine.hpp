#pragma once
// The engine of the real kernels: N GPUs of one kind with peer access, one or more ranks on each.

#include <memory>

#include "engine/engine.hpp"

namespace fusescope::engine::cuda {

// Throws InputError when no usable device is found, or one that was asked for is not usable.
std::unique_ptr<Engine> make_cuda_engine(const EngineOptions& options);

// Whether make_cuda_engine would find a device. Never throws.
bool is_usable(const EngineOptions& options) noexcept;

}  // namespace fusescope::engine::cuda
