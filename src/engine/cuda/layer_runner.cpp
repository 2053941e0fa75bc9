#include "engine/cuda/layer_runner.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "base/error.hpp"
#include "engine/cuda/staged_runs.hpp"
#include "engine/cuda/verifier.hpp"
#include "layer/gemm_path.hpp"
#include "timeline/collect/nvtx.hpp"

namespace fusescope::engine::cuda {
namespace {

std::vector<Device> in_use(const std::vector<Device>& devices, const std::vector<int>& of_rank) {
  std::vector<Device> used;
  for (const Device& d : devices) {
    if (std::find(of_rank.begin(), of_rank.end(), d.index) != of_rank.end()) {
      used.push_back(d);
    }
  }
  return used;
}

std::vector<Device> with_peer_access(std::vector<Device> devices) {
  enable_peer_access(devices);
  return devices;
}

// A step of clearing up, where an error may be on its way already: this step's own is only told.
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

LayerRunner::LayerRunner(const Problem& problem, const std::vector<Device>& devices,
                         Options options)
    : deadline_ns_(options.deadline_ns),
      devices_(with_peer_access(in_use(devices, devices_of_ranks(devices, problem.shape.ranks)))),
      memory_(problem, devices_of_ranks(devices, problem.shape.ranks), options.seed,
              options.deadline_ns),
      threads_(std::make_unique<LaunchThreads>(static_cast<int>(devices_.size()),
                                               make_current(devices_))),
      verifier_(std::make_unique<Verifier>(memory_, problem.routing)) {
  for (const Device& device : devices_) {
    const kernels::OnDevice on(device.index);
    DeviceRun run;
    run.lane.device = device.index;
    run.lane.main = kernels::make_stream();
    run.lane.branch = kernels::make_stream();
    run.lane.fork = kernels::make_event(cudaEventDisableTiming);
    run.lane.join = kernels::make_event(cudaEventDisableTiming);
    run.begin = kernels::make_event();
    run.end = kernels::make_event();
    runs_.push_back(std::move(run));
  }
}

LayerRunner::~LayerRunner() = default;

void LayerRunner::configure(const Config& wanted, const Faults& faults) {
  const Config config = with_gemm_chosen(wanted, limits_of(devices_.front()));
  config_ = config;
  for (DeviceRun& run : runs_) {
    run.recorded_graph.reset();
  }
  recorded_plans_.clear();
  records_.reset();
  plans_.clear();
  for (int r = 0; r < memory_.ranks(); ++r) {
    plans_.push_back(make_plan(memory_, r, config, devices_.front().sms, faults));
  }
  for (DeviceRun& run : runs_) {
    const kernels::OnDevice on(run.lane.device);
    run.lane.nccl = config.form == LayerForm::serial ? nccl_ : nullptr;
    run.lane.ranks.clear();
    for (int r = 0; r < memory_.ranks(); ++r) {
      if (memory_.rank(r).device == run.lane.device && r != faults.dead_rank) {
        run.lane.ranks.push_back(r);
      }
    }
  }
  build_graphs();
}

// Every kernel is captured once before it first runs, with graphs or without, because that loads it:
// loading may wait for the device, and must not wait behind a kernel that waits for a peer.
//
// On the launch threads, because NCCL may want all ranks' calls at once.
void LayerRunner::build_graphs() {
  threads_->run([this](int i) {
    DeviceRun& run = runs_[static_cast<std::size_t>(i)];
    run.graph.reset();
    capture(run, plans_, &Iteration::enqueue_preparation);
    capture(run, plans_, &Iteration::enqueue_start_line);
    keep_graph(run, &DeviceRun::graph, capture(run, plans_, &Iteration::enqueue));
  });
}

void LayerRunner::keep_graph(DeviceRun& run, kernels::GraphExec DeviceRun::*graph,
                             kernels::GraphExec captured) {
  if (config_.graph) {
    FUSESCOPE_CUDA(cudaGraphUpload(captured.get(), run.lane.main.get()));
    run.*graph = std::move(captured);
  }
}

void LayerRunner::prepare_records(int most_per_writer) {
  for (DeviceRun& run : runs_) {
    run.recorded_graph.reset();  // writes into the buffers that there are
  }
  records_.reset();
  recorded_plans_ = plans_;
  records_ = std::make_unique<RecordMemory>(memory_, recorded_plans_, most_per_writer);
  threads_->run([this](int i) {
    DeviceRun& run = runs_[static_cast<std::size_t>(i)];
    keep_graph(run, &DeviceRun::recorded_graph, capture(run, recorded_plans_, &Iteration::enqueue));
  });
}

std::vector<std::vector<PhaseTime>> LayerRunner::time_phases(std::chrono::milliseconds rest) {
  // However this ends, later iterations record nothing.
  struct Unmark {
    LayerRunner& runner;
    ~Unmark() {
      runner.marked_ = false;
      attempt([&] { runner.build_graphs(); });
    }
  };
  const Unmark unmark{*this};
  marked_ = true;
  build_graphs();
  for (int i = 0; i < 2; ++i) {
    run_once(rest);
  }
  std::vector<std::vector<PhaseTime>> phases;
  for (const DeviceRun& run : runs_) {
    phases.push_back(run.marks.read());
  }
  return phases;
}

kernels::GraphExec LayerRunner::capture(DeviceRun& run, const std::vector<RankPlan>& plans,
                                        void (Iteration::*step)() const) const {
  const Iteration iteration(memory_, config_, plans, run.lane, marked_ ? &run.marks : nullptr);
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
// a launch may block until the stream has room, which comes only when the peers reach the start line.
// Should the driver keep other threads from launching meanwhile, they would never get there.
void LayerRunner::launch(DeviceRun& run, const Form& form, std::barrier<>& in_step) {
  const timeline::NvtxRange range(timeline::RangeLevel::iteration,
                                  form.recorded ? "recorded iteration" : "iteration", iterations_);
  cudaStream_t stream = run.lane.main.get();
  const bool held = run.lane.ranks.size() <= StartLine::kMostRanksHeld;
  {
    const Leave leave{in_step};
    if (form.recorded) {
      for (const int rank : run.lane.ranks) {
        records_->enqueue_clear(rank, stream);
      }
    }
    const Iteration iteration(memory_, config_, form.plans, run.lane, nullptr);
    iteration.enqueue_preparation();
    iteration.enqueue_start_line();
    FUSESCOPE_CUDA(cudaEventRecord(run.begin.get(), stream));
    if (!held) {
      run.lane.start.release();
    }
    in_step.arrive_and_wait();
  }
  launch_iteration(run, form);
  FUSESCOPE_CUDA(cudaEventRecord(run.end.get(), stream));
  if (held) {
    run.lane.start.release();
  }
  await(run, 1);
}

void LayerRunner::launch_iteration(DeviceRun& run, const Form& form) {
  if (run.*form.graph) {
    FUSESCOPE_CUDA(cudaGraphLaunch((run.*form.graph).get(), run.lane.main.get()));
  } else {
    Iteration(memory_, config_, form.plans, run.lane, marked_ ? &run.marks : nullptr).enqueue();
  }
}

// Until what is on the stream has ended. The waits of the project's own kernels end by themselves; NCCL's
// do not, when a peer has not come as far.
void LayerRunner::await(DeviceRun& run, int iterations) {
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

Sample LayerRunner::run_once(std::chrono::milliseconds rest) {
  std::this_thread::sleep_for(rest);
  return run(plain());
}

Sample LayerRunner::run_recorded() {
  return run(recorded());
}

Sample LayerRunner::run(const Form& form) {
  std::barrier<> in_step(lanes_taking_part());
  on_lanes([&](DeviceRun& run) { launch(run, form, in_step); });
  ++iterations_;
  return read_sample();
}

std::ptrdiff_t LayerRunner::lanes_taking_part() const {
  return std::count_if(runs_.begin(), runs_.end(),
                       [](const DeviceRun& run) { return !run.lane.ranks.empty(); });
}

// A stream orders each copy of its device between the iterations; the devices run as far apart as the
// iteration's own barriers let them. The launch threads keep in step with each other, not with the
// devices: a launch may block until a full queue has room again, and whatever it holds meanwhile, what
// the queue's head waits for has been enqueued by the other threads before.
void LayerRunner::run_back_to_back(const StagedRuns& staged) {
  std::barrier<> in_step(lanes_taking_part());
  on_lanes([&](DeviceRun& run) {
    {
      const Leave leave{in_step};
      for (int i = 0; i < staged.iterations(); ++i) {
        in_step.arrive_and_wait();
        enqueue_staged(run, staged, i);
      }
    }
    await(run, staged.iterations());
  });
  verifier_->set_routing(staged.feed(staged.iterations() - 1).routing);
}

void LayerRunner::enqueue_staged(DeviceRun& run, const StagedRuns& staged, int iteration) {
  cudaStream_t stream = run.lane.main.get();
  for (const int rank : run.lane.ranks) {
    staged.enqueue_feed(rank, iteration, stream);
  }
  launch_iteration(run, plain());
  for (const int rank : run.lane.ranks) {
    staged.enqueue_keep(rank, iteration, stream);
  }
}

// `work` on the launch thread of every device that takes part, and then what the devices reported.
void LayerRunner::on_lanes(const std::function<void(DeviceRun&)>& work) {
  try {
    threads_->run([&](int i) {
      DeviceRun& run = runs_[static_cast<std::size_t>(i)];
      if (!run.lane.ranks.empty()) {
        work(run);
      }
    });
  } catch (const kernels::CudaError& error) {
    if (const std::string also = abandon(); !also.empty()) {
      throw kernels::CudaError(error, also);
    }
    throw;
  } catch (const CheckFailure& given_up) {
    const std::string also = abandon();
    throw CheckFailure(given_up.what() + (also.empty() ? "" : "; " + also), given_up.kind());
  } catch (...) {
    abandon();
    throw;
  }
  check_health();
}

// After a launch failed: the devices may still be at work for one that did not, on this runner's
// memory and streams. Waits for them, clears the protocol where that is still possible, and returns
// what the device waits reported.
std::string LayerRunner::abandon() {
  for (const Device& device : devices_) {
    attempt([&] {
      const kernels::OnDevice on(device.index);
      FUSESCOPE_CUDA(cudaDeviceSynchronize());
    });
  }
  std::string reported = failure();
  attempt([&] { memory_.reset_protocol(); });
  return reported;
}

std::string LayerRunner::failure() const {
  std::string text;
  for (const kernels::Diagnosis& diagnosis : memory_.diagnoses()) {
    text += (text.empty() ? "" : "; ") + to_string(diagnosis);
  }
  for (int r = 0; r < memory_.ranks(); ++r) {
    if (const std::string& error = memory_.rank(r).host_schedule->error; !error.empty()) {
      text += (text.empty() ? "" : "; ") + ("rank " + std::to_string(r)) +
              ": building the schedule on the host: " + error;
    }
  }
  return text;
}

void LayerRunner::check_health() {
  if (const std::string reported = failure(); !reported.empty()) {
    memory_.reset_protocol();
    throw CheckFailure("the launch was aborted: " + reported, CheckFailure::Kind::aborted);
  }
}

Sample LayerRunner::read_sample() const {
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
      for (const kernels::ClockStamp& stamp : memory_.rank(r).words->clock) {
        cycles += static_cast<double>(stamp.end_cycles - stamp.begin_cycles);
        ns += static_cast<double>(stamp.end_ns - stamp.begin_ns);
      }
    }
  }
  sample.wall_us = *std::max_element(sample.rank_wall_us.begin(), sample.rank_wall_us.end());
  sample.sm_clock_mhz = ns > 0 ? 1e3 * cycles / ns : 0;
  return sample;
}

void LayerRunner::set_routing(const Routing& routing) {
  memory_.set_routing(routing);
  verifier_->set_routing(routing);
}

void LayerRunner::set_input(std::uint64_t seed) {
  memory_.set_input(seed);
  verifier_->forget_reference();
}

OutputError LayerRunner::output_error() {
  return verifier_->output_error();
}

double LayerRunner::relative_error() {
  return verifier_->output_error().relative;
}

std::uint64_t LayerRunner::output_checksum() {
  return verifier_->checksum();
}

}  // namespace fusescope::engine::cuda
