"""The layer in PyTorch: NCCL + argsort + _grouped_mm, replayed as one CUDA graph per rank.

The baseline of this report, run as it is, outside fusescope:
    python3 torch_layer.py --ranks 2 --tokens 1024 --out torch.json
Shape defaults are seed-tp2's; routing is uniform at random. A sample is the mean of a batch of
back-to-back iterations, of the slower rank.
"""
import argparse
import json
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F


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


def worker(rank, args, gate, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=args.ranks,
                            device_id=torch.device("cuda", rank))
    generator = torch.Generator("cuda").manual_seed(rank)

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

    def times(step):
        samples = []
        for _ in range(args.samples + 3):
            gate.wait()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(args.batch):  # back to back: the ranks' starts are not waited for
                step()
            end.record()
            torch.cuda.synchronize()
            samples.append(1e3 * begin.elapsed_time(end) / args.batch)
        return samples[3:]

    graphed = times(graph.replay)
    say("graph timed")
    results.put((graphed, times(run)))
    say("eager timed")
    gate.wait()
    os._exit(0)  # NCCL's teardown behind a captured graph can take long, and there is nothing to save


def main():
    parser = argparse.ArgumentParser()
    for name, value in dict(ranks=2, tokens=1024, hidden=4096, experts=64, topk=8, inter=768,
                            samples=30, batch=10).items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--out", default="")
    args = parser.parse_args()
    args.begun = time.monotonic()
    context = mp.get_context("spawn")
    gate, results = context.Barrier(args.ranks), context.SimpleQueue()
    mp.spawn(worker, (args, gate, results), nprocs=args.ranks)
    by_rank = [results.get() for _ in range(args.ranks)]
    report = {name: [max(samples) for samples in zip(*(of_rank[i] for of_rank in by_rank))]
              for i, name in enumerate(("graph_us", "eager_us"))}
    for name in ("graph_us", "eager_us"):
        ordered = sorted(report[name])
        print(f"torch {torch.__version__} {name}: median {ordered[len(ordered) // 2]:.1f}"
              f" p10 {ordered[len(ordered) // 10]:.1f} p90 {ordered[len(ordered) * 9 // 10]:.1f}")
    report["torch"] = torch.__version__
    report["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    if args.out:
        with open(args.out, "w") as file:
            json.dump(report, file)


if __name__ == "__main__":
    main()
