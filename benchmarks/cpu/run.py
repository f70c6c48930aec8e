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
from common.kernels import host_tensor
from common.report import Report, median
from cpu import kernels

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

    def rounds(self, contestants, seconds=None, clock=time.thread_time):
        """Times the contestants in turn, again and again: a list of {name: seconds} and the peak beside them."""
        for run in contestants.values():
            run()
        rounds, start = [], time.perf_counter()
        seconds = seconds or (0.5 if self.options.quick else 4.0)
        while len(rounds) < 7 or (time.perf_counter() - start < seconds and len(rounds) < 400):
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
    os.sched_setaffinity(0, bench.options.all_cpus)
    openmp = bench.openmp
    n, d = 4096, 64
    t = bench.tensors(n, d)

    def on(count, kernel, inputs):
        openmp.omp_set_num_threads(count)
        kernel.run(inputs, t.output)

    for mask in (masks.DENSE, *masks.SPARSE[:2]):
        kernel, inputs = bench.compiler.kernel(mask, d), inputs_of(t, mask, n)
        rounds = bench.rounds({"one": lambda: on(1, kernel, inputs), "two": lambda: on(2, kernel, inputs)},
                              clock=time.perf_counter)
        bench.add("threads", mask=mask.name, N=n, D=d, speedup=median(rounds, lambda r: r["one"] / r["two"]),
                  best=min(r["one"] for r in rounds) / min(r["two"] for r in rounds))
    openmp.omp_set_num_threads(1)
    os.sched_setaffinity(0, {bench.options.cpu})


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
    parser.add_argument("--quick", action="store_true", help="short runs")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="the core to run on")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    options = parser.parse_args()
    for name in options.cases:
        if name not in CASES:
            parser.error(f"no case {name}; there are {', '.join(CASES)}")
    options.all_cpus = os.sched_getaffinity(0)
    os.environ["OMP_NUM_THREADS"] = "1"
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
