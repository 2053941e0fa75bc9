#include "timeline/collect/cupti_activity.hpp"

#include <cuda_runtime_api.h>
#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "timeline/collect/cupti_library.hpp"

namespace fusescope::timeline {
namespace {

constexpr std::array kKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                               CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET,
                               CUPTI_ACTIVITY_KIND_MARKER};
constexpr std::size_t kBufferBytes = std::size_t{8} << 20;

std::string demangled(const char* name) {
  if (name == nullptr) {
    return "(no name)";
  }
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

const char* copy_name(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "Memcpy HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "Memcpy DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "Memcpy DtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return "Memcpy HtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "Memcpy PtoP";
    default:
      return "Memcpy";
  }
}

// What buffers hold, taken out as they come. CUPTI's callbacks carry no pointer of ours and come on a
// thread of CUPTI's: the one place for what is collected.
class Store {
 public:
  void use(const Cupti* cupti) { cupti_ = cupti; }
  const Cupti& cupti() const { return *cupti_; }

  void read(std::uint8_t* buffer, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    CUpti_Activity* record = nullptr;
    while (cupti_->cuptiActivityGetNextRecord(buffer, bytes, &record) == CUPTI_SUCCESS) {
      add(*record);
    }
    std::size_t dropped = 0;
    if (cupti_->cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS) {
      activity_.dropped += dropped;
    }
  }

  Activity take() {
    const std::lock_guard lock(mutex_);
    activity_.untimed += open_.size();
    open_.clear();
    const auto by_begin = [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; };
    std::stable_sort(activity_.slices.begin(), activity_.slices.end(), by_begin);
    std::stable_sort(activity_.ranges.begin(), activity_.ranges.end(), by_begin);
    return std::exchange(activity_, {});
  }

 private:
  void add(const CUpti_Activity& record) {
    switch (record.kind) {
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        add_kernel(reinterpret_cast<const CUpti_ActivityKernel10&>(record));
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
        ActivitySlice slice = sliced(copy, ActivitySlice::What::copy);
        slice.name = copy_name(copy.copyKind);
        slice.bytes = static_cast<std::int64_t>(copy.bytes);
        add(std::move(slice));
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpyPtoP4&>(record);
        ActivitySlice slice = sliced(copy, ActivitySlice::What::copy);
        slice.name = copy_name(copy.copyKind);
        slice.bytes = static_cast<std::int64_t>(copy.bytes);
        slice.peer_device = static_cast<int>(copy.dstDeviceId);
        add(std::move(slice));
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& set = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
        ActivitySlice slice = sliced(set, ActivitySlice::What::memset);
        slice.name = "Memset";
        slice.bytes = static_cast<std::int64_t>(set.bytes);
        add(std::move(slice));
        break;
      }
      case CUPTI_ACTIVITY_KIND_MARKER:
        add_marker(reinterpret_cast<const CUpti_ActivityMarker2&>(record));
        break;
      default:
        break;
    }
  }

  template <class R>
  static ActivitySlice sliced(const R& record, ActivitySlice::What what) {
    ActivitySlice slice;
    slice.what = what;
    slice.begin_ns = record.start;
    slice.end_ns = record.end;
    slice.device = static_cast<int>(record.deviceId);
    slice.stream = record.streamId;
    slice.correlation = record.correlationId;
    slice.graph = record.graphId;
    slice.graph_node = record.graphNodeId;
    return slice;
  }

  void add_kernel(const CUpti_ActivityKernel10& kernel) {
    ActivitySlice slice = sliced(kernel, ActivitySlice::What::kernel);
    slice.name = demangled(kernel.name);
    slice.grid[0] = static_cast<std::uint32_t>(kernel.gridX);
    slice.grid[1] = static_cast<std::uint32_t>(kernel.gridY);
    slice.grid[2] = static_cast<std::uint32_t>(kernel.gridZ);
    slice.block[0] = static_cast<std::uint32_t>(kernel.blockX);
    slice.block[1] = static_cast<std::uint32_t>(kernel.blockY);
    slice.block[2] = static_cast<std::uint32_t>(kernel.blockZ);
    slice.registers = kernel.registersPerThread;
    slice.shared_bytes = static_cast<std::uint32_t>(kernel.dynamicSharedMemory);
    add(std::move(slice));
  }

  void add(ActivitySlice slice) {
    if (slice.begin_ns == 0 || slice.end_ns < slice.begin_ns) {
      ++activity_.untimed;
    } else {
      activity_.slices.push_back(std::move(slice));
    }
  }

  // A range is two records with one id, in two buffers maybe.
  void add_marker(const CUpti_ActivityMarker2& marker) {
    if ((marker.flags & CUPTI_ACTIVITY_FLAG_MARKER_START) != 0) {
      ActivityRange& range = open_[marker.id];
      range.begin_ns = marker.timestamp;
      range.name = marker.name == nullptr ? "" : marker.name;
      range.domain = marker.domain == nullptr ? "" : marker.domain;
      range.process = marker.objectId.pt.processId;
      range.thread = marker.objectId.pt.threadId;
    } else if ((marker.flags & CUPTI_ACTIVITY_FLAG_MARKER_END) != 0) {
      if (const auto found = open_.find(marker.id); found != open_.end()) {
        found->second.end_ns = marker.timestamp;
        activity_.ranges.push_back(std::move(found->second));
        open_.erase(found);
      }
    }
  }

  const Cupti* cupti_ = nullptr;
  std::mutex mutex_;
  Activity activity_;
  std::map<std::uint32_t, ActivityRange> open_;
};

Store& store() {
  static Store store;
  return store;
}

CUpti_SubscriberHandle subscriber = nullptr;

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *bytes =
      *buffer == nullptr ? 0 : kBufferBytes;  // records that find no buffer are counted as dropped
  *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                          std::size_t valid_bytes) {
  store().read(buffer, valid_bytes);
  std::free(buffer);
}

void CUPTIAPI ignore_callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

// "" or why not.
std::string subscribe(const Cupti& cupti) {
  std::array<char, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN> holder = {};
  CUpti_SubscriberParams params = {};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.subscriberName = "fusescope";
  params.oldSubscriberName = holder.data();
  params.oldSubscriberSize = holder.size();
  const CUptiResult result =
      cupti.cuptiSubscribe_v2(&subscriber, ignore_callback, nullptr, &params);
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    holder.back() = '\0';
    return std::string("CUPTI is held by ") +
           (holder[0] == '\0' ? "another tool that gives no name" : holder.data());
  }
  return result == CUPTI_SUCCESS ? "" : "CUPTI refuses a subscriber: " + cupti.text(result);
}

void stop(const Cupti& cupti) {
  for (const CUpti_ActivityKind kind : kKinds) {
    cupti.cuptiActivityDisable(kind);
  }
  cupti.cuptiActivityFlushAll(0);
  cupti.cuptiUnsubscribe(subscriber);
  subscriber = nullptr;
}

void wait_for(const std::vector<int>& devices) {
  int current = 0;
  if (cudaGetDevice(&current) != cudaSuccess) {
    return;
  }
  for (const int device : devices) {
    // A launch that failed is reported by whoever launched it.
    if (cudaSetDevice(device) == cudaSuccess) {
      static_cast<void>(cudaDeviceSynchronize());
    }
  }
  static_cast<void>(cudaSetDevice(current));
}

}  // namespace

std::unique_ptr<CuptiActivity> CuptiActivity::start(std::vector<int> devices,
                                                    std::string& why_not) {
  const Cupti* cupti = load_cupti(why_not);
  if (cupti == nullptr) {
    return nullptr;
  }
  if (subscriber != nullptr) {
    why_not = "CUPTI is held by this process: one collection at a time";
    return nullptr;
  }
  // NVTX looks for its listener at its first call.
  setenv("NVTX_INJECTION64_PATH", cupti->path.c_str(), 0);
  if (why_not = subscribe(*cupti); !why_not.empty()) {
    return nullptr;
  }
  store().use(cupti);
  CUptiResult result = cupti->cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  for (const CUpti_ActivityKind kind : kKinds) {
    if (result == CUPTI_SUCCESS) {
      result = cupti->cuptiActivityEnable(kind);
    }
  }
  if (result != CUPTI_SUCCESS) {
    why_not = "CUPTI refuses activity records: " + cupti->text(result);
    stop(*cupti);
    return nullptr;
  }
  return std::unique_ptr<CuptiActivity>(new CuptiActivity(std::move(devices)));
}

CuptiActivity::~CuptiActivity() {
  wait_for(devices_);
  stop(store().cupti());
  store().take();
}

Activity CuptiActivity::collect() {
  wait_for(devices_);
  store().cupti().cuptiActivityFlushAll(0);
  return store().take();
}

std::vector<ClockPing> stamp_pings(const Activity& activity, int device,
                                   const std::vector<std::uint64_t>& stamps) {
  std::vector<ClockPing> pings;
  for (const ActivitySlice& slice : activity.slices) {
    if (slice.device == device && slice.name.find(kClockStampKernel) != std::string::npos &&
        pings.size() < stamps.size()) {
      pings.push_back({slice.begin_ns, stamps[pings.size()], slice.end_ns});
    }
  }
  return pings.size() == stamps.size() ? pings : std::vector<ClockPing>{};
}

}  // namespace fusescope::timeline
