// No effect before its cause: what each wait waited for had happened when the wait ended.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "timeline/checks.hpp"

namespace fusescope::timeline {
namespace {

constexpr auto kNone = Dependencies::kNone;
using EventId = Dependencies::EventId;

class Causality {
 public:
  explicit Causality(const Dependencies& dependencies)
      : dependencies_(dependencies),
        timeline_(dependencies.timeline()),
        tolerance_(tolerance_ns(timeline_)),
        complete_(timeline_.meta.dropped == 0) {}

  std::string first_violation() const {
    if (const EventId again = dependencies_.duplicate(); again != kNone) {
      return name_of(again) + arguments_text(again) + " is there twice";
    }
    for (EventId id = 0; id < timeline_.events.size(); ++id) {
      if (std::string fault = check_event(id); !fault.empty()) {
        return fault;
      }
    }
    return check_counts();
  }

 private:
  const Event& event(EventId id) const { return timeline_.events[id]; }
  std::string name_of(EventId id) const { return where(timeline_, event(id)); }

  std::string arguments_text(EventId id) const {
    std::string text;
    const Event& what = event(id);
    if (what.token >= 0) {
      text += " of token " + std::to_string(what.token);
    }
    if (what.row_block >= 0) {
      text += " of row block " + std::to_string(what.row_block);
    }
    if (what.peer >= 0) {
      text += " with rank " + std::to_string(what.peer);
    }
    return text;
  }

  std::string check_event(EventId id) const {
    switch (event(id).kind) {
      case Kind::scatter:
        return check_follows(id, Kind::pull, true);
      case Kind::arrive:
        return check_follows(id, Kind::scatter, true);
      case Kind::ready_wait:
        if (std::string fault = check_follows(id, Kind::claim, false); !fault.empty()) {
          return fault;
        }
        return check_wait(id);
      case Kind::sum:
        return check_follows(id, Kind::ready_wait, false);
      case Kind::push:
        return check_follows(id, Kind::sum, false);
      case Kind::elect:
        return check_follows(id, Kind::push, false);
      case Kind::watermark:
        return check_watermark(id);
      case Kind::reduce_wait:
        if (dependencies_.cause(id) == kNone && complete_) {
          return name_of(id) + arguments_text(id) + " ended, but that rank raised no watermark";
        }
        return check_wait(id);
      case Kind::reduce:
        return check_reduce(id);
      case Kind::mainloop:
        return check_activations(id);
      case Kind::gate_wait:
      case Kind::activation_wait:
      case Kind::barrier:
      case Kind::ids_exchange:
      case Kind::all_gather:
      case Kind::reduce_scatter:
        return check_wait(id);
      default:
        return "";
    }
  }

  // A token's event comes after its event of the kind before.
  std::string check_follows(EventId id, Kind kind, bool same_track) const {
    const EventId cause = dependencies_.of_token(dependencies_.rank_of(id), kind, event(id).token);
    if (cause == kNone) {
      return same_track && complete_
                 ? name_of(id) + arguments_text(id) + " has no " + std::string(name(kind))
                 : "";
    }
    if (same_track && event(cause).track != event(id).track) {
      return name_of(id) + arguments_text(id) + ": its " + std::string(name(kind)) + " is on " +
             describe(dependencies_.track_of(cause));
    }
    if (event(cause).end_ns > event(id).begin_ns) {
      return name_of(id) + arguments_text(id) + " begins before its " + std::string(name(kind)) +
             " ends at " + std::to_string(event(cause).end_ns) + " ns";
    }
    return "";
  }

  std::string check_wait(EventId id) const {
    const EventId cause = dependencies_.cause(id);
    if (cause == kNone) {
      return "";
    }
    // A collective ends after the last rank has entered it, a wait after its cause has ended. Of K
    // arrivals that a device counts one after the other, any may be the one that opened the gate.
    const bool measured = timeline_.meta.provenance == Provenance::measured;
    const bool within =
        is_stream_phase(event(id).kind) || (measured && event(id).kind == Kind::gate_wait);
    const std::int64_t least = within ? event(cause).begin_ns : event(cause).end_ns;
    if (event(id).end_ns + tolerance_ >= least) {
      return "";
    }
    return name_of(id) + arguments_text(id) + " ends at " + std::to_string(event(id).end_ns) +
           " ns, before its cause: " + std::string(name(event(cause).kind)) +
           arguments_text(cause) + " on " + describe(dependencies_.track_of(cause)) +
           (within ? " begins at " : " ends at ") + std::to_string(least) + " ns";
  }

  // The watermark of a plane's last chunk comes after every push to that plane.
  std::string check_watermark(EventId id) const {
    const Event& what = event(id);
    const int sender = dependencies_.rank_of(id);
    for (int chunk = 0; chunk < timeline_.wiring.watermark_chunks; ++chunk) {
      const EventId other = dependencies_.watermark(sender, what.peer, chunk);
      if (other != kNone && event(other).begin_ns > what.begin_ns) {
        return "";
      }
    }
    const int first = what.peer * timeline_.wiring.tokens_per_rank;
    for (int token = first; token < first + timeline_.wiring.tokens_per_rank; ++token) {
      const EventId push = dependencies_.of_token(sender, Kind::push, token);
      if (push != kNone && event(push).end_ns > what.begin_ns + tolerance_) {
        return name_of(id) + arguments_text(id) + " begins before the push of token " +
               std::to_string(token) + " ends at " + std::to_string(event(push).end_ns) + " ns";
      }
    }
    return "";
  }

  std::string check_reduce(EventId id) const {
    const int receiver = dependencies_.rank_of(id);
    for (int sender = 0; sender < timeline_.wiring.ranks; ++sender) {
      const EventId raised = dependencies_.watermark(sender, receiver, event(id).index);
      if (raised != kNone && event(raised).end_ns > event(id).begin_ns + tolerance_) {
        return name_of(id) + " begins before the watermark of rank " + std::to_string(sender) +
               " is visible at " + std::to_string(event(raised).end_ns) + " ns";
      }
    }
    return "";
  }

  // A tile of kernel 2 comes after all of kernel 1's tiles of its row block.
  std::string check_activations(EventId id) const {
    if (dependencies_.track_of(id).stage != Stage::gemm_combine_push) {
      return "";
    }
    const EventId last =
        dependencies_.activating_epilogue(dependencies_.rank_of(id), event(id).row_block);
    if (last == kNone || event(last).end_ns <= event(id).begin_ns + tolerance_) {
      return "";
    }
    return name_of(id) + arguments_text(id) + " begins before kernel 1 has its activations, at " +
           std::to_string(event(last).end_ns) + " ns";
  }

  // Unless records were lost: all of a rank's tokens arrive, and every row block that names tiles has all of
  // them.
  std::string check_counts() const {
    if (!complete_) {
      return "";
    }
    const Wiring& wiring = timeline_.wiring;
    const auto ranks = static_cast<std::size_t>(wiring.ranks);
    std::vector<long long> arrives(ranks);
    std::array<std::vector<std::vector<int>>, 2> epilogues;
    for (auto& kernel : epilogues) {
      kernel.resize(ranks);
    }
    for (const Event& what : timeline_.events) {
      const Track& track = timeline_.tracks[what.track];
      const auto rank = static_cast<std::size_t>(track.rank);
      arrives[rank] += what.kind == Kind::arrive;
      if (what.kind == Kind::epilogue && rank < wiring.expert_of_row_block.size()) {
        auto& counts = epilogues[track.stage == Stage::gemm_combine_push][rank];
        counts.resize(wiring.expert_of_row_block[rank].size());
        ++counts[static_cast<std::size_t>(what.row_block)];
      }
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const long long tokens = static_cast<long long>(wiring.ranks) * wiring.tokens_per_rank;
      if (arrives[rank] != 0 && arrives[rank] != tokens) {
        return "rank " + std::to_string(rank) + ": " + std::to_string(arrives[rank]) + " of " +
               std::to_string(tokens) + " tokens arrive";
      }
      for (std::size_t kernel = 0; kernel < epilogues.size(); ++kernel) {
        const int tiles = kernel == 0 ? wiring.n_tiles_1 : wiring.n_tiles_2;
        const std::vector<int>& counts = epilogues[kernel][rank];
        for (std::size_t block = 0; block < counts.size(); ++block) {
          const auto number = static_cast<int>(block);
          const int expected = wiring.tile_of(static_cast<int>(rank), number) == number ? tiles : 0;
          if (counts[block] != expected) {
            return "rank " + std::to_string(rank) + ": row block " + std::to_string(block) +
                   " has " + std::to_string(counts[block]) + " of " + std::to_string(expected) +
                   " epilogues in GEMM " + std::to_string(kernel + 1);
          }
        }
      }
    }
    return "";
  }

  const Dependencies& dependencies_;
  const Timeline& timeline_;
  std::int64_t tolerance_;
  bool complete_;  // no records were lost
};

}  // namespace

std::string check_causality(const Dependencies& dependencies) {
  return Causality(dependencies).first_violation();
}

}  // namespace fusescope::timeline
