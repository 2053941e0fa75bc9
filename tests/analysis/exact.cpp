#include "exact.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "analysis/accounting.hpp"
#include "analysis/critical_path.hpp"
#include "analysis/wait_table.hpp"

namespace fusescope::analysis {
namespace {

template <typename Numbers>
std::int64_t total(const Numbers& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

void expect_exact_path(const timeline::Timeline& timeline, const CriticalPath& path) {
  std::int64_t now = timeline.begin_ns;
  std::array<std::int64_t, kSteps> steps{};
  std::int64_t exposed = 0;
  for (const Segment& segment : path.segments) {
    ASSERT_EQ(segment.begin_ns, now);
    ASSERT_GT(segment.end_ns, segment.begin_ns);
    now = segment.end_ns;
    steps[static_cast<std::size_t>(segment.step)] += segment.end_ns - segment.begin_ns;
    exposed += segment.exposed ? segment.end_ns - segment.begin_ns : 0;
    if (segment.event != UINT32_MAX) {
      ASSERT_LT(segment.event, timeline.events.size());
    }
  }
  ASSERT_EQ(now, timeline.end_ns);
  ASSERT_EQ(steps, path.by_step);
  ASSERT_EQ(total(path.by_step), timeline.wall_ns());
  ASSERT_EQ(exposed, path.exposed_communication_ns());
  ASSERT_LE(total(path.by_kind), timeline.wall_ns());
  for (int i = 0; i < kSteps; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto step = static_cast<Step>(i);
    ASSERT_LE(path.exposed_by_step[at], path.by_step[at]) << name(step);
    const bool may_be_hidden = step == Step::dispatch_head || step == Step::dispatch_order ||
                               step == Step::dispatch_bandwidth;
    if (is_communication(step) && !may_be_hidden) {
      ASSERT_EQ(path.exposed_by_step[at], path.by_step[at]) << name(step);
    } else if (!may_communicate(step)) {
      ASSERT_EQ(path.exposed_by_step[at], 0) << name(step);
    }
  }
}

void expect_exact_areas(const timeline::Timeline& timeline, const Accounting& accounting) {
  ASSERT_EQ(accounting.ranks.size(), static_cast<std::size_t>(timeline.wiring.ranks));
  for (const RankAccounting& rank : accounting.ranks) {
    ASSERT_EQ(rank.area_ns, timeline.meta.sms * timeline.wall_ns());
    ASSERT_EQ(total(rank.by_use), rank.area_ns) << "rank " << rank.rank;
    std::array<std::int64_t, kUses> over_roles{};
    for (const auto& by_use : rank.by_role) {
      for (std::size_t use = 0; use < by_use.size(); ++use) {
        ASSERT_GE(by_use[use], 0) << "rank " << rank.rank << " " << name(static_cast<Use>(use));
        over_roles[use] += by_use[use];
      }
    }
    ASSERT_EQ(over_roles, rank.by_use) << "rank " << rank.rank;
  }
}

void expect_exact_waits(const timeline::Timeline& timeline, const Accounting& accounting) {
  const timeline::Dependencies dependencies(timeline);
  const WaitTable waits = tabulate_waits(dependencies, accounting.gates);
  std::int64_t gates = 0;
  for (const GateBlame& gate : accounting.gates) {
    ASSERT_EQ(total(gate.ns_by_blame), gate.wait_ns);
    ASSERT_EQ(gate.pull_ns + gate.scatter_ns,
              gate.ns_by_blame[static_cast<std::size_t>(Blame::in_flight)]);
    for (const std::int64_t ns : gate.ns_by_blame) {
      ASSERT_GE(ns, 0);
    }
    gates += gate.wait_ns;
  }
  std::int64_t tabulated = 0;
  for (const WaitEdge& edge : waits.edges) {
    ASSERT_EQ(total(edge.ns_by_blame), edge.wait_ns);
    tabulated += edge.kind == timeline::Kind::gate_wait ? edge.wait_ns : 0;
  }
  ASSERT_EQ(tabulated, gates);
  for (const auto* totals : {&waits.row_blocks, &waits.experts, &waits.source_ranks}) {
    std::int64_t sum = 0;
    for (const WaitTotal& one : *totals) {
      ASSERT_EQ(total(one.ns_by_blame), one.wait_ns);
      sum += one.wait_ns;
    }
    ASSERT_EQ(sum, gates);
  }
}

}  // namespace

void expect_exact(const timeline::Timeline& timeline, const char* what) {
  SCOPED_TRACE(what);
  const Accounting accounting = account(timeline);
  expect_exact_path(timeline, critical_path(timeline));
  expect_exact_areas(timeline, accounting);
  expect_exact_waits(timeline, accounting);
}

}  // namespace fusescope::analysis
