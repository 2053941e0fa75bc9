#include "engine/cuda/gpu_check.hpp"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "engine/cuda/layer_runner.hpp"
#include "engine/cuda/nccl_choice.hpp"
#include "engine/cuda/plan.hpp"
#include "layer/gemm_path.hpp"
#include "layer/table_checks.hpp"

namespace fusescope::engine::cuda {
namespace {

constexpr int kRepeats = 100;
constexpr int kOtherRoutings = 3;
constexpr SlotOrder kSlotOrders[] = {SlotOrder::by_token, SlotOrder::interleave_sources,
                                     SlotOrder::rotate_from_self};
constexpr std::pair<ScheduleSite, const char*> kSites[] = {{ScheduleSite::fused, "by the prologue"},
                                                           {ScheduleSite::device, "by Thrust"},
                                                           {ScheduleSite::host, "on the host"}};

class GpuCheck {
 public:
  GpuCheck(const std::vector<Device>& devices, const RunRequest& request)
      : problem_(*request.problem),
        config_(request.config),
        limits_(limits_of(devices.front())),
        device_of_rank_(devices_of_ranks(devices, problem_.shape.ranks)),
        runner_(problem_, devices,
                {.seed = request.seed,
                 .deadline_ns = static_cast<std::uint64_t>(request.deadline_ms) * 1'000'000}) {}

  std::vector<CheckResult> run() {
    for (const SlotOrder order : kSlotOrders) {
      tables(order);
    }
    outputs("config as given", config_);
    Config other = config_;
    other.activation =
        config_.activation == Activation::fused ? Activation::separate : Activation::fused;
    outputs("the other activation", other);
    serial(Collectives::peer_copies);
    serial(Collectives::nccl);
    repeats();
    knobs();
    other_routings();
    return results_;
  }

 private:
  // `work` returns what was found, and throws CheckFailure for what is wrong.
  void check(const std::string& name, const std::function<std::string()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    CheckResult result{name, true, "", 0};
    try {
      result.detail = work();
    } catch (const CheckFailure& failure) {
      result.passed = false;
      result.detail = failure.what();
    }
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    results_.push_back(result);
  }

  void configure(const Config& config) {
    runner_.use_nccl(nccl_.choose(config, device_of_rank_).nccl);
    runner_.configure(config);
  }

  // From buffers full of NaN.
  void run_from_poison(const Config& config) {
    configure(config);
    runner_.memory().poison();
    runner_.run_once();
  }

  double right_error(const std::string& of) {
    const double error = runner_.relative_error();
    if (!(error <= kMaxRelativeError)) {
      throw CheckFailure(fmt::format("{}: relative error {:.2e}, at most {:.0e} is right", of,
                                     error, kMaxRelativeError),
                         CheckFailure::Kind::wrong_output);
    }
    return error;
  }

  bool legal(const Config& config) const {
    return why_illegal_on_device(problem_, config, limits_).empty();
  }

  void tables(SlotOrder order) {
    Config config = config_;
    config.slot_order = order;
    const std::string value = knob_text(config, "slot_order");
    check("tables, slot_order " + value, [&] {
      std::vector<std::string> built;
      for (const auto& [site, by] : kSites) {
        config.schedule = site;
        if (!legal(config)) {
          continue;
        }
        built.emplace_back(by);
        run_from_poison(config);
        for (int r = 0; r < problem_.shape.ranks; ++r) {
          const ScheduleTables golden =
              build_tables_golden(problem_.shape, problem_.routing, order, r);
          if (const auto fault = compare_tables(golden, runner_.memory().read_tables(r))) {
            throw CheckFailure(fmt::format("rank {}, built {}: {}", r, by, to_string(*fault)));
          }
        }
      }
      return fmt::format("golden = as the kernels used them, built {}, {} rank{}",
                         fmt::join(built, ", "), problem_.shape.ranks,
                         problem_.shape.ranks == 1 ? "" : "s");
    });
  }

  void outputs(const std::string& name, const Config& config) {
    if (!legal(config)) {
      return;
    }
    check("outputs, " + name, [&] {
      run_from_poison(config);
      return fmt::format("relative error {:.1e} against the fp32 reference (at most {:.0e})",
                         right_error(describe(config)), kMaxRelativeError);
    });
  }

  // Where the machine has no NCCL, or not for these ranks, there is nothing to check.
  void serial(Collectives collectives) {
    Config config = config_;
    config.form = LayerForm::serial;
    config.inject = {};
    config.collectives = collectives;
    try {
      nccl_.choose(config, device_of_rank_);
    } catch (const InputError&) {
      return;
    }
    const bool by_nccl = collectives == Collectives::nccl;
    if (by_nccl && device_of_rank_.size() < 2) {
      return;
    }
    outputs(by_nccl ? "serial layer, NCCL" : "serial layer, peer copies", config);
  }

  void repeats() {
    check(fmt::format("bits, {} repeats", kRepeats), [&] {
      run_from_poison(config_);
      const std::uint64_t first = runner_.output_checksum();
      for (int i = 1; i < kRepeats; ++i) {
        runner_.run_once();
        if (runner_.output_checksum() != first) {
          throw CheckFailure(fmt::format("iteration {} differs from the first", i),
                             CheckFailure::Kind::wrong_output);
        }
      }
      return std::string("every iteration's outputs are equal bit by bit");
    });
  }

  // Each knob that must not change a bit, away from where `base` has it.
  std::vector<Config> neighbours(const Config& base) const {
    std::vector<Config> all;
    const auto add = [&](auto change) {
      Config config = base;
      change(config);
      if (config != base && legal(config)) {
        all.push_back(config);
      }
    };
    for (const SlotOrder order : kSlotOrders) {
      add([&](Config& c) { c.slot_order = order; });
    }
    add([](Config& c) { c.pull_order = PullOrder::by_token; });
    add([](Config& c) { c.job_order = JobOrder::by_token; });
    for (const Dispatch dispatch : {Dispatch::scatter, Dispatch::gather, Dispatch::push}) {
      add([&](Config& c) { c.dispatch = dispatch; });
    }
    add([](Config& c) { c.dispatch_comm_sms = 0; });
    add([](Config& c) { c.dispatch_comm_sms = 24; });
    add([](Config& c) {
      c.dispatch_comm_sms = 0;
      c.dispatch_head = 50;
    });
    add([](Config& c) { c.combine_comm_sms = 4; });
    add([](Config& c) { c.tokens_per_block = 5; });
    add([](Config& c) { c.all_hands = !c.all_hands; });
    add([](Config& c) { c.watermark_chunks = 4; });
    add([](Config& c) { c.tile = TileShape::m128n128; });
    add([](Config& c) { c.tile = TileShape::m160n256; });
    add([](Config& c) { c.tile = TileShape::m288n128; });
    if (with_gemm_chosen(base, limits_).gemm == GemmPath::mma) {  // wgmma's bits are its own
      add([](Config& c) { c.gemm = GemmPath::mma_small; });
    }
    add([](Config& c) { c.graph = !c.graph; });
    add([](Config& c) { c.tile_counter = TileCounter::both; });
    add([](Config& c) { c.launch = LaunchOrder::programmatic; });
    add([](Config& c) {
      c.combine = Combine::block_per_job;
      c.all_hands = false;
    });
    add([](Config& c) {
      c.form = LayerForm::serial;
      c.inject = {};
    });
    return all;
  }

  // With peer copies: NCCL's sum may round otherwise (collectives.hpp).
  void knobs() {
    Config base = config_;
    base.collectives = Collectives::peer_copies;
    const std::vector<Config> all = neighbours(base);
    check(fmt::format("bits, {} other configs", all.size()), [&] {
      run_from_poison(base);
      const std::uint64_t first = runner_.output_checksum();
      for (const Config& config : all) {
        run_from_poison(config);
        if (runner_.output_checksum() != first) {
          throw CheckFailure("outputs differ with " + describe(config, base),
                             CheckFailure::Kind::wrong_output);
        }
      }
      return std::string("equal bit by bit, whatever the split, the orders and the form");
    });
  }

  void other_routings() {
    check(fmt::format("outputs, {} other routings", kOtherRoutings), [&] {
      configure(config_);
      double worst = 0;
      for (int i = 1; i <= kOtherRoutings; ++i) {
        RoutingSpec spec;
        spec.kind = RoutingKind::uniform;
        spec.seed = static_cast<std::uint64_t>(i);
        runner_.set_routing(make_problem(problem_.shape, spec).routing);
        runner_.memory().poison();
        runner_.run_once();
        worst = std::max(worst, right_error(fmt::format("uniform routing {}", i)));
      }
      runner_.set_routing(problem_.routing);
      return fmt::format("uniform, relative error up to {:.1e}", worst);
    });
  }

  const Problem& problem_;
  const Config config_;
  const DeviceLimits limits_;
  const std::vector<int> device_of_rank_;
  NcclChoice nccl_;  // outlives the runner's graphs
  LayerRunner runner_;
  std::vector<CheckResult> results_;
};

}  // namespace

std::vector<CheckResult> check_on_gpus(const std::vector<Device>& devices,
                                       const RunRequest& request) {
  if (request.config.study != Study::full) {
    throw InputError(
        {"", "config", "a study computes no outputs that could be checked", "study full"});
  }
  if (const std::string why =
          why_illegal_on_device(*request.problem, request.config, limits_of(devices.front()));
      !why.empty()) {
    throw InputError({"", "config", why, "a config that this device can run"});
  }
  return GpuCheck(devices, request).run();
}

}  // namespace fusescope::engine::cuda
