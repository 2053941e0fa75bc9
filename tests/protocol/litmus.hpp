#pragma once
// Litmus tests: a few threads on two GPUs, one rank each, that hand one row from rank 0 to rank 1, or from
// one kernel to the next.

#include <functional>
#include <memory>
#include <utility>

#include "protocol/model.hpp"

namespace fusescope::protocol::test {

constexpr std::int32_t kStamp = 1;

// What the threads share. `row`, `flag` and `data` lie on rank 1's GPU, `near` on rank 0's.
struct Places {
  CellId source, row, other, smem;
  WordId flag, near, data;
  MbarrierId landed;  // and one behind it
  BarrierId barrier;
};

using Body = Task (*)(Thread&, Places);
// The kernel that a thread belongs to: the second begins when the first has ended, and the early one beside
// the second.
enum class Kernel { first, second, early };
struct Actor {
  int rank;
  Body body;
  Kernel kernel = Kernel::first;
};

class Litmus final : public Model {
 public:
  Litmus(Machine& machine, std::vector<Actor> actors)
      : machine_(machine), actors_(std::move(actors)) {
    MachineSize size;
    size.devices = 2;
    size.device_of_rank = {0, 1};
    machine_.reset(size);
    places_.source = machine_.memory().add({"source", 0}, 1);
    places_.row = machine_.memory().add({"row", 1}, 1);
    places_.other = machine_.memory().add({"other", 1}, 1);
    places_.smem = machine_.memory().add({"smem", 0}, 2);
    places_.flag = machine_.add_words({"flag", 1}, 1, 1);
    places_.near = machine_.add_words({"near", 0}, 1, 0);
    places_.data = machine_.add_data_words({"data", 1}, 1, 1);
    places_.landed = machine_.add_mbarriers(2);
    places_.barrier = machine_.add_barriers(1);
    const WordId aborts = machine_.add_words({"abort"}, 2, 0);
    const WordId claimed = machine_.add_words({"claimed"}, 2, 0);
    const CellId diagnoses = machine_.memory().add({"diagnosis"}, 2);
    machine_.guard({aborts, aborts + 1}, {claimed, claimed + 1}, {diagnoses, diagnoses + 1});
  }

  void start() override {
    for (int device = 0; device < 2; ++device) {
      const auto rank = static_cast<std::int16_t>(device);
      Thread& stream = machine_.add_stream(device, {Role::stream, "stream", rank, -1, -1});
      machine_.start(stream, launch(stream, *this, rank));
    }
  }

 private:
  static Task launch(Thread& stream, Litmus& litmus, int rank) {
    co_await stream.join(litmus.begin(stream, rank, Kernel::first));
    const LaunchId second = litmus.begin(stream, rank, Kernel::second);
    const LaunchId early = litmus.begin(stream, rank, Kernel::early);
    co_await stream.join(second);
    co_await stream.join(early);
  }

  LaunchId begin(Thread& stream, int rank, Kernel kernel) {
    const LaunchId launch = machine_.begin_launch();
    for (std::size_t i = 0; i < actors_.size(); ++i) {
      if (actors_[i].rank == rank && actors_[i].kernel == kernel) {
        const Label label{Role::copy, "kernel", static_cast<std::int16_t>(rank),
                          static_cast<std::int16_t>(i), -1};
        Thread& t = kernel == Kernel::early ? machine_.add_early_thread(stream, launch, label, true)
                                            : machine_.add_thread(stream, launch, label, true);
        machine_.start(t, actors_[i].body(t, places_));
      }
    }
    return launch;
  }

  Machine& machine_;
  std::vector<Actor> actors_;
  Places places_{};
};

// The first finding among a few hundred schedules of the actors.
inline std::optional<Finding> finding_of(const std::vector<Actor>& actors) {
  return explore([&](Machine& machine,
                     std::uint64_t) { return std::make_unique<Litmus>(machine, actors); },
                 2, 300, 1)
      .finding;
}

}  // namespace fusescope::protocol::test
