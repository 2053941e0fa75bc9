// The SM clock of a stretch of work: cycles over nanoseconds on every SM, read before and after it.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

namespace fusescope::kernels::bench {

struct Clock {
  long long cycles;
  unsigned long long ns;
};

// Launched with at least as many blocks of 1024 threads as there are SMs, it reaches each of them.
__global__ void read_clocks(Clock* per_sm) {
  unsigned sm = 0;
  unsigned long long ns = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  per_sm[sm] = {clock64(), ns};
}

// Median over the SMs that both readings reached. [GHz]
inline double clock_ghz(const std::vector<Clock>& before, const std::vector<Clock>& after) {
  std::vector<double> ghz;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].ns != 0 && after[i].ns > before[i].ns) {
      ghz.push_back(static_cast<double>(after[i].cycles - before[i].cycles) /
                    static_cast<double>(after[i].ns - before[i].ns));
    }
  }
  if (ghz.empty())
    return 0;
  std::sort(ghz.begin(), ghz.end());
  return ghz[ghz.size() / 2];
}

}  // namespace fusescope::kernels::bench
