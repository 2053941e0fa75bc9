// A tool as NVTX finds it: a library named by NVTX_INJECTION64_PATH, asked for its callbacks at the first
// NVTX call. Writes one line per call to the file that NVTX_LISTENER_OUT names.

#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

std::FILE* out() {
  static std::FILE* file = std::fopen(std::getenv("NVTX_LISTENER_OUT"), "w");
  return file;
}

nvtxDomainHandle_t NVTX_API create(const char* name) {
  std::fprintf(out(), "domain %s\n", name);
  return reinterpret_cast<nvtxDomainHandle_t>(std::size_t{7});
}

void NVTX_API name_category(nvtxDomainHandle_t, std::uint32_t category, const char* name) {
  std::fprintf(out(), "category %u %s\n", category, name);
}

int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  std::fprintf(out(), "push %d %s category %u payload %lld\n",
               static_cast<int>(reinterpret_cast<std::size_t>(domain)), attributes->message.ascii,
               attributes->category, static_cast<long long>(attributes->payload.llValue));
  return 0;
}

int NVTX_API pop(nvtxDomainHandle_t) {
  std::fprintf(out(), "pop\n");
  std::fflush(out());
  return 0;
}

template <class Function>
void set(NvtxFunctionTable table, unsigned size, int at, Function function) {
  if (static_cast<unsigned>(at) < size) {
    *table[at] = reinterpret_cast<NvtxFunctionPointer>(function);
  }
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) {
    return 0;
  }
  set(table, size, NVTX_CBID_CORE2_DomainCreateA, create);
  set(table, size, NVTX_CBID_CORE2_DomainNameCategoryA, name_category);
  set(table, size, NVTX_CBID_CORE2_DomainRangePushEx, push);
  set(table, size, NVTX_CBID_CORE2_DomainRangePop, pop);
  return 1;
}
