#!/usr/bin/env python3
"""Times fusescope's grouped GEMM beside DeepGEMM's, in one process, on the same tensors.

    compare_gemm.py --library build/.../libfusescope_gemm_c.so [--rounds 15] [--rest-ms 25] --out samples.json

Needs PyTorch, and an importable `deep_gemm`, which is not part of this project. In a round every form runs
one batch: a CUDA graph of 8 launches over two sets of inputs that are together larger than the L2 cache, between
two events. The order of the forms rotates. Then the same launches again under torch.profiler, for each
kernel's own duration. Outputs are checked first against fp64, on rows from all over. Random data everywhere,
padding included; outputs poisoned before the check.
"""
import argparse
import ctypes
import json
import time

import deep_gemm
import torch

BATCH = 8
SETS = 2
TOPK = 8
CASES = {  # experts, rows per expert, N, K, uniform routing
    "gate_up": (64, 256, 1536, 4096, False),
    "down": (64, 256, 4096, 768, False),
    "gate_up_uniform": (64, 256, 1536, 4096, True),
    "down_uniform": (64, 256, 4096, 768, True),
}
OURS = {  # variant, rows that hold nothing left out (slack), tiles dealt out by a counter
    "round robin": ("n256_s4_store", False, False),
    "counter": ("n256_s4_store", False, True),
    "slack, round robin": ("n256_s4_store", True, False),
    "slack, counter": ("n256_s4_store", True, True),
    "160x256, round robin": ("n256_s4_t_store", True, False),
    "160x256, counter": ("n256_s4_t_store", True, True),
    "288x128, round robin": ("n128_s4_t_store", True, False),
    "288x128, counter": ("n128_s4_t_store", True, True),
}
FORMS = ["DeepGEMM", *OURS]


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.fusescope_gemm_create.restype = ctypes.c_void_p

    def create(self, a, b, d, routing, variant, slack, counter):
        error = ctypes.create_string_buffer(256)
        pointer = lambda t: ctypes.c_void_p(t.data_ptr() if t is not None else None)
        handle = self.c.fusescope_gemm_create(
            ctypes.c_int64(a.shape[0]), ctypes.c_int64(b.shape[1]), ctypes.c_int64(b.shape[2]), b.shape[0],
            pointer(a), pointer(b), pointer(d), pointer(routing.expert_rows),
            pointer(routing.slack if slack else None), pointer(routing.next_tile if counter else None),
            variant.encode(), error)
        if not handle:
            raise SystemExit(error.value.decode())
        return handle

    def launch(self, handle, workers):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        error = self.c.fusescope_gemm_launch(ctypes.c_void_p(handle), workers, stream)
        if error:
            raise SystemExit(f"launch failed: CUDA error {error}")

    def read_clocks(self, to):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.c.fusescope_gemm_read_clocks(ctypes.c_void_p(to.data_ptr()), to.shape[0], stream)


class Routing:
    """The same rows in both libraries' words. DeepGEMM marks padding with -1."""

    def __init__(self, experts, rows, uniform):
        hits = [rows] * experts
        if uniform:
            scores = torch.rand(experts * rows // TOPK, experts, generator=torch.Generator().manual_seed(7))
            hits = torch.bincount(scores.topk(TOPK).indices.flatten(), minlength=experts).tolist()
        prefix, slack, index = [0], [], []
        for expert, count in enumerate(hits):
            blocks = -(-count // 128)
            slack += [0] * (blocks - 1) + [blocks * 128 - count] * min(blocks, 1)
            index += [expert] * count + [-1] * (blocks * 128 - count)
            prefix.append(prefix[-1] + blocks * 128)
        self.hits, self.rows = sum(hits), prefix[-1]
        to_gpu = lambda values: torch.tensor(values, dtype=torch.int32, device="cuda")
        self.expert_rows, self.slack, self.m_indices = to_gpu(prefix), to_gpu(slack), to_gpu(index)
        self.next_tile = to_gpu([0])
        self.valid = torch.tensor([i for i, e in enumerate(index) if e >= 0])


def relative_error(a, b, d, routing):
    rows = routing.valid[:: max(1, len(routing.valid) // 256)].cuda()
    experts = routing.m_indices[rows].long()
    error = norm = 0.0
    for row, expert in zip(rows.tolist(), experts.tolist()):
        want = b[expert].double() @ a[row].double()
        error += float((d[row].double() - want).square().sum())
        norm += float(want.square().sum())
    return (error / norm) ** 0.5


def ghz_of(before, after):
    cycles, ns = (after - before).double().unbind(1)
    seen = (before[:, 1] != 0) & (ns > 0)
    return float((cycles[seen] / ns[seen]).median())


def graph_of(launches):
    for launch in launches:
        launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(BATCH):
            launches[i % len(launches)]()
    return graph


def kernel_times(launches_of, rounds, rest_s):
    """Durations by form from the profiler. [us]"""
    forms = list(launches_of)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True) as profile:
        for i in range(rounds):
            for form in forms[i % len(forms):] + forms[:i % len(forms)]:
                time.sleep(rest_s)
                for j in range(BATCH):
                    launches_of[form][j % SETS]()
                torch.cuda.synchronize()
    events = [e for e in profile.events() if "gemm" in e.name and e.device_type == torch.autograd.DeviceType.CUDA]
    events.sort(key=lambda e: e.time_range.start)
    times = {form: [] for form in forms}
    names = {form: set() for form in forms}
    position = 0
    for i in range(rounds):
        for form in forms[i % len(forms):] + forms[:i % len(forms)]:
            batch = events[position: position + BATCH]
            position += BATCH
            times[form] += [e.time_range.elapsed_us() for e in batch]
            names[form] |= {e.name for e in batch}
    if position != len(events):
        raise SystemExit(f"{len(events)} GEMM kernels were profiled, {position} were launched")
    return times, names


def quantiles(values):
    values = sorted(values)
    return [values[int(q * (len(values) - 1))] for q in (0.5, 0.1, 0.9)]


def run_case(name, library, args, sms):
    experts, rows, n, k, uniform = CASES[name]
    routing = Routing(experts, rows, uniform)
    torch.manual_seed(11)
    launches_of = {form: [] for form in FORMS}
    sets = []
    for _ in range(SETS):
        a = torch.randn(routing.rows, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(experts, n, k, device="cuda", dtype=torch.bfloat16)
        d = torch.full((routing.rows, n), float("nan"), device="cuda", dtype=torch.bfloat16)
        sets.append((a, b, d))
        for form, choices in OURS.items():
            handle = library.create(a, b, d, routing, *choices)
            launches_of[form].append(lambda h=handle: library.launch(h, sms))
        launches_of["DeepGEMM"].append(
            lambda a=a, b=b, d=d: deep_gemm.m_grouped_bf16_gemm_nt_contiguous(a, b, d, routing.m_indices))
    errors = {}
    for form in FORMS:
        a, b, d = sets[0]
        d.fill_(float("nan"))
        launches_of[form][0]()
        torch.cuda.synchronize()
        errors[form] = relative_error(a, b, d, routing)
        if not errors[form] < 4e-3:
            raise SystemExit(f"{name}, {form}: relative error {errors[form]}")

    graphs = {form: graph_of(launches_of[form]) for form in FORMS}
    clocks = torch.zeros(2, sms, 2, dtype=torch.int64, device="cuda")
    samples = {form: {"us": [], "ghz": []} for form in FORMS}
    for i in range(-2, args.rounds):
        for form in FORMS[i % len(FORMS):] + FORMS[:i % len(FORMS)]:
            time.sleep(args.rest_ms * 1e-3)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            library.read_clocks(clocks[0])
            begin.record()
            graphs[form].replay()
            end.record()
            library.read_clocks(clocks[1])
            torch.cuda.synchronize()
            if i >= 0:
                samples[form]["us"].append(begin.elapsed_time(end) * 1e3 / BATCH)
                samples[form]["ghz"].append(ghz_of(clocks[0].cpu(), clocks[1].cpu()))
    kernels, names = kernel_times(launches_of, args.rounds, args.rest_ms * 1e-3)

    base, base_kernel = quantiles(samples["DeepGEMM"]["us"])[0], quantiles(kernels["DeepGEMM"])[0]
    for form in FORMS:
        us, low, high = quantiles(samples[form]["us"])
        kernel, kernel_low, kernel_high = quantiles(kernels[form])
        ghz = quantiles(samples[form]["ghz"])[0]
        tflops = 2e-6 * routing.hits * n * k / us
        print(f"{name:16} {form:24} {us:7.1f} ({low:.1f} to {high:.1f}) us  x{base / us:.3f}   kernel {kernel:7.1f} "
              f"({kernel_low:.1f} to {kernel_high:.1f})  x{base_kernel / kernel:.3f}   {tflops:5.0f} TFLOP/s "
              f"{ghz:.3f} GHz {tflops / (sms * 4.096 * ghz):.1%}  error {errors[form]:.1e}", flush=True)
    return {"experts": experts, "n": n, "k": k, "rows": routing.rows, "hits": routing.hits,
            "forms": {form: {"batch_us": samples[form]["us"], "sm_ghz": samples[form]["ghz"],
                             "kernel_us": kernels[form], "kernels": sorted(names[form]),
                             "relative_error": errors[form]} for form in FORMS}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rest-ms", type=float, default=25, help="pause before each batch; 0: sustained load")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    library = Library(args.library)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__,
              "deep_gemm": getattr(deep_gemm, "__version__", "?"), "batch": BATCH, "rest_ms": args.rest_ms,
              "cases": {}}
    for name in args.cases:
        result["cases"][name] = run_case(name, library, args, sms)
        with open(args.out, "w", encoding="utf-8") as out:
            json.dump(result, out)


if __name__ == "__main__":
    main()
