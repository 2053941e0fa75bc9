#pragma once
// CUPTI, looked for when it is wanted: binaries start where there is none. For the collectors of this
// folder; pulls in CUPTI's headers.

#include <cupti.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include <string>

namespace fusescope::timeline {

// What is called of it; the names are CUPTI's.
#define FUSESCOPE_CUPTI_CALLS(X)               \
  X(cuptiGetResultString)                      \
  X(cuptiGetVersion)                           \
  X(cuptiGetTimestamp)                         \
  X(cuptiSubscribe_v2)                         \
  X(cuptiUnsubscribe)                          \
  X(cuptiActivityEnable)                       \
  X(cuptiActivityDisable)                      \
  X(cuptiActivityRegisterCallbacks)            \
  X(cuptiActivityFlushAll)                     \
  X(cuptiActivityGetNextRecord)                \
  X(cuptiActivityGetNumDroppedRecords)         \
  X(cuptiProfilerInitialize)                   \
  X(cuptiProfilerDeInitialize)                 \
  X(cuptiDeviceGetChipName)                    \
  X(cuptiProfilerHostInitialize)               \
  X(cuptiProfilerHostDeinitialize)             \
  X(cuptiProfilerHostConfigAddMetrics)         \
  X(cuptiProfilerHostGetConfigImageSize)       \
  X(cuptiProfilerHostGetConfigImage)           \
  X(cuptiProfilerHostGetNumOfPasses)           \
  X(cuptiProfilerHostEvaluateToGpuValues)      \
  X(cuptiPmSamplingEnable)                     \
  X(cuptiPmSamplingDisable)                    \
  X(cuptiPmSamplingSetConfig)                  \
  X(cuptiPmSamplingStart)                      \
  X(cuptiPmSamplingStop)                       \
  X(cuptiPmSamplingDecodeData)                 \
  X(cuptiPmSamplingGetCounterAvailability)     \
  X(cuptiPmSamplingGetCounterDataSize)         \
  X(cuptiPmSamplingCounterDataImageInitialize) \
  X(cuptiPmSamplingGetCounterDataInfo)         \
  X(cuptiPmSamplingCounterDataGetSampleInfo)

struct Cupti {
  std::string path;  // of the library that was found
// The argument is the member's name: NOLINTNEXTLINE(bugprone-macro-parentheses)
#define FUSESCOPE_CUPTI_POINTER(call) decltype(&::call) call = nullptr;
  FUSESCOPE_CUPTI_CALLS(FUSESCOPE_CUPTI_POINTER)
#undef FUSESCOPE_CUPTI_POINTER

  // "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
  std::string text(CUptiResult result) const;
};

// The library of the major version that this was built against, loaded once: FUSESCOPE_CUPTI if that names
// a file, then where the loader looks, then the toolkit's folders. Null, and the reason in `why_not`, where
// there is none, or one that lacks a call.
const Cupti* load_cupti(std::string& why_not);

}  // namespace fusescope::timeline
