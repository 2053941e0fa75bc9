#include "engine/cuda/projection/runner.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "base/error.hpp"

namespace fusescope::engine::cuda::projection {
namespace {

std::vector<Device> in_use(const std::vector<Device>& devices, int ranks) {
  const std::vector<int> of_rank = devices_of_ranks(devices, ranks);
  std::vector<Device> used;
  std::copy_if(devices.begin(), devices.end(), std::back_inserter(used), [&](const Device& d) {
    return std::find(of_rank.begin(), of_rank.end(), d.index) != of_rank.end();
  });
  enable_peer_access(used);
  return used;
}

// A step of clearing up, where an error is on its way already: this step's own is only told.
template <class Step>
void attempt(Step step) {
  try {
    step();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fusescope: while clearing up: %s\n", error.what());
  }
}

// However a launch thread's part ends, the others do not wait for it.
struct Leave {
  std::barrier<>& barrier;
  ~Leave() { barrier.arrive_and_drop(); }
};

}  // namespace

Runner::Runner(const Shape& shape, const std::vector<Device>& devices, Options options)
    : deadline_ns_(options.deadline_ns),
      devices_(in_use(devices, shape.ranks)),
      memory_(shape, devices_of_ranks(devices, shape.ranks), options.seed, options.deadline_ns),
      check_(memory_),
      threads_(std::make_unique<LaunchThreads>(static_cast<int>(devices_.size()),
                                               make_current(devices_))) {
  for (const Device& device : devices_) {
    const kernels::OnDevice on(device.index);
    DeviceRun run;
    run.lane.device = device.index;
    run.lane.main = kernels::make_stream();
    run.begin = kernels::make_event();
    run.end = kernels::make_event();
    runs_.push_back(std::move(run));
  }
}

void Runner::configure(const Config& config, const Faults& faults) {
  prepare(config, faults, false);
}

void Runner::configure_recorded(const Config& config) {
  prepare(config, {}, true);
}

void Runner::prepare(const Config& wanted, const Faults& faults, bool recorded) {
  const Config config = with_gemm_chosen(wanted, limits_of(devices_.front()));
  config_ = config;
  plans_.clear();
  for (int r = 0; r < memory_.ranks(); ++r) {
    plans_.push_back(make_plan(memory_, r, config, devices_.front().sms, faults));
  }
  records_ = recorded ? std::make_unique<Records>(memory_, plans_) : nullptr;
  for (DeviceRun& run : runs_) {
    run.lane.nccl = config.form == LayerForm::serial ? nccl_ : nullptr;
    run.lane.ranks.clear();
    for (int r = 0; r < memory_.ranks(); ++r) {
      if (memory_.rank(r).device == run.lane.device && r != faults.dead_rank) {
        run.lane.ranks.push_back(r);
      }
    }
  }
  arrange_inputs();
  build_graphs();
}

void Runner::arrange_inputs() {
  for (int r = 0; r < memory_.ranks(); ++r) {
    const Rank& rank = memory_.rank(r);
    const kernels::OnDevice on(rank.device);
    memory_.arrange(r, row_order(config_), rank.x, rank.rows, nullptr);
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
  }
}

void Runner::set_input(std::uint64_t seed) {
  memory_.set_input(seed);
  arrange_inputs();
  check_.forget_reference();
}

// Every kernel is captured once before it first runs, with graphs or without, because that loads it:
// loading may wait for the device, and must not wait behind a kernel that waits for a peer.
//
// On the launch threads, because NCCL may want all ranks' calls at once.
void Runner::build_graphs() {
  threads_->run([this](int i) {
    DeviceRun& run = runs_[static_cast<std::size_t>(i)];
    run.graph.reset();
    capture(run, &Iteration::enqueue_start_line);
    kernels::GraphExec graph = capture(run, &Iteration::enqueue);
    if (config_.graph) {
      FUSESCOPE_CUDA(cudaGraphUpload(graph.get(), run.lane.main.get()));
      run.graph = std::move(graph);
    }
  });
}

kernels::GraphExec Runner::capture(DeviceRun& run, void (Iteration::*step)() const) const {
  const Iteration iteration(plans_, config_, run.lane);
  cudaStream_t stream = run.lane.main.get();
  FUSESCOPE_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t captured = nullptr;
  try {
    (iteration.*step)();
  } catch (...) {
    // Leaves capture mode; what was captured so far is of no use.
    FUSESCOPE_CUDA_NOEXCEPT(cudaStreamEndCapture(stream, &captured));
    const kernels::Graph discard(captured);
    throw;
  }
  FUSESCOPE_CUDA(cudaStreamEndCapture(stream, &captured));
  const kernels::Graph graph(captured);
  cudaGraphExec_t executable = nullptr;
  FUSESCOPE_CUDA(cudaGraphInstantiate(&executable, graph.get(), 0));
  return kernels::GraphExec(executable);
}

// `in_step`: of the launch threads. None enqueues its iteration before all have enqueued their start lines:
// a launch may block until the stream has room, inside the driver, where it keeps other threads from
// launching; and the room comes only when the peers reach the start line.
void Runner::launch(DeviceRun& run, std::barrier<>& in_step) {
  cudaStream_t stream = run.lane.main.get();
  const bool held = run.lane.ranks.size() <= StartLine::kMostRanksHeld;
  {
    const Leave leave{in_step};
    for (const int rank : run.lane.ranks) {
      if (records_ != nullptr) {
        records_->enqueue_clear(rank, stream);
      }
    }
    Iteration(plans_, config_, run.lane).enqueue_start_line();
    FUSESCOPE_CUDA(cudaEventRecord(run.begin.get(), stream));
    if (!held) {
      run.lane.start.release();
    }
    in_step.arrive_and_wait();
  }
  launch_iteration(run);
  FUSESCOPE_CUDA(cudaEventRecord(run.end.get(), stream));
  if (held) {
    run.lane.start.release();
  }
  await(run, 1);
}

void Runner::launch_iteration(DeviceRun& run) {
  if (run.graph) {
    FUSESCOPE_CUDA(cudaGraphLaunch(run.graph.get(), run.lane.main.get()));
  } else {
    Iteration(plans_, config_, run.lane).enqueue();
  }
}

// Until what is on the stream has ended. The waits of the project's own kernels end by themselves; NCCL's
// do not, when a peer has not come as far.
void Runner::await(DeviceRun& run, int iterations) {
  cudaStream_t stream = run.lane.main.get();
  if (run.lane.nccl != nullptr) {
    const std::chrono::nanoseconds most(static_cast<std::int64_t>(deadline_ns_) * (2 + iterations));
    const auto begin = std::chrono::steady_clock::now();
    while (cudaStreamQuery(stream) == cudaErrorNotReady) {
      if (std::chrono::steady_clock::now() - begin > most) {
        run.graph.reset();  // NCCL ends when no graph holds its collectives
        nccl_->abort();
        FUSESCOPE_CUDA(cudaStreamSynchronize(stream));
        throw CheckFailure("the launch was aborted: device " + std::to_string(run.lane.device) +
                               " did not end within " + std::to_string(most.count() / 1'000'000) +
                               " ms, in or before a collective of NCCL: is a peer missing?",
                           CheckFailure::Kind::aborted);
      }
      std::this_thread::yield();
    }
    static_cast<void>(cudaGetLastError());  // "not ready" is no error to carry on
  }
  FUSESCOPE_CUDA(cudaStreamSynchronize(stream));
}

Sample Runner::run_once() {
  std::barrier<> in_step(lanes_taking_part());
  on_lanes([&](DeviceRun& run) { launch(run, in_step); });
  return read_sample();
}

std::ptrdiff_t Runner::lanes_taking_part() const {
  return std::count_if(runs_.begin(), runs_.end(),
                       [](const DeviceRun& run) { return !run.lane.ranks.empty(); });
}

// The launch threads keep in step with each other, not with the devices: a launch may block until a full
// queue has room again, and whatever it holds meanwhile, what the queue's head waits for has been
// enqueued by the other threads before.
void Runner::run_back_to_back(const Staged& staged) {
  std::barrier<> in_step(lanes_taking_part());
  on_lanes([&](DeviceRun& run) {
    cudaStream_t stream = run.lane.main.get();
    {
      const Leave leave{in_step};
      for (int i = 0; i < staged.iterations(); ++i) {
        in_step.arrive_and_wait();
        for (const int rank : run.lane.ranks) {
          staged.enqueue_input(rank, i, stream);
        }
        launch_iteration(run);
        for (const int rank : run.lane.ranks) {
          staged.enqueue_keep(rank, i, stream);
        }
      }
    }
    await(run, staged.iterations());
  });
  arrange_inputs();
}

// `work` on the launch thread of every device that takes part, and then what the devices reported.
void Runner::on_lanes(const std::function<void(DeviceRun&)>& work) {
  try {
    threads_->run([&](int i) {
      DeviceRun& run = runs_[static_cast<std::size_t>(i)];
      if (!run.lane.ranks.empty()) {
        work(run);
      }
    });
  } catch (...) {
    abandon();
    throw;
  }
  if (const std::string reported = failure(); !reported.empty()) {
    memory_.reset_protocol();
    throw CheckFailure("the launch was aborted: " + reported, CheckFailure::Kind::aborted);
  }
}

// After a launch failed: the devices may still be at work for one that did not, on this runner's memory
// and streams. Waits for them, and clears the protocol where that is still possible.
void Runner::abandon() {
  for (const Device& device : devices_) {
    attempt([&] {
      const kernels::OnDevice on(device.index);
      FUSESCOPE_CUDA(cudaDeviceSynchronize());
    });
  }
  if (const std::string reported = failure(); !reported.empty()) {
    std::fprintf(stderr, "fusescope: %s\n", reported.c_str());
  }
  attempt([&] { memory_.reset_protocol(); });
}

std::string Runner::failure() const {
  std::string text;
  for (const kernels::Diagnosis& diagnosis : memory_.diagnoses()) {
    text += (text.empty() ? "" : "; ") + to_string(diagnosis);
  }
  return text;
}

Sample Runner::read_sample() const {
  Sample sample;
  sample.rank_wall_us.assign(static_cast<std::size_t>(memory_.ranks()), 0.0);
  double cycles = 0;
  double ns = 0;
  for (const DeviceRun& run : runs_) {
    if (run.lane.ranks.empty()) {
      continue;
    }
    float ms = 0;
    FUSESCOPE_CUDA(cudaEventElapsedTime(&ms, run.begin.get(), run.end.get()));
    for (const int r : run.lane.ranks) {
      sample.rank_wall_us[static_cast<std::size_t>(r)] = 1e3 * static_cast<double>(ms);
      const kernels::ClockStamp& stamp = memory_.rank(r).words->clock[0];
      cycles += static_cast<double>(stamp.end_cycles - stamp.begin_cycles);
      ns += static_cast<double>(stamp.end_ns - stamp.begin_ns);
    }
  }
  sample.wall_us = *std::max_element(sample.rank_wall_us.begin(), sample.rank_wall_us.end());
  sample.sm_clock_mhz = ns > 0 ? 1e3 * cycles / ns : 0;
  return sample;
}

}  // namespace fusescope::engine::cuda::projection
