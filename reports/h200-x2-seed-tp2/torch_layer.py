"""The layer in PyTorch: NCCL + argsort + _grouped_mm, replayed as one CUDA graph per rank.

The baseline of this report, run as it is, outside fusescope:
    python3 torch_layer.py --ranks 2 --tokens 1024 --out torch.json
Shape defaults are seed-tp2's; routing is uniform at random, every expert of a token another one.

A sample is one replay, timed as fusescope times an iteration: each GPU's stream is held until its host
has enqueued everything that is timed; then all ranks meet (an all-reduce of one word); then, between two
events on each rank, the graph runs. The sample is the slowest rank's. With --eager the same is done
without a graph; its launches outlast any hold, so that its samples contain host time, as they should.
"""
import argparse
import json
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F

HOLD_CYCLES = 1_000_000  # about half a millisecond: many times what a host needs to launch a graph
WARMUP = 5


def layer(x, ids, weights, w13, w2, ranks, experts):
    tokens, topk = ids.shape
    inter = w2.shape[2]
    all_ids = ids.new_empty(ranks * tokens, topk)
    dist.all_gather_into_tensor(all_ids, ids)
    all_weights = weights.new_empty(ranks * tokens, topk)
    dist.all_gather_into_tensor(all_weights, weights)
    order = torch.argsort(all_ids.view(-1), stable=True)
    sorted_ids = all_ids.view(-1)[order]
    ends = torch.searchsorted(sorted_ids, torch.arange(experts, device=x.device, dtype=ids.dtype),
                              right=True).to(torch.int32)
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(order.numel(), device=x.device)

    all_x = x.new_empty(ranks * tokens, x.shape[1])
    dist.all_gather_into_tensor(all_x, x)
    rows = all_x[order // topk]
    h = torch._grouped_mm(rows, w13.transpose(-2, -1), offs=ends)
    act = F.silu(h[:, :inter]) * h[:, inter:]
    y = torch._grouped_mm(act, w2.transpose(-2, -1), offs=ends)
    y = y[inverse].view(ranks * tokens, topk, -1)
    combined = torch.bmm(all_weights.to(y.dtype).unsqueeze(1), y).squeeze(1)
    out = x.new_empty(tokens, x.shape[1])
    dist.reduce_scatter_tensor(out, combined)
    return out


def time_replays(step, count, gate, rest_ms):
    """Samples of this rank: [(us, SM clock in MHz during the hold before, host was late)]."""
    word = torch.zeros(1, device="cuda")
    hold, held, begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(4))
    samples = []
    for _ in range(WARMUP + count):
        time.sleep(rest_ms / 1e3)
        gate.wait()
        started = time.perf_counter()
        torch.cuda._sleep(HOLD_CYCLES // 10)  # under which the hold itself is enqueued
        hold.record()
        torch.cuda._sleep(HOLD_CYCLES)
        held.record()
        dist.all_reduce(word)
        begin.record()
        step()
        end.record()
        enqueued = time.perf_counter() - started
        torch.cuda.synchronize()
        held_us = 1e3 * hold.elapsed_time(held)
        samples.append((1e3 * begin.elapsed_time(end), HOLD_CYCLES / held_us, 1e6 * enqueued > held_us))
    return samples[WARMUP:]


def worker(rank, args, gate, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(args.port))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=args.ranks,
                            device_id=torch.device("cuda", rank))
    generator = torch.Generator("cuda").manual_seed(rank + args.ranks * args.seed)

    def say(what):
        if rank == 0:
            print(f"{time.monotonic() - args.begun:6.1f} s {what}", flush=True)

    def randn(*shape, scale=1.0):
        return (torch.randn(*shape, device="cuda", generator=generator) * scale).to(torch.bfloat16)

    x = randn(args.tokens, args.hidden)
    w13 = randn(args.experts, 2 * args.inter, args.hidden, scale=args.hidden**-0.5)
    w2 = randn(args.experts, args.hidden, args.inter, scale=args.inter**-0.5)
    scores = torch.rand(args.tokens, args.experts, device="cuda", generator=generator)
    weights, ids = torch.topk(scores, args.topk)
    weights = weights / weights.sum(1, keepdim=True)
    ids = ids.to(torch.int32)
    torch.cuda.synchronize()
    say("inputs made")

    def run():
        return layer(x, ids, weights, w13, w2, args.ranks, args.experts)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5):
            run()
    torch.cuda.synchronize()
    say("warmed up")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    torch.cuda.synchronize()
    say("graph captured")

    timed = {"graph": time_replays(graph.replay, args.samples, gate, args.rest_ms)}
    say("graph timed")
    if args.eager:
        timed["eager"] = time_replays(run, args.samples, gate, args.rest_ms)
        say("eager timed")
    results.put(timed)
    gate.wait()
    os._exit(0)  # NCCL's teardown behind a captured graph can take long, and there is nothing to save


def summarise(by_rank):
    """Of one way to run: samples by rank -> what the report holds."""
    wall = [max(us for us, _, _ in ranks) for ranks in zip(*by_rank)]
    clock = sorted(mhz for samples in by_rank for _, mhz, _ in samples)
    ordered = sorted(wall)

    def at(share):
        return round(ordered[int(share * (len(ordered) - 1) + 0.5)], 2)

    return {"median_us": at(0.5), "p10_us": at(0.1), "p90_us": at(0.9),
            "sm_clock_mhz": round(clock[len(clock) // 2], 1),
            "host_late": sum(any(late for _, _, late in ranks) for ranks in zip(*by_rank)),
            "wall_us": [round(us, 2) for us in wall]}


def main():
    parser = argparse.ArgumentParser()
    for name, value in dict(ranks=2, tokens=1024, hidden=4096, experts=64, topk=8, inter=768,
                            samples=40, seed=1, port=29511).items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--rest-ms", type=int, default=0, help="pause before each replay")
    parser.add_argument("--eager", action="store_true", help="time it without a graph, too")
    parser.add_argument("--out", default="")
    args = parser.parse_args()
    args.begun = time.monotonic()
    context = mp.get_context("spawn")
    gate, results = context.Barrier(args.ranks), context.SimpleQueue()
    workers = mp.spawn(worker, (args, gate, results), nprocs=args.ranks, join=False)
    by_rank = []
    while len(by_rank) < args.ranks:
        if results.empty():
            workers.join(timeout=0.1)  # raises what a worker raised
        else:
            by_rank.append(results.get())
    while not workers.join():
        pass
    report = {"torch": torch.__version__, "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
    for name in by_rank[0]:
        report[name] = summarise([timed[name] for timed in by_rank])
        print("torch {} {name}: median {median_us} us, 10% to 90% {p10_us} to {p90_us}, SM clock "
              "{sm_clock_mhz} MHz, host late in {host_late}".format(
                  torch.__version__, name=name, **report[name]))
    if args.out:
        with open(args.out, "w") as file:
            json.dump(report, file)


if __name__ == "__main__":
    main()
