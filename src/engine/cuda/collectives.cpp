#include "engine/cuda/collectives.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <nccl.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "kernels/cuda_check.hpp"

namespace fusescope::engine::cuda {
namespace {

// The functions that are used, under NCCL's own names and types.
struct Library {
  std::string file;
  int version = 0;
  decltype(&::ncclGetVersion) get_version = nullptr;
  decltype(&::ncclGetErrorString) error_string = nullptr;
  decltype(&::ncclGetLastError) last_error = nullptr;
  decltype(&::ncclCommInitAll) init_all = nullptr;
  decltype(&::ncclCommDestroy) destroy = nullptr;
  decltype(&::ncclCommAbort) abort = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
};

constexpr int kOldestVersion = NCCL_VERSION(2, 19, 0);  // captures on several threads at once

std::string spoken(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

template <class Function>
void look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    throw NcclError(fmt::format("NCCL has no function {}: {}", name, dlerror()));
  }
}

void check(const Library& library, ncclResult_t result, const char* what) {
  if (result == ncclSuccess) {
    return;
  }
  const char* last = library.last_error(nullptr);
  throw NcclError(fmt::format("NCCL {}: {}: {}{}", spoken(library.version), what,
                              library.error_string(result),
                              last != nullptr && *last != '\0' ? fmt::format(" ({})", last) : ""));
}

// Never unloaded: NCCL has threads of its own.
Library load() {
  // NCCL reads its environment once, when it is loaded. Multicast, and the kind of memory that
  // multicast is made of, stay off whatever the user's environment says.
  ::setenv("NCCL_NVLS_ENABLE", "0", 1);
  ::setenv("NCCL_CUMEM_ENABLE", "0", 1);
  const char* named = std::getenv("FUSESCOPE_NCCL");
  const bool is_named = named != nullptr && *named != '\0';
  void* handle = dlopen(is_named ? named : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    throw NcclError(fmt::format(
        "{}NCCL is not found: {}", is_named ? "FUSESCOPE_NCCL: " : "",
        is_named ? dlerror()
                 : "no libnccl.so.2 where the loader looks; FUSESCOPE_NCCL may name the file"));
  }
  Library library;
  look_up(handle, "ncclGetVersion", library.get_version);
  look_up(handle, "ncclGetErrorString", library.error_string);
  look_up(handle, "ncclGetLastError", library.last_error);
  look_up(handle, "ncclCommInitAll", library.init_all);
  look_up(handle, "ncclCommDestroy", library.destroy);
  look_up(handle, "ncclCommAbort", library.abort);
  look_up(handle, "ncclGroupStart", library.group_start);
  look_up(handle, "ncclGroupEnd", library.group_end);
  look_up(handle, "ncclAllGather", library.all_gather);
  look_up(handle, "ncclReduceScatter", library.reduce_scatter);
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(library.init_all), &info) != 0 && info.dli_fname != nullptr) {
    library.file = info.dli_fname;
  }
  check(library, library.get_version(&library.version), "version");
  if (library.version < kOldestVersion) {
    throw NcclError(fmt::format("{} is NCCL {}, and {} or newer is wanted", library.file,
                                spoken(library.version), spoken(kOldestVersion)));
  }
  return library;
}

}  // namespace

NcclFound find_nccl() {
  try {
    const Library library = load();
    return {library.file, spoken(library.version), ""};
  } catch (const NcclError& error) {
    return {"", "", error.what()};
  }
}

struct NcclCollectives::State {
  Library library;
  std::vector<ncclComm_t> communicators;
  std::mutex mutex;  // of aborting
  std::atomic<bool> aborted = false;
};

NcclCollectives::NcclCollectives(const std::vector<int>& devices)
    : devices_(devices), state_(std::make_unique<State>()) {
  state_->library = load();
  std::vector<ncclComm_t> made(devices.size(), nullptr);
  check(state_->library,
        state_->library.init_all(made.data(), static_cast<int>(made.size()), devices.data()),
        "communicators");
  state_->communicators = made;
  connect();
}

// NCCL connects the ranks at the first collective of each kind, which takes all of them at once: here, in
// one group, and not within a capture.
void NcclCollectives::connect() {
  constexpr std::size_t kCount = 1024;
  const Library& library = state_->library;
  std::vector<kernels::Stream> streams;
  std::vector<kernels::DeviceBlock> blocks;
  for (const int device : devices_) {
    const kernels::OnDevice on(device);
    const std::size_t bytes = (devices_.size() + 1) * kCount * sizeof(kernels::Bf16);
    blocks.push_back(kernels::allocate_device(bytes));
    FUSESCOPE_CUDA(cudaMemset(blocks.back().get(), 0, bytes));
    streams.push_back(kernels::make_stream());
  }
  const auto in_group = [&](auto step) {
    check(library, library.group_start(), "group");
    for (std::size_t r = 0; r < devices_.size(); ++r) {
      const kernels::OnDevice on(devices_[r]);
      auto* all = static_cast<kernels::Bf16*>(blocks[r].get());
      step(static_cast<int>(r), all, all + devices_.size() * kCount, streams[r].get());
    }
    check(library, library.group_end(), "connecting");
  };
  in_group([&](int r, kernels::Bf16* all, kernels::Bf16* own, cudaStream_t stream) {
    all_gather(r, own, all, kCount, stream);
  });
  in_group([&](int r, kernels::Bf16* all, kernels::Bf16* own, cudaStream_t stream) {
    reduce_scatter(r, all, own, kCount, stream);
  });
  for (std::size_t r = 0; r < devices_.size(); ++r) {
    const kernels::OnDevice on(devices_[r]);
    FUSESCOPE_CUDA(cudaStreamSynchronize(streams[r].get()));
  }
}

NcclCollectives::~NcclCollectives() {
  if (!state_->aborted) {
    for (const ncclComm_t communicator : state_->communicators) {
      state_->library.destroy(communicator);
    }
  }
}

std::string NcclCollectives::describe() const {
  return fmt::format("NCCL {} ({})", spoken(state_->library.version), state_->library.file);
}

void NcclCollectives::all_gather(int rank, const kernels::Bf16* own, kernels::Bf16* all,
                                 std::size_t count, cudaStream_t stream) const {
  check(state_->library,
        state_->library.all_gather(own, all, count, ncclBfloat16,
                                   state_->communicators[static_cast<std::size_t>(rank)], stream),
        "all-gather");
}

void NcclCollectives::reduce_scatter(int rank, const kernels::Bf16* parts, kernels::Bf16* sum,
                                     std::size_t count, cudaStream_t stream) const {
  check(
      state_->library,
      state_->library.reduce_scatter(parts, sum, count, ncclBfloat16, ncclSum,
                                     state_->communicators[static_cast<std::size_t>(rank)], stream),
      "reduce-scatter");
}

void NcclCollectives::abort() noexcept {
  const std::lock_guard lock(state_->mutex);
  if (!state_->aborted.exchange(true)) {
    for (const ncclComm_t communicator : state_->communicators) {
      state_->library.abort(communicator);
    }
  }
}

bool NcclCollectives::aborted() const {
  return state_->aborted;
}

}  // namespace fusescope::engine::cuda
