#include "timeline/collect/pm_sampling.hpp"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "base/error.hpp"
#include "timeline/collect/cupti_library.hpp"

namespace fusescope::timeline {
namespace {

std::vector<const char*> metric_names() {
  std::vector<const char*> names;
  for (const PmMetric& metric : pm_metrics()) {
    names.push_back(metric.metric);
  }
  return names;
}

// A parameter block with its size filled in, as every call of the profiler wants it.
template <class Params>
Params sized(std::size_t bytes) {
  Params params = {};
  params.structSize = bytes;
  return params;
}

}  // namespace

const std::vector<PmMetric>& pm_metrics() {
  static const std::vector<PmMetric> kMetrics = {
      {kSmsActive, "SMs active", "%", false},
      {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", "tensor pipe active", "%",
       false},
      {"nvltx__bytes.sum", "NVLink sent", "GB/s", true},
      {"nvlrx__bytes.sum", "NVLink received", "GB/s", true},
      {"nvltx__bytes_packet_request_data_user.sum", "NVLink sent: writes", "GB/s", true},
      {"nvltx__bytes_packet_response_data_user.sum", "NVLink sent: read by others", "GB/s", true},
      {"nvlrx__bytes_packet_request_data_user.sum", "NVLink received: writes", "GB/s", true},
      {"nvlrx__bytes_packet_response_data_user.sum", "NVLink received: reads", "GB/s", true},
      {"dram__bytes_read.sum", "DRAM read", "GB/s", true},
      {"dram__bytes_write.sum", "DRAM written", "GB/s", true},
  };
  return kMetrics;
}

std::size_t pm_metric(std::string_view metric) {
  for (std::size_t i = 0; i < pm_metrics().size(); ++i) {
    if (pm_metrics()[i].metric == metric) {
      return i;
    }
  }
  throw std::invalid_argument("not a sampled metric: " + std::string(metric));
}

namespace {

// The profiler of the process, which the samplers of all devices share: the last one ends it.
class Profiler {
 public:
  static std::shared_ptr<Profiler> share(const Cupti& cupti, CUptiResult& result) {
    static std::mutex mutex;
    static std::weak_ptr<Profiler> shared;
    const std::lock_guard lock(mutex);
    std::shared_ptr<Profiler> profiler = shared.lock();
    result = CUPTI_SUCCESS;
    if (!profiler) {
      auto params =
          sized<CUpti_Profiler_Initialize_Params>(CUpti_Profiler_Initialize_Params_STRUCT_SIZE);
      result = cupti.cuptiProfilerInitialize(&params);
      if (result == CUPTI_SUCCESS) {
        profiler.reset(new Profiler(cupti));
        shared = profiler;
      }
    }
    return profiler;
  }
  ~Profiler() {
    auto params =
        sized<CUpti_Profiler_DeInitialize_Params>(CUpti_Profiler_DeInitialize_Params_STRUCT_SIZE);
    cupti_.cuptiProfilerDeInitialize(&params);
  }
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

 private:
  explicit Profiler(const Cupti& cupti) : cupti_(cupti) {}
  const Cupti& cupti_;
};

}  // namespace

struct PmSampling::State {
  const Cupti* cupti = nullptr;
  int device = 0;
  PmSamplingOptions options;
  std::shared_ptr<Profiler> profiler;
  CUpti_Profiler_Host_Object* host = nullptr;
  CUpti_PmSampling_Object* sampling = nullptr;
  std::vector<std::uint8_t> availability;  // outlives the host object, which may look into it
  std::vector<std::uint8_t> config;
  std::vector<std::uint8_t> counters;

  ~State() {
    disable();
    if (host != nullptr) {
      auto params = sized<CUpti_Profiler_Host_Deinitialize_Params>(
          CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE);
      params.pHostObject = host;
      cupti->cuptiProfilerHostDeinitialize(&params);
    }
  }

  void disable() {
    if (sampling != nullptr) {
      auto params =
          sized<CUpti_PmSampling_Disable_Params>(CUpti_PmSampling_Disable_Params_STRUCT_SIZE);
      params.pPmSamplingObject = std::exchange(sampling, nullptr);
      cupti->cuptiPmSamplingDisable(&params);
    }
  }

  // "", or which call was refused and how.
  std::string ask(CUptiResult result, const char* what) const {
    if (result == CUPTI_SUCCESS) {
      return "";
    }
    std::string text = std::string("PM sampling of device ") + std::to_string(device) + ": " +
                       what + ": " + cupti->text(result);
    if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES) {
      text +=
          "; the driver keeps performance counters to administrators "
          "(NVreg_RestrictProfilingToAdminUsers=0 opens them)";
    }
    return text;
  }
  static void insist(const std::string& why_not) {
    if (!why_not.empty()) {
      throw CheckFailure(why_not);
    }
  }
  void insist(CUptiResult result, const char* what) const { insist(ask(result, what)); }

  std::string open() {
    CUptiResult initialised = CUPTI_SUCCESS;
    profiler = Profiler::share(*cupti, initialised);
    if (auto why = ask(initialised, "initialise"); !why.empty()) {
      return why;
    }
    auto chip = sized<CUpti_Device_GetChipName_Params>(CUpti_Device_GetChipName_Params_STRUCT_SIZE);
    chip.deviceIndex = static_cast<std::size_t>(device);
    if (auto why = ask(cupti->cuptiDeviceGetChipName(&chip), "chip name"); !why.empty()) {
      return why;
    }
    auto available = sized<CUpti_PmSampling_GetCounterAvailability_Params>(
        CUpti_PmSampling_GetCounterAvailability_Params_STRUCT_SIZE);
    available.deviceIndex = static_cast<std::size_t>(device);
    if (auto why = ask(cupti->cuptiPmSamplingGetCounterAvailability(&available), "counters");
        !why.empty()) {
      return why;
    }
    availability.resize(available.counterAvailabilityImageSize);
    available.pCounterAvailabilityImage = availability.data();
    if (auto why = ask(cupti->cuptiPmSamplingGetCounterAvailability(&available), "counters");
        !why.empty()) {
      return why;
    }
    return schedule(chip.pChipName);
  }

  // Which counters the metrics need, and whether one pass has room for them.
  std::string schedule(const char* chip) {
    auto initialize = sized<CUpti_Profiler_Host_Initialize_Params>(
        CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE);
    initialize.profilerType = CUPTI_PROFILER_TYPE_PM_SAMPLING;
    initialize.pChipName = chip;
    initialize.pCounterAvailabilityImage = availability.data();
    if (auto why = ask(cupti->cuptiProfilerHostInitialize(&initialize), "metrics of the chip");
        !why.empty()) {
      return why;
    }
    host = initialize.pHostObject;
    std::vector<const char*> names = metric_names();
    auto add = sized<CUpti_Profiler_Host_ConfigAddMetrics_Params>(
        CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE);
    add.pHostObject = host;
    add.ppMetricNames = names.data();
    add.numMetrics = names.size();
    if (auto why = ask(cupti->cuptiProfilerHostConfigAddMetrics(&add), "add metrics");
        !why.empty()) {
      return why;
    }
    auto size = sized<CUpti_Profiler_Host_GetConfigImageSize_Params>(
        CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE);
    size.pHostObject = host;
    if (auto why = ask(cupti->cuptiProfilerHostGetConfigImageSize(&size), "config size");
        !why.empty()) {
      return why;
    }
    config.resize(size.configImageSize);
    auto image = sized<CUpti_Profiler_Host_GetConfigImage_Params>(
        CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE);
    image.pHostObject = host;
    image.configImageSize = config.size();
    image.pConfigImage = config.data();
    if (auto why = ask(cupti->cuptiProfilerHostGetConfigImage(&image), "config"); !why.empty()) {
      return why;
    }
    auto passes = sized<CUpti_Profiler_Host_GetNumOfPasses_Params>(
        CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE);
    passes.configImageSize = config.size();
    passes.pConfigImage = config.data();
    if (auto why = ask(cupti->cuptiProfilerHostGetNumOfPasses(&passes), "passes"); !why.empty()) {
      return why;
    }
    return passes.numOfPasses == 1
               ? ""
               : "PM sampling: the metrics take " + std::to_string(passes.numOfPasses) +
                     " passes on this GPU, and samples are one";
  }

  std::string enable() {
    auto enabled =
        sized<CUpti_PmSampling_Enable_Params>(CUpti_PmSampling_Enable_Params_STRUCT_SIZE);
    enabled.deviceIndex = static_cast<std::size_t>(device);
    if (auto why = ask(cupti->cuptiPmSamplingEnable(&enabled), "enable"); !why.empty()) {
      return why;
    }
    sampling = enabled.pPmSamplingObject;
    auto set =
        sized<CUpti_PmSampling_SetConfig_Params>(CUpti_PmSampling_SetConfig_Params_STRUCT_SIZE);
    set.pPmSamplingObject = sampling;
    set.configSize = config.size();
    set.pConfig = config.data();
    set.hardwareBufferSize = options.hardware_bytes;
    set.samplingInterval = options.interval_ns;
    set.triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
    set.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
    if (auto why = ask(cupti->cuptiPmSamplingSetConfig(&set), "configure"); !why.empty()) {
      return why;
    }
    std::vector<const char*> names = metric_names();
    auto size = sized<CUpti_PmSampling_GetCounterDataSize_Params>(
        CUpti_PmSampling_GetCounterDataSize_Params_STRUCT_SIZE);
    size.pPmSamplingObject = sampling;
    size.pMetricNames = names.data();
    size.numMetrics = names.size();
    size.maxSamples = options.most_samples;
    if (auto why = ask(cupti->cuptiPmSamplingGetCounterDataSize(&size), "counter data size");
        !why.empty()) {
      return why;
    }
    counters.resize(size.counterDataSize);
    return clear();
  }

  std::string clear() {
    auto clear = sized<CUpti_PmSampling_CounterDataImage_Initialize_Params>(
        CUpti_PmSampling_CounterDataImage_Initialize_Params_STRUCT_SIZE);
    clear.pPmSamplingObject = sampling;
    clear.counterDataSize = counters.size();
    clear.pCounterData = counters.data();
    return ask(cupti->cuptiPmSamplingCounterDataImageInitialize(&clear), "clear");
  }

  void evaluate(PmSamples& result) {
    std::vector<const char*> names = metric_names();
    auto info = sized<CUpti_PmSampling_GetCounterDataInfo_Params>(
        CUpti_PmSampling_GetCounterDataInfo_Params_STRUCT_SIZE);
    info.pCounterDataImage = counters.data();
    info.counterDataImageSize = counters.size();
    insist(cupti->cuptiPmSamplingGetCounterDataInfo(&info), "samples");
    for (std::size_t i = 0; i < info.numCompletedSamples; ++i) {
      auto times = sized<CUpti_PmSampling_CounterData_GetSampleInfo_Params>(
          CUpti_PmSampling_CounterData_GetSampleInfo_Params_STRUCT_SIZE);
      times.pPmSamplingObject = sampling;
      times.pCounterDataImage = counters.data();
      times.counterDataImageSize = counters.size();
      times.sampleIndex = i;
      insist(cupti->cuptiPmSamplingCounterDataGetSampleInfo(&times), "a sample's time");
      const bool is_first = i == 0;
      if (is_first || times.startTimestamp >= times.endTimestamp) {
        continue;
      }
      PmSample sample{times.startTimestamp, times.endTimestamp, std::vector<double>(names.size())};
      auto evaluate = sized<CUpti_Profiler_Host_EvaluateToGpuValues_Params>(
          CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE);
      evaluate.pHostObject = host;
      evaluate.pCounterDataImage = counters.data();
      evaluate.counterDataImageSize = counters.size();
      evaluate.rangeIndex = i;
      evaluate.ppMetricNames = names.data();
      evaluate.numMetrics = names.size();
      evaluate.pMetricValues = sample.values.data();
      insist(cupti->cuptiProfilerHostEvaluateToGpuValues(&evaluate), "a sample's values");
      result.samples.push_back(std::move(sample));
    }
  }
};

PmSampling::PmSampling(std::unique_ptr<State> state) : state_(std::move(state)) {}
PmSampling::~PmSampling() = default;

std::unique_ptr<PmSampling> PmSampling::make(int device, std::string& why_not,
                                             const PmSamplingOptions& options) {
  auto state = std::make_unique<State>();
  state->cupti = load_cupti(why_not);
  state->device = device;
  state->options = options;
  if (state->cupti == nullptr) {
    return nullptr;
  }
  why_not = state->open();
  if (why_not.empty()) {
    why_not = state->enable();
  }
  if (!why_not.empty()) {
    return nullptr;
  }
  return std::unique_ptr<PmSampling>(new PmSampling(std::move(state)));
}

void PmSampling::start() {
  auto params = sized<CUpti_PmSampling_Start_Params>(CUpti_PmSampling_Start_Params_STRUCT_SIZE);
  params.pPmSamplingObject = state_->sampling;
  state_->insist(state_->cupti->cuptiPmSamplingStart(&params), "start");
}

void PmSampling::stop() {
  auto params = sized<CUpti_PmSampling_Stop_Params>(CUpti_PmSampling_Stop_Params_STRUCT_SIZE);
  params.pPmSamplingObject = state_->sampling;
  state_->insist(state_->cupti->cuptiPmSamplingStop(&params), "stop");
}

PmSamples PmSampling::read() {
  PmSamples result;
  result.device = state_->device;
  auto decode =
      sized<CUpti_PmSampling_DecodeData_Params>(CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE);
  decode.pPmSamplingObject = state_->sampling;
  decode.pCounterDataImage = state_->counters.data();
  decode.counterDataImageSize = state_->counters.size();
  const CUptiResult decoded = state_->cupti->cuptiPmSamplingDecodeData(&decode);
  // cupti_pmsampling.h: "if there is record overflow in the hardware buffer".
  if (decoded == CUPTI_ERROR_OUT_OF_MEMORY || decode.overflow != 0) {
    result.overflow = true;
    state_->disable();
    state_->insist(state_->enable());
    return result;
  }
  state_->insist(decoded, "decode");
  result.overflow =
      decode.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
  state_->evaluate(result);
  state_->insist(state_->clear());
  std::stable_sort(result.samples.begin(), result.samples.end(),
                   [](const PmSample& a, const PmSample& b) { return a.begin_ns < b.begin_ns; });
  return result;
}

}  // namespace fusescope::timeline
