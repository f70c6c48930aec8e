#!/usr/bin/env python3
"""Speed of compiled kernels on one core, as ratios of things measured in turn in this process. See ../README.md.

    benchmarks/cpu/run.py [--build=build/release] [--ceiling=FOLDER] [--json=FILE] [--quick] [CASE...]
"""

import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import masks
from common.kernels import dl_tensor, host_tensor
from common.report import Report, median
from common.plot import Bar, bar_chart
from cpu import kernels, peers as other

CASES = {}


def case(function):
    CASES[function.__name__.replace("_", "-")] = function
    return function


def inputs_of(tensors, mask, n):
    """q, k, v and what the mask captures."""
    return tensors.inputs + [host_tensor(*part) for part in mask.captured(n)]


class Bench(Report):
    """What all cases share: options, the probe, kernels compiled so far, and the lines that come out."""

    def __init__(self, options, folder, openmp):
        super().__init__()
        self.options, self.folder, self.openmp = options, folder, openmp
        self.probe = kernels.build_probe(folder, options.ceiling)
        self.peak = self.probe.peak_avx512 if self.probe.has_avx512() else self.probe.peak_avx2
        self.compiler = kernels.Compiler(options.build / "bin" / "attn-compile", folder)
        self.sets = {}

    def tensors(self, n, d):
        if (n, d) not in self.sets:
            self.sets.clear()  # one size at a time
            self.sets[n, d] = kernels.Tensors(self.probe, n, d)
        return self.sets[n, d]

    def on_all_cpus(self, threads):
        """Kernels, too, run on so many threads, anywhere; 1: on the core of this benchmark."""
        os.sched_setaffinity(0, self.options.all_cpus if threads > 1 else {self.options.cpu})
        self.openmp.omp_set_num_threads(threads)

    def rounds(self, contestants, seconds=None, clock=time.thread_time, least=7):
        """Times the contestants in turn, again and again: a list of {name: seconds} and the peak beside them."""
        for run in contestants.values():
            run()
        rounds, start = [], time.perf_counter()
        seconds = seconds or (0.5 if self.options.quick else 4.0)
        while len(rounds) < least or (time.perf_counter() - start < seconds and len(rounds) < 400):
            one = {"peak": self.peak()}
            for name, run in contestants.items():
                begin = clock()
                run()
                one[name] = clock() - begin
            rounds.append(one)
        return rounds


@case
def dense(bench):
    """Time of dense attention as a fraction of the FMA peak, and against the kernel written by hand."""
    for d in (64, 128):
        for n in (512, 1001, 2047, 4096, 8192):
            t = bench.tensors(n, d)
            kernel = bench.compiler.kernel(masks.DENSE, d)
            contestants = {"ours": lambda: kernel.run(t.inputs, t.output)}
            ceiling = getattr(bench.probe, "ceiling_f32", None) if n % 16 == 0 and bench.options.ceiling else None
            fields = {"N": n, "D": d}
            if ceiling:
                contestants["ceiling"] = lambda: ceiling(n, d, False, 0, t.q, t.k, t.v, t.other)
            rounds = bench.rounds(contestants)
            flops = 4.0 * d * n * n
            fields["ms"] = 1e3 * median(rounds, lambda r: r["ours"])
            fields["of_peak"] = median(rounds, lambda r: flops / r["ours"] * 1e-9 / r["peak"])
            if ceiling:
                fields["of_ceiling"] = median(rounds, lambda r: r["ceiling"] / r["ours"])
                fields["difference"] = bench.probe.largest_difference(t.out, t.other, n * d)
            bench.add("dense", **fields)


@case
def sparse(bench):
    """Time under a mask over (time without x share of pairs kept): 1 would be no loss at all."""
    n = 4096
    for d in (64, 128):
        t = bench.tensors(n, d)
        full = bench.compiler.kernel(masks.DENSE, d)
        for mask in masks.SPARSE:
            kernel = bench.compiler.kernel(mask, d)
            inputs = inputs_of(t, mask, n)
            contestants = {"dense": lambda: full.run(t.inputs, t.output), "ours": lambda: kernel.run(inputs, t.output)}
            window = {"causal": 0, "window": 256}.get(mask.name, -1)
            if bench.options.ceiling and window >= 0:
                contestants["ceiling"] = lambda: bench.probe.ceiling_f32(n, d, True, window, t.q, t.k, t.v, t.other)
            rounds = bench.rounds(contestants)
            density = mask.kept(n) / n**2
            fields = {"mask": mask.name, "N": n, "D": d, "density": density, "ms": 1e3 * median(rounds, lambda r: r["ours"]),
                      "over_dense": median(rounds, lambda r: r["ours"] / (r["dense"] * density))}
            if "ceiling" in contestants:
                fields["of_ceiling"] = median(rounds, lambda r: r["ceiling"] / r["ours"])
                fields["difference"] = bench.probe.largest_difference(t.out, t.other, n * d)
            bench.add("sparse", **fields)


@case
def bf16(bench):
    """bf16 against f32, and where there are AMX tiles against their peak and the kernel written by hand; masks against dense."""
    has_amx = bench.probe.has_amx()
    for d in (64, 128):
        for n in (2048, 4096, 8192):
            wide = bench.tensors(n, d)
            t = kernels.NarrowTensors(bench.probe, wide, n, d)
            in_f32, full = bench.compiler.kernel(masks.DENSE, d), bench.compiler.kernel(masks.DENSE, d, element="bf16")
            for mask in (masks.DENSE, *(masks.SPARSE[:2] if n == 4096 else ())):
                kernel = bench.compiler.kernel(mask, d, element="bf16")
                contestants = {"dense": lambda: full.run(t.inputs, t.output), "ours": lambda: kernel.run(t.inputs, t.output),
                               "f32": lambda: in_f32.run(wide.inputs, wide.output)}
                if has_amx:
                    contestants["amx"] = bench.probe.peak_amx
                    if bench.options.ceiling:
                        window = {"causal": 0, "window": 256}.get(mask.name, 0)
                        contestants["ceiling"] = lambda: bench.probe.ceiling_bf16(n, d, mask is not masks.DENSE, window, t.q, t.k, t.v, t.other)
                rounds = bench.rounds(contestants)
                kept = n * n if mask is masks.DENSE else mask.kept(n)
                fields = {"mask": mask.name, "N": n, "D": d, "ms": 1e3 * median(rounds, lambda r: r["ours"]),
                          "over_dense": median(rounds, lambda r: r["ours"] / (r["dense"] * kept / n**2))}
                if mask is masks.DENSE:
                    fields["speedup_over_f32"] = median(rounds, lambda r: r["f32"] / r["ours"])
                if has_amx:
                    work = 20000 * 4 * 16384  # flops of one peak_amx
                    fields["of_peak"] = median(rounds, lambda r: 4.0 * d * kept / r["ours"] * r["amx"] / work)
                if "ceiling" in contestants:
                    fields["of_ceiling"] = median(rounds, lambda r: r["ceiling"] / r["ours"])
                bench.add("bf16", **fields)


@case
def decode(bench):
    """One or a few queries over 32,768 keys, against a loop that reads K and V: 1 is the memory's bandwidth."""
    keys, key_heads = 32768, 8
    for d in (64, 128):
        size = key_heads * keys * d
        wide = [bench.probe.tensor(n, seed) for seed, n in enumerate((4 * key_heads * d * 4, size, size), 1)]
        narrow = [bench.probe.tensor((n + 1) // 2, 1) for n in (4 * key_heads * d * 4, size, size)]
        for x, y, n in zip(wide, narrow, (4 * key_heads * d * 4, size, size)):
            bench.probe.narrow(x, y, n)
        out = bench.probe.tensor(4 * key_heads * d * 4, 1)
        for element, (q, k, v), width in (("f32", wide, 4), ("bf16", narrow, 2)):
            kernel = bench.compiler.kernel(masks.DENSE, d, element=element)
            for heads, queries in ((key_heads, 1), (key_heads, 4), (4 * key_heads, 1)):
                shapes = ((q, heads, queries), (k, key_heads, keys), (v, key_heads, keys), (out, heads, queries))
                *inputs, output = (dl_tensor(x, (1, h, n, d), element) for x, h, n in shapes)

                def read():
                    bench.probe.read_all(k, size * width)
                    bench.probe.read_all(v, size * width)

                for threads in sorted({1, len(bench.options.all_cpus)}):
                    bench.on_all_cpus(threads)
                    rounds = bench.rounds({"read": read, "ours": lambda: kernel.run(inputs, output)},
                                          clock=time.perf_counter if threads > 1 else time.thread_time)
                    bench.add("decode", type=element, D=d, heads=heads, key_heads=key_heads, N=queries, M=keys, threads=threads,
                              GB_s=median(rounds, lambda r: 2e-9 * size * width / r["ours"]),
                              of_read=median(rounds, lambda r: r["read"] / r["ours"]))
        bench.on_all_cpus(1)


@case
def plan(bench):
    """Time and memory of the plan at 262,144 tokens, against the kernel that follows it (one head)."""
    n, d = 262144, 64
    t = bench.tensors(n, d)
    for mask in masks.LONG:
        kernel, inputs = bench.compiler.kernel(mask, d), inputs_of(t, mask, n)
        plan_once = lambda: kernel.free(kernel.plan(inputs))
        memory = kernels.peak_growth(plan_once)
        rounds = bench.rounds({"plan": plan_once}, seconds=0.5)
        made = kernel.plan(inputs)
        runs = []
        for _ in range(3):
            begin = time.thread_time()
            kernel.run_planned(made, inputs, t.output)
            runs.append(time.thread_time() - begin)
        kernel.free(made)
        seconds = median(rounds, lambda r: r["plan"])
        bench.add("plan", mask=mask.name, N=n, plan_ms=1e3 * seconds, kernel_ms=1e3 * statistics.median(runs),
                  of_kernel=seconds / statistics.median(runs), peak_MiB=memory / 2**20)


@case
def threads(bench):
    """Wall time of two threads against one."""
    if len(bench.options.all_cpus) < 2:
        return
    bench.on_all_cpus(len(bench.options.all_cpus))
    n, d = 4096, 64
    t = bench.tensors(n, d)

    def on(count, kernel, inputs):
        bench.openmp.omp_set_num_threads(count)
        kernel.run(inputs, t.output)

    for mask in (masks.DENSE, *masks.SPARSE[:2]):
        kernel, inputs = bench.compiler.kernel(mask, d), inputs_of(t, mask, n)
        rounds = bench.rounds({"one": lambda: on(1, kernel, inputs), "two": lambda: on(2, kernel, inputs)},
                              clock=time.perf_counter)
        bench.add("threads", mask=mask.name, N=n, D=d, speedup=median(rounds, lambda r: r["one"] / r["two"]),
                  best=min(r["one"] for r in rounds) / min(r["two"] for r in rounds))
    bench.on_all_cpus(1)


@case
def linear(bench):
    """Linear attention: 4 N D^2 as a fraction of the FMA peak, causal over non-causal, and against the kernel written by hand."""
    d = 64
    for n in (4096, 16384, 65536):
        t = bench.tensors(n, d)
        runs = {causal: bench.compiler.kernel(kernels.Linear(causal), d) for causal in (False, True)}
        contestants = {causal: lambda kernel=kernel: kernel.run(t.inputs, t.output) for causal, kernel in runs.items()}
        ceiling = getattr(bench.probe, "ceiling_linear", None) if bench.options.ceiling else None
        for causal in runs if ceiling else ():
            contestants["ceiling", causal] = lambda causal=causal: ceiling(n, causal, t.q, t.k, t.v, t.other)
        rounds = bench.rounds(contestants)
        for causal in runs:
            fields = {"N": n, "D": d, "causal": causal, "ns_per_token": 1e9 / n * median(rounds, lambda r: r[causal]),
                      "of_peak": median(rounds, lambda r: 4.0 * n * d * d / r[causal] * 1e-9 / r["peak"])}
            if causal:
                fields["over_non_causal"] = median(rounds, lambda r: r[True] / r[False])
            if ceiling:
                fields["of_ceiling"] = median(rounds, lambda r: r["ceiling", causal] / r[causal])
            bench.add("linear", **fields)


@case
def avx2(bench):
    """The AVX2 form as a fraction of this core's AVX2 FMA peak."""
    n = 2048
    for d in (64, 128):
        t = bench.tensors(n, d)
        kernel = bench.compiler.kernel(masks.DENSE, d, "--cpu=x86-64-v3")
        rounds = bench.rounds({"ours": lambda: kernel.run(t.inputs, t.output), "avx2": bench.probe.peak_avx2})
        work = 100000 * 12 * 8 * 2  # flops of one peak_avx2
        bench.add("avx2", N=n, D=d, of_peak=median(rounds, lambda r: 4.0 * d * n * n / r["ours"] * r["avx2"] / work))


def peer_problems(bench, torch, threads):
    """What the peers are asked for: prefill without and with masks, and one query over a long cache."""
    types = {"f32": torch.float32, "bf16": torch.bfloat16}
    captured_types = {"i32": torch.int32, "i8": torch.int8}
    for element, dtype in types.items():
        for d in (64, 128):
            dense = [(masks.DENSE, 2048, 2048), (masks.CAUSAL, 2048, 2048), (masks.DENSE, 1, 32768)]
            sparse = [(mask, 4096, 4096) for mask in (masks.WINDOW, masks.DOCUMENTS, masks.table_mask(128))]
            if d == 128 and threads > 1:
                continue
            for mask, queries, keys in dense + sparse * (d == 64):
                heads = 2 if queries > 1 else 4
                torch.manual_seed(1)
                q, k, v = (torch.randn(1, heads, n, d).to(dtype) for n in (queries, keys, keys))
                captured = [torch.tensor(values, dtype=captured_types[kind]).view(shape)
                            for kind, shape, values in mask.captured(keys)]
                yield other.Problem(mask, element, heads, queries, keys, d, q, k, v, captured, threads)


@case
def peers(bench):
    """Time of PyTorch, ONNX Runtime and IREE over ours, by processor time on one thread and wall time on all."""
    found = other.Peers()
    bench.add("peers", versions={name: peer.version for name, peer in found.found.items()}, missing=found.missing)
    if not found.torch:
        return  # it makes the data of all
    bars = []
    for threads in sorted({1, len(bench.options.all_cpus)}):
        bench.on_all_cpus(threads)
        for p in peer_problems(bench, found.torch, threads):
            kernel = bench.compiler.kernel(p.mask, p.d, element=p.element)
            out = found.torch.empty_like(p.q)
            *inputs, output = (dl_tensor(x.data_ptr(), tuple(x.shape), p.element) for x in (p.q, p.k, p.v, out))
            inputs += [host_tensor(*part) for part in p.mask.captured(p.keys)]
            runs, results, firsts, missing = found.contestants(p)
            slow = [name for name, seconds in firsts.items() if seconds > 1 and name == "iree"]
            for name in slow:
                del runs[name]
            runs["ours"] = lambda: kernel.run(inputs, output)
            rounds = bench.rounds(runs, clock=time.perf_counter if threads > 1 else time.thread_time, least=5)
            name = "decode" if p.queries == 1 else p.mask.name
            fields = {"threads": threads, "type": p.element, "D": p.d, "pattern": name, "heads": p.heads, "N": p.queries,
                      "M": p.keys, "ms": 1e3 * median(rounds, lambda r: r["ours"])}
            for peer in results:
                seconds = lambda r: firsts[peer] if peer in slow else r[peer]  # seconds a call: one call will do
                fields[f"{peer}_ms"] = 1e3 * median(rounds, seconds)
                fields[f"over_{peer}"] = median(rounds, lambda r: seconds(r) / r["ours"])
                fields[f"difference_{peer}"] = (results[peer].float() - out.float()).abs().max().item()
            bench.add("peers", **fields, missing=missing)
            if p.d == 64:
                bars += [Bar(f"{p.element} {name}", f"{peer}, {threads} thread{'s' * (threads > 1)}", fields[f"over_{peer}"])
                         for peer in results]
    bench.on_all_cpus(1)
    if bench.options.plot:
        bench.options.plot.write_text(bar_chart(bars, "time over ours, head_dim 64"))


@case
def compile_time(bench):
    """From a parsed spec to a callable kernel, by stage, in milliseconds of processor time of the whole process."""
    program = bench.options.build / "bin" / "attn-bench-compile"
    specs = [bench.compiler.spec(mask, 64) for mask in (masks.DENSE, *masks.SPARSE[:1], *masks.COMPILED)]
    rounds = 5 if bench.options.quick else 15
    done = subprocess.run([program, f"--rounds={rounds}", *map(str, specs)], check=True, stdout=subprocess.PIPE, text=True)
    for text in done.stdout.splitlines():
        bench.add("compile-time", **json.loads(text))


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build" / "release")
    parser.add_argument("--ceiling", type=pathlib.Path, help="folder of attn_f32.h, hand-written kernels to compare with")
    parser.add_argument("--json", type=pathlib.Path, help="also write the lines to this file")
    parser.add_argument("--plot", type=pathlib.Path, help="SVG of the comparison with other programs")
    parser.add_argument("--quick", action="store_true", help="short runs")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="the core to run on")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    options = parser.parse_args()
    for name in options.cases:
        if name not in CASES:
            parser.error(f"no case {name}; there are {', '.join(CASES)}")
    options.all_cpus = os.sched_getaffinity(0)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["KMP_BLOCKTIME"] = "0"  # threads that wait do not take the cores of who is next
    os.environ["OMP_WAIT_POLICY"] = "passive"
    openmp = kernels.open_openmp()  # before this thread is pinned: its threads take over what they find at the start
    os.sched_setaffinity(0, {options.cpu})
    with tempfile.TemporaryDirectory(prefix="attn-bench-") as folder:
        bench = Bench(options, pathlib.Path(folder), openmp)
        for name in options.cases or CASES:
            CASES[name](bench)
    if options.json:
        bench.write(options.json)
    bench.print_tables({name: run.__doc__ for name, run in CASES.items()})


if __name__ == "__main__":
    main()
