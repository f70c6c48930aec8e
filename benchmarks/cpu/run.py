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

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import kernels
import masks

CASES = {}


def case(function):
    CASES[function.__name__.replace("_", "-")] = function
    return function


class Bench:
    """What all cases share: options, the probe, kernels compiled so far, and the lines that come out."""

    def __init__(self, options, folder, openmp):
        self.options, self.folder, self.openmp, self.lines = options, folder, openmp, []
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

    def report(self, case, **fields):
        line = {"case": case, **{k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in fields.items()}}
        self.lines.append(line)
        print(json.dumps(line), flush=True)


def median(rounds, value):
    return statistics.median(value(r) for r in rounds)


@case
def dense(bench):
    """Time of dense attention as a fraction of the FMA peak, and against the kernel written by hand."""
    for d in (64, 128):
        for n in (512, 1001, 2047, 4096, 8192):
            t = bench.tensors(n, d)
            kernel = bench.compiler.kernel(masks.DENSE, d)
            contestants = {"ours": lambda: kernel.run(t)}
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
            bench.report("dense", **fields)


@case
def sparse(bench):
    """Time under a mask over (time without x share of pairs kept): 1 would be no loss at all."""
    n = 4096
    for d in (64, 128):
        t = bench.tensors(n, d)
        full = bench.compiler.kernel(masks.DENSE, d)
        for mask in masks.SPARSE:
            kernel = bench.compiler.kernel(mask, d)
            captured = mask.captured(n)
            contestants = {"dense": lambda: full.run(t), "ours": lambda: kernel.run(t, captured)}
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
            bench.report("sparse", **fields)


@case
def plan(bench):
    """Time and memory of the plan at 262,144 tokens, against the kernel that follows it (one head)."""
    n, d = 262144, 64
    t = bench.tensors(n, d)
    for mask in masks.LONG:
        kernel, captured = bench.compiler.kernel(mask, d), mask.captured(n)
        memory = kernels.peak_growth(lambda: kernel.plan(t, captured))
        rounds = bench.rounds({"plan": lambda: kernel.plan(t, captured)}, seconds=0.5)
        made = kernel.plan(t, captured, keep=True)
        runs = []
        for _ in range(3):
            begin = time.thread_time()
            kernel.run_planned(made, t, captured)
            runs.append(time.thread_time() - begin)
        kernel.free(made)
        seconds = median(rounds, lambda r: r["plan"])
        bench.report("plan", mask=mask.name, N=n, plan_ms=1e3 * seconds, kernel_ms=1e3 * statistics.median(runs),
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

    def on(count, kernel, captured):
        openmp.omp_set_num_threads(count)
        kernel.run(t, captured)

    for mask in (masks.DENSE, *masks.SPARSE[:2]):
        kernel, captured = bench.compiler.kernel(mask, d), mask.captured(n)
        rounds = bench.rounds({"one": lambda: on(1, kernel, captured), "two": lambda: on(2, kernel, captured)},
                              clock=time.perf_counter)
        bench.report("threads", mask=mask.name, N=n, D=d, speedup=median(rounds, lambda r: r["one"] / r["two"]),
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
        rounds = bench.rounds({"ours": lambda: kernel.run(t), "avx2": bench.probe.peak_avx2})
        work = 100000 * 12 * 8 * 2  # flops of one peak_avx2
        bench.report("avx2", N=n, D=d, of_peak=median(rounds, lambda r: 4.0 * d * n * n / r["ours"] * r["avx2"] / work))


@case
def compile_time(bench):
    """From a parsed spec to a callable kernel, by stage, in milliseconds of processor time of the whole process."""
    program = bench.options.build / "bin" / "attn-bench-compile"
    specs = [bench.compiler.spec(mask, 64) for mask in (masks.DENSE, *masks.SPARSE[:1], *masks.COMPILED)]
    rounds = 5 if bench.options.quick else 15
    done = subprocess.run([program, f"--rounds={rounds}", *map(str, specs)], check=True, stdout=subprocess.PIPE, text=True)
    for text in done.stdout.splitlines():
        bench.report("compile", **json.loads(text))


def table(lines):
    """The lines of one case as a table, the columns in the order they came."""
    for name in dict.fromkeys(line["case"] for line in lines):
        rows = [line for line in lines if line["case"] == name]
        columns = list(dict.fromkeys(c for row in rows for c in row if c != "case"))
        cells = [columns] + [[str(row.get(c, "")) for c in columns] for row in rows]
        widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
        print(f"\n{name}: {CASES['compile-time' if name == 'compile' else name].__doc__}", file=sys.stderr)
        for row in cells:
            print("  " + "  ".join(c.rjust(w) for c, w in zip(row, widths)), file=sys.stderr)


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
        options.json.write_text("".join(json.dumps(line) + "\n" for line in bench.lines))
    table(bench.lines)


if __name__ == "__main__":
    main()
