#include "timeline/collect/cupti_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace fusescope::timeline {
namespace {

constexpr const char* kName = "libcupti.so.13";
static_assert(CUPTI_API_VERSION / 10000 == 13, "the library's name follows the toolkit's version");

std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  if (const char* named = std::getenv("FUSESCOPE_CUPTI"); named != nullptr && *named != '\0') {
    return {named};  // and no other
  }
  paths.emplace_back(kName);
  std::vector<std::string> roots = {"/usr/local/cuda", "/usr/local/cuda-13.0", "/opt/cuda"};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* root = std::getenv(variable); root != nullptr && *root != '\0') {
      roots.insert(roots.begin(), root);
    }
  }
  for (const std::string& root : roots) {
    for (const char* folder : {"/extras/CUPTI/lib64/", "/lib64/", "/lib/"}) {
      paths.push_back(root + folder + kName);
    }
  }
  return paths;
}

// The profiler's host side loads these by their bare names. Where CUPTI was found in a folder that the
// loader does not search, they are beside it.
void load_companions(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    return;
  }
  for (const char* name : {"libnvperf_target.so", "libnvperf_host.so"}) {
    dlopen((path.substr(0, slash + 1) + name).c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
}

std::string path_of(const void* address, const std::string& fallback) {
  Dl_info info;
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : fallback;
}

struct Loaded {
  Cupti cupti;
  bool usable = false;
  std::string why_not;
};

Loaded load() {
  Loaded loaded;
  void* library = nullptr;
  for (const std::string& path : candidates()) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) {
      loaded.cupti.path = path;
      break;
    }
    if (loaded.why_not.empty()) {
      const char* error = dlerror();
      loaded.why_not = error == nullptr ? path : error;
    }
  }
  if (library == nullptr) {
    loaded.why_not = "CUPTI is not found (" + loaded.why_not +
                     "); FUSESCOPE_CUPTI may name the toolkit's " + kName;
    return loaded;
  }
#define FUSESCOPE_CUPTI_LOAD(call)                                                      \
  loaded.cupti.call = reinterpret_cast<decltype(&::call)>(dlsym(library, #call));       \
  if (loaded.cupti.call == nullptr) {                                                   \
    loaded.why_not = loaded.cupti.path + " has no " #call ": another version of CUPTI"; \
    return loaded;                                                                      \
  }
  FUSESCOPE_CUPTI_CALLS(FUSESCOPE_CUPTI_LOAD)
#undef FUSESCOPE_CUPTI_LOAD
  loaded.cupti.path =
      path_of(reinterpret_cast<const void*>(loaded.cupti.cuptiGetVersion), loaded.cupti.path);
  load_companions(loaded.cupti.path);
  loaded.usable = true;
  return loaded;
}

}  // namespace

std::string Cupti::text(CUptiResult result) const {
  const char* name = nullptr;
  if (cuptiGetResultString(result, &name) == CUPTI_SUCCESS && name != nullptr) {
    return name;
  }
  return "CUPTI error " + std::to_string(static_cast<int>(result));
}

const Cupti* load_cupti(std::string& why_not) {
  static const Loaded kLoaded = load();
  why_not = kLoaded.why_not;
  if (kLoaded.usable) {
    why_not.clear();
    return &kLoaded.cupti;
  }
  return nullptr;
}

}  // namespace fusescope::timeline
