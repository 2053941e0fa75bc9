// gemm_bench: checks the grouped GEMM against the reference, then times it. Prints a table, and the
// same numbers as JSON lines after it.
//
//   gemm_bench [filter] [rest_ms]
//     filter   substring of "case variant form", e.g. "down n256_s4_store g2_c1"; "" is all
//     rest_ms  pause before each batch, so that the power limit bites less (0: sustained load)
//
// Random data; several input sets in turn, together larger than the L2; batches of launches between
// two events, so that launch gaps hide; median and spread over batches; the variants and forms of a
// case take turns, so that the clock's drift hits all of them alike. TFLOP/s count the rows that hold
// something, not their padding.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "gemm_bench_cases.hpp"
#include "gemm_clocks.cuh"
#include "gemm_launch.hpp"
#include "gemm_reference.cuh"

namespace fk = fusescope::kernels;

namespace {

using fk::bench::Case;
using fk::bench::Clock;
using fk::bench::Form;

#define CHECK(call)                                                                        \
  do {                                                                                     \
    const cudaError_t error_ = (call);                                                     \
    if (error_ != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_)); \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (0)

constexpr int kSets = 2;
constexpr int kBatch = 8;
constexpr int kSamples = 15;
constexpr int kWarmUps = 2;

template <class T>
T* device_alloc(std::size_t count) {
  T* pointer = nullptr;
  CHECK(cudaMalloc(&pointer, count * sizeof(T)));
  return pointer;
}

struct InputSet {
  __nv_bfloat16* tokens;  // what rows are gathered from
  __nv_bfloat16* a;       // the same rows, each in its place
  __nv_bfloat16* b;
  __nv_bfloat16* d;
};

struct Bench {
  int sms = 0;
  Clock* before = nullptr;
  Clock* after = nullptr;
  double* sums = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;

  Bench() {
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    before = device_alloc<Clock>(sms);
    after = device_alloc<Clock>(sms);
    sums = device_alloc<double>(2);
  }

  double clock_ghz() const {
    std::vector<Clock> b(sms), a(sms);
    CHECK(cudaMemcpy(b.data(), before, sms * sizeof(Clock), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(a.data(), after, sms * sizeof(Clock), cudaMemcpyDeviceToHost));
    return fk::bench::clock_ghz(b, a);
  }
};

struct Loaded {
  std::vector<InputSet> sets;
  std::int32_t* expert_rows = nullptr;
  std::int32_t* slack = nullptr;
  std::int32_t* token_of_row = nullptr;
  std::uint32_t* next_tile = nullptr;
  std::int64_t rows = 0;  // with padding
  std::int64_t hits = 0;
  bool has_slack = false;  // some row block is half empty
};

template <class T>
T* uploaded(const std::vector<T>& from) {
  T* to = device_alloc<T>(from.size());
  CHECK(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  return to;
}

void load_routing(const Case& c, Loaded& l) {
  const fk::bench::Rows rows = fk::bench::rows_of(c);
  l.rows = rows.expert_rows.back();
  l.hits = rows.hits;
  l.has_slack = *std::max_element(rows.slack.begin(), rows.slack.end()) >= fk::kConsumerRows;
  l.expert_rows = uploaded(rows.expert_rows);
  l.slack = uploaded(rows.slack);
  l.token_of_row = uploaded(rows.token_of_row);
  l.next_tile = uploaded<std::uint32_t>({0});
}

// a[row] = tokens[token of row], one block a row.
__global__ void scatter_tokens(const uint4* tokens, const std::int32_t* token_of_row, int units,
                               uint4* a) {
  const uint4* from = tokens + std::int64_t{token_of_row[blockIdx.x]} * units;
  for (int i = static_cast<int>(threadIdx.x); i < units; i += static_cast<int>(blockDim.x))
    a[std::int64_t{blockIdx.x} * units + i] = from[i];
}

Loaded load(const Case& c) {
  Loaded l;
  load_routing(c, l);
  for (int i = 0; i < kSets; ++i) {
    InputSet s{};
    const std::int64_t tokens = l.hits / fk::bench::kTopk * c.k;
    const std::int64_t b = c.experts * c.n * c.k;
    s.tokens = device_alloc<__nv_bfloat16>(tokens);
    s.a = device_alloc<__nv_bfloat16>(l.rows * c.k);
    s.b = device_alloc<__nv_bfloat16>(b);
    s.d = device_alloc<__nv_bfloat16>(l.rows * c.n);
    fk::reference::fill_random<<<1024, 256>>>(s.tokens, tokens, 2 * i + 1, 1.0f);
    fk::reference::fill_random<<<1024, 256>>>(s.b, b, 2 * i + 2, 0.05f);
    scatter_tokens<<<static_cast<unsigned>(l.rows), 256>>>(
        reinterpret_cast<const uint4*>(s.tokens), l.token_of_row, static_cast<int>(c.k / 8),
        reinterpret_cast<uint4*>(s.a));
    CHECK(cudaGetLastError());
    l.sets.push_back(s);
  }
  return l;
}

void unload(Loaded& l) {
  for (InputSet& s : l.sets) {
    CHECK(cudaFree(s.tokens));
    CHECK(cudaFree(s.a));
    CHECK(cudaFree(s.b));
    CHECK(cudaFree(s.d));
  }
  CHECK(cudaFree(l.expert_rows));
  CHECK(cudaFree(l.slack));
  CHECK(cudaFree(l.token_of_row));
  CHECK(cudaFree(l.next_tile));
}

// Relative Frobenius error over every 37th row. Rows of padding are left out: the output there is NaN
// where it was not written.
double error_of(const Bench& bench, const Case& c, const Loaded& l, const InputSet& s) {
  CHECK(cudaMemset(bench.sums, 0, 2 * sizeof(double)));
  const fk::reference::Problem p{s.a, s.b, l.expert_rows, l.slack,
                                 c.n, c.k, c.experts,     c.epilogue == fk::Epilogue::kSiluMul};
  fk::reference::compare<<<bench.sms * 8, 256>>>(p, s.d, l.rows, 37, bench.sums);
  CHECK(cudaGetLastError());
  double sums[2];
  CHECK(cudaMemcpy(sums, bench.sums, sizeof(sums), cudaMemcpyDeviceToHost));
  return std::sqrt(sums[0] / sums[1]);
}

// One variant on one case: its arguments, and what was measured.
struct Entry {
  fk::GemmVariant variant;
  int workers = 0;
  Form form;
  double error = 0;
  std::vector<fk::GroupedGemmArgs> args;
  std::vector<double> us;
  std::vector<double> ghz;
};

Entry prepare(const Bench& bench, const Case& c, const Loaded& l, const fk::GemmVariant& v,
              const Form& form) {
  Entry entry;
  entry.variant = v;
  entry.workers = bench.sms;
  entry.form = form;
  for (const InputSet& s : l.sets) {
    fk::GroupedGemmDesc desc{l.rows, c.n, c.k, c.experts, s.a, s.b, s.d, l.expert_rows};
    desc.slack = form.slack ? l.slack : nullptr;
    desc.next_tile = form.counter ? l.next_tile : nullptr;
    desc.column_groups = form.column_groups;
    if (v.gathers) {
      desc.a = s.tokens;
      desc.a_rows = l.token_of_row;
    }
    entry.args.push_back(fk::make_grouped_gemm_args(desc, v));
    entry.args.back().block_group = form.block_group;
  }
  CHECK(cudaMemset(l.sets[0].d, 0xFF, l.rows * c.n * 2));
  fk::launch_grouped_gemm(entry.args[0], v, entry.workers, nullptr);
  CHECK(cudaDeviceSynchronize());
  entry.error = error_of(bench, c, l, l.sets[0]);
  return entry;
}

void sample(const Bench& bench, Entry& entry, bool warm_up) {
  fk::bench::read_clocks<<<bench.sms, 1024>>>(bench.before);
  CHECK(cudaEventRecord(bench.begin));
  for (int i = 0; i < kBatch; ++i) {
    fk::launch_grouped_gemm(entry.args[i % kSets], entry.variant, entry.workers, nullptr);
  }
  CHECK(cudaEventRecord(bench.end));
  fk::bench::read_clocks<<<bench.sms, 1024>>>(bench.after);
  CHECK(cudaDeviceSynchronize());
  if (warm_up)
    return;
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, bench.begin, bench.end));
  entry.us.push_back(ms * 1000.0 / kBatch);
  entry.ghz.push_back(bench.clock_ghz());
}

bool print(const Bench& bench, const Case& c, const Loaded& l, Entry& entry, std::string& json) {
  std::sort(entry.us.begin(), entry.us.end());
  std::sort(entry.ghz.begin(), entry.ghz.end());
  const double median = entry.us[entry.us.size() / 2];
  const double clock = entry.ghz[entry.ghz.size() / 2];
  const double tflops = 2.0 * l.hits * c.n * c.k / median * 1e-6;
  const double peak = bench.sms * 4096.0 * clock * 1e-3;  // dense bf16: 4096 FLOP per SM and cycle
  const bool ok = entry.error <= 4e-3;
  const std::string name = fk::to_string(entry.variant);
  std::printf("%-21s %-18s %-22s %9.1f %9.1f %9.1f %8.1f %6.3f %6.1f%% %.2e %s\n", c.name,
              name.c_str(), entry.form.name().c_str(), median, entry.us.front(), entry.us.back(),
              tflops, clock, 100 * tflops / peak, entry.error, ok ? "ok" : "WRONG");
  std::fflush(stdout);
  char line[512];
  std::snprintf(line, sizeof(line),
                "{\"case\":\"%s\",\"variant\":\"%s\",\"form\":\"%s\",\"workers\":%d,"
                "\"rows\":%lld,\"hits\":%lld,"
                "\"median_us\":%.2f,\"min_us\":%.2f,\"max_us\":%.2f,\"samples\":%d,\"batch\":%d,"
                "\"tflops\":%.1f,\"sm_ghz\":%.3f,\"of_clock\":%.4f,\"rel_error\":%.3e}\n",
                c.name, name.c_str(), entry.form.name().c_str(), entry.workers,
                static_cast<long long>(l.rows), static_cast<long long>(l.hits), median,
                entry.us.front(), entry.us.back(), kSamples, kBatch, tflops, clock, tflops / peak,
                entry.error);
  json += line;
  return ok;
}

// Can the form run, and does it differ from the others on this case?
bool is_distinct(const Case& c, const Loaded& l, const fk::GemmVariant& v, const Form& form) {
  const std::int64_t n_tiles = (c.n + v.block_n - 1) / v.block_n;
  return n_tiles % form.column_groups == 0 && (l.has_slack || !form.slack);
}

bool run(const Bench& bench, const Case& c, const std::string& filter, int rest_ms,
         std::string& json) {
  std::vector<Entry> entries;
  Loaded loaded;
  for (const fk::GemmVariant& v : fk::kGemmVariants) {
    if (v.epilogue != c.epilogue)
      continue;
    for (const Form& form : fk::bench::kForms) {
      const std::string name = std::string(c.name) + " " + fk::to_string(v) + " " + form.name();
      if (name.find(filter) == std::string::npos)
        continue;
      if (loaded.sets.empty())
        loaded = load(c);
      if (is_distinct(c, loaded, v, form))
        entries.push_back(prepare(bench, c, loaded, v, form));
    }
  }
  for (int i = -kWarmUps; i < kSamples; ++i) {
    for (Entry& entry : entries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(rest_ms));
      sample(bench, entry, i < 0);
    }
  }
  bool ok = true;
  for (Entry& entry : entries)
    ok &= print(bench, c, loaded, entry, json);
  if (!loaded.sets.empty())
    unload(loaded);
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string filter = argc > 1 ? argv[1] : "";
  const int rest_ms = argc > 2 ? std::atoi(argv[2]) : 0;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "gemm_bench: no CUDA device\n");
    return 2;
  }
  const Bench bench;
  std::string json;
  bool ok = true;
  std::printf("%-21s %-18s %-22s %9s %9s %9s %8s %6s %7s %8s\n", "case", "variant", "form",
              "median us", "min", "max", "TFLOP/s", "GHz", "of clk", "error");
  for (const Case& c : fk::bench::kCases)
    ok &= run(bench, c, filter, rest_ms, json);
  std::printf("%s", json.c_str());
  return ok ? 0 : 1;
}
