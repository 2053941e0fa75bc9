#include "protocol/layer/gemm_gate.hpp"

#include "protocol/layer/gemm_tile.hpp"

namespace fusescope::protocol {
namespace {

bool relaxed(const GemmCall& c) {
  return c.layer.has(c.which == 1 ? Bug::gate_relaxed : Bug::computed_gate_relaxed);
}
bool unfenced(const GemmCall& c) {
  return c.layer.has(c.which == 1 ? Bug::gate_proxy_fence_missing
                                  : Bug::computed_gate_proxy_fence_missing);
}
// By the scheduler, for the producer; who gathers asks for itself.
bool asks_for_another(const GemmCall& c) {
  return !c.gathers;
}

Task is_open(Thread& t, const GemmCall& c, int row_block, bool stopped, bool& open) {
  const Layer& layer = c.layer;
  open = !stopped;
  if (stopped || c.gate < 0) {
    co_return;
  }
  const bool asks_relaxed =
      relaxed(c) || (asks_for_another(c) && layer.has(Bug::asked_gate_relaxed));
  const bool asks_unfenced =
      unfenced(c) || (asks_for_another(c) && layer.has(Bug::asked_gate_proxy_fence_missing));
  const std::uint64_t counted = co_await t.load(
      c.gate + row_block, asks_relaxed ? Order::relaxed : Order::acquire, Scope::gpu);
  open = counted >= c.open_at;
  if (open && !asks_unfenced) {
    t.fence_proxy_async();
  }
}

Task wait_at(Thread& t, const GemmCall& c, int row_block, bool stopped, bool& open) {
  open = !stopped;
  if (stopped || c.gate < 0) {
    co_return;
  }
  const Bug unguarded = c.which == 1 ? Bug::gate_wait_unguarded : Bug::computed_gate_wait_unguarded;
  open = co_await t.wait_at_least(c.gate + row_block, c.open_at,
                                  relaxed(c) ? Order::relaxed : Order::acquire, Scope::gpu,
                                  !c.layer.has(unguarded));
  if (open && !unfenced(c)) {
    t.fence_proxy_async();
  }
}

int gates_of(const TileJob& job, bool first_only) {
  return first_only ? 1 : row_blocks_of(job.halves);
}

}  // namespace

Task are_open(Thread& t, const GemmCall& c, const TileJob& job, bool stopped, bool& open) {
  const int gates = gates_of(job, c.layer.has(Bug::first_gate_asked_for_all));
  open = true;
  for (int block = 0; open && block < gates; ++block) {
    co_await is_open(t, c, job.row_block + block, stopped, open);
  }
}

Task wait_open(Thread& t, const GemmCall& c, const TileJob& job, bool stopped, bool& open) {
  const int gates = gates_of(job, c.layer.has(Bug::first_gate_awaited_for_all));
  open = true;
  for (int block = 0; open && block < gates; ++block) {
    co_await wait_at(t, c, job.row_block + block, stopped, open);
  }
}

}  // namespace fusescope::protocol
