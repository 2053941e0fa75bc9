#include "kernels/clock_ping.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/bounded_wait.cuh"
#include "kernels/cuda_check.hpp"

namespace fusescope::kernels {
namespace {

constexpr std::uint64_t kDeadlineNs = 100'000'000;  // of one wait

// In the memory of the device that polls it: requests at the remote one, answers at the local one.
// One writer per word; an answer is its own flag, since no clock shows 0.
using Word = std::uint64_t;

// The word once it has reached `least`; 0: not within the deadline. Nothing but the word itself is read
// on the strength of it, so that no ordering is asked for. A caller's look at the clock comes after the
// poll that saw the word, by the branch in between.
__device__ Word wait_for_word(Word& word, Word least) {
  constexpr unsigned kPollsPerLook = 64;  // at the clock: a look makes the poll after it late
  const std::uint64_t begin = now_ns();
  for (unsigned polls = 1;; ++polls) {
    const Word seen = SystemAtomic<Word>(word).load(cuda::memory_order_relaxed);
    if (seen >= least)
      return seen;
    if (polls % kPollsPerLook == 0 && now_ns() - begin > kDeadlineNs)
      return 0;
  }
}

__global__ void ask_kernel(Word* request, Word* answers, timeline::ClockPing* out, int pings) {
  for (int i = 0; i < pings; ++i) {
    timeline::ClockPing ping;
    ping.sent_ns = now_ns();
    SystemAtomic<Word>(*request).store(static_cast<Word>(i) + 1, cuda::memory_order_relaxed);
    ping.answered_ns = wait_for_word(answers[i], 1);
    ping.received_ns = now_ns();
    if (ping.answered_ns == 0)
      return;  // what was not answered stays 0
    out[i] = ping;
  }
}

__global__ void answer_kernel(Word* request, Word* answers, int pings) {
  for (int i = 0; i < pings; ++i) {
    if (wait_for_word(*request, static_cast<Word>(i) + 1) == 0)
      return;
    SystemAtomic<Word>(answers[i]).store(now_ns(), cuda::memory_order_relaxed);
  }
}

__global__ void timer_step_kernel(std::uint64_t* step) {
  constexpr int kSteps = 64;
  std::uint64_t least = UINT64_MAX;
  std::uint64_t before = now_ns();
  for (int seen = 0; seen < kSteps;) {
    const std::uint64_t now = now_ns();
    if (now != before) {
      least = min(least, now - before);
      before = now;
      ++seen;
    }
  }
  *step = least;
}

__global__ void clock_stamp_kernel(std::uint64_t* stamp) {
  *stamp = now_ns();
}

__global__ void busy_kernel(timeline::ClockSpan* span, std::uint64_t length_ns) {
  const std::uint64_t begin = now_ns();
  std::uint64_t now = begin;
  while (now - begin < length_ns)
    now = now_ns();
  GpuAtomic<std::uint64_t>(span->begin_ns).fetch_min(begin, cuda::memory_order_relaxed);
  GpuAtomic<std::uint64_t>(span->end_ns).fetch_max(now, cuda::memory_order_relaxed);
}

template <class T>
T* zeroed(DeviceBlock& block, std::size_t count) {
  block = allocate_device(count * sizeof(T));
  FUSESCOPE_CUDA(cudaMemset(block.get(), 0, count * sizeof(T)));
  FUSESCOPE_CUDA(cudaDeviceSynchronize());
  return static_cast<T*>(block.get());
}

}  // namespace

std::vector<timeline::ClockPing> ping_clocks(int local, int remote, int pings) {
  const auto count = static_cast<std::size_t>(std::max(pings, 1));
  DeviceBlock request_block;
  DeviceBlock answer_block;
  DeviceBlock out_block;
  Stream answering;
  Word* request = nullptr;
  {
    const OnDevice on(remote);
    request = zeroed<Word>(request_block, 1);
    answering = make_stream();
  }
  const OnDevice on(local);
  Word* answers = zeroed<Word>(answer_block, count);
  auto* out = zeroed<timeline::ClockPing>(out_block, count);
  const Stream asking = make_stream();
  {
    const OnDevice there(remote);
    answer_kernel<<<1, 1, 0, answering.get()>>>(request, answers, static_cast<int>(count));
    FUSESCOPE_CUDA(cudaGetLastError());
  }
  ask_kernel<<<1, 1, 0, asking.get()>>>(request, answers, out, static_cast<int>(count));
  FUSESCOPE_CUDA(cudaGetLastError());
  FUSESCOPE_CUDA(cudaStreamSynchronize(asking.get()));
  {
    const OnDevice there(remote);
    FUSESCOPE_CUDA(cudaStreamSynchronize(answering.get()));
  }
  std::vector<timeline::ClockPing> result(count);
  FUSESCOPE_CUDA(
      cudaMemcpy(result.data(), out, count * sizeof(timeline::ClockPing), cudaMemcpyDeviceToHost));
  if (result.back().received_ns == 0) {
    throw std::runtime_error("devices " + std::to_string(local) + " and " + std::to_string(remote) +
                             " did not exchange their clocks within the deadline");
  }
  return result;
}

std::uint64_t measure_timer_step(int device) {
  const OnDevice on(device);
  DeviceBlock block;
  auto* step = zeroed<std::uint64_t>(block, 1);
  timer_step_kernel<<<1, 1>>>(step);
  FUSESCOPE_CUDA(cudaGetLastError());
  std::uint64_t result = 0;
  FUSESCOPE_CUDA(cudaMemcpy(&result, step, sizeof(result), cudaMemcpyDeviceToHost));
  return result;
}

std::vector<std::uint64_t> stamp_clock(int device, int stamps) {
  const OnDevice on(device);
  const auto count = static_cast<std::size_t>(std::max(stamps, 1));
  DeviceBlock block;
  auto* words = zeroed<std::uint64_t>(block, count);
  for (std::size_t i = 0; i < count; ++i) {
    clock_stamp_kernel<<<1, 1>>>(words + i);
    FUSESCOPE_CUDA(cudaGetLastError());
  }
  std::vector<std::uint64_t> result(count);
  FUSESCOPE_CUDA(
      cudaMemcpy(result.data(), words, count * sizeof(std::uint64_t), cudaMemcpyDeviceToHost));
  return result;
}

timeline::ClockSpan keep_busy(int device, std::uint64_t length_ns) {
  const OnDevice on(device);
  int sms = 0;
  FUSESCOPE_CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  timeline::ClockSpan span{UINT64_MAX, 0};
  const DeviceBlock block = allocate_device(sizeof(span));
  auto* written = static_cast<timeline::ClockSpan*>(block.get());
  FUSESCOPE_CUDA(cudaMemcpy(written, &span, sizeof(span), cudaMemcpyHostToDevice));
  FUSESCOPE_CUDA(cudaDeviceSynchronize());
  busy_kernel<<<sms, 1>>>(written, length_ns);
  FUSESCOPE_CUDA(cudaGetLastError());
  FUSESCOPE_CUDA(cudaMemcpy(&span, written, sizeof(span), cudaMemcpyDeviceToHost));
  return span;
}

}  // namespace fusescope::kernels
