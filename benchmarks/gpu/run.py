#!/usr/bin/env python3
"""Checks and times compiled kernels on a GPU, beside PyTorch's attention. See ../README.md.

    benchmarks/gpu/run.py --compile=FOLDER [--chip=sm_90] [--quick]    on a machine with the compiler
    benchmarks/gpu/run.py --run=FOLDER [--json=FILE]                   on one with a GPU and Python, PyTorch if it is there
    benchmarks/gpu/run.py --emulated --quick                           both, without a GPU: nothing is timed
"""

import argparse
import ctypes
import functools
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import npy
from common.kernels import Kernel, build_library
from common.report import Report, median
from gpu import cases
from gpu.device import Buffer, Device
from gpu.peers import open_peers

# A result may be off by so much of the largest: roundings of its type and of the weights, in f32 of the exponentials.
ALLOWED = {"bf16": 2 * 2**-8, "f16": 2 * 2**-11, "f32": 32 * 2**-23}
PEAKS = {"H200": (989.5, 4800), "H100": (989.5, 3350), "A100": (312, 2039)}  # bf16 TFLOP/s and GB/s of the SXM cards


@functools.cache
def numbers(count, seed):
    draw = random.Random(seed)
    return [draw.gauss(0, 1) for _ in range(count)]


#
# With the compiler
#


def input_files(folder, case):
    """{argument: file} of a check; drawn where they are not there yet."""
    function, files = case.function, {}
    for seed, (name, shape) in enumerate(zip("qkv", case.shapes())):
        files[name] = folder / f"{name}_{function.element}_{'x'.join(map(str, shape))}.npy"
        if not files[name].exists():
            npy.write(files[name], function.element, shape, npy.encode(function.element, numbers(math.prod(shape), seed)))
    for element, shape, values in function.mask.captured(case.keys):
        name = function.mask.argument.split(":")[0].strip("% ")
        files[name] = folder / f"{function.name}_{name}.npy"
        npy.write(files[name], element, shape, values.tobytes())
    return files


def expected_file(folder, case):
    return folder / f"{case.function.name}_{case.queries}.npy"


def shorten(path, shape):
    """f64 to f32, as the folder may have to travel."""
    npy.write(path, "f32", shape, npy.encode("f32", npy.decode("f64", npy.read_bytes(path, "f64"))))


def compile_all(folder, options):
    """Kernels, and inputs and results of the checks."""
    folder.mkdir(parents=True, exist_ok=True)
    compiler, runner = (options.build / "bin" / name for name in ("attn-compile", "attn-run"))
    checks, timed = cases.checks(options.quick), cases.timed(options.quick)
    functions = {case.function.name: case.function for case in checks + timed}
    spec, flags = folder / "kernels.mlir", ["--target=cuda", f"--chip={options.chip}"]
    spec.write_text("\n".join(function.spec() for function in functions.values()))
    build_library(compiler, spec, folder / "kernels", flags, ["-ldl", "-lm"])
    if options.emulated:
        subprocess.run([compiler, spec, *flags, "--emit=gpu", "-o", folder / "emulated.mlir"], check=True)
    for case in checks:
        inputs = [f"--input={name}={path}" for name, path in input_files(folder, case).items()]
        subprocess.run([runner, spec, f"--function={case.function.name}", "--reference", *inputs,
                        f"--output=out={expected_file(folder, case)}"], check=True, stdout=subprocess.DEVNULL)
        shorten(expected_file(folder, case), case.shapes()[3])
    (folder / "bundle.json").write_text(json.dumps({"chip": options.chip, "quick": options.quick}))


#
# With the GPU
#


class Bench(Report):
    def __init__(self, folder, options):
        super().__init__()
        self.folder, self.options = folder, options
        self.quick = json.loads((folder / "bundle.json").read_text())["quick"]
        self.device = Device(*([open_fake_driver(folder, options)] if options.emulated else []))
        self.loaded = ctypes.CDLL(str(folder / "kernels.so"))
        self.start = time.monotonic()

    def kernel(self, case):
        return Kernel(self.loaded, case.function.name, last=[ctypes.c_void_p(None)])

    def buffers(self, case):
        """Of q, k, v, captured tensors, and the result behind them."""
        *inputs, out = case.shapes()
        captured = case.function.mask.captured(case.keys)
        buffers = [Buffer(self.device, case.function.element, shape) for shape in inputs]
        for element, shape, values in captured:
            buffers.append(Buffer(self.device, element, shape))
            buffers[-1].write(values.tobytes())
        return [*buffers, Buffer(self.device, case.function.element, out)]

    def check(self, case):
        *inputs, out = self.buffers(case)
        for buffer, path in zip(inputs, input_files(self.folder, case).values()):
            buffer.write(npy.read_bytes(path, buffer.element))
        self.kernel(case).run([b.tensor for b in inputs], out.tensor)
        expected = npy.decode("f32", npy.read_bytes(expected_file(self.folder, case), "f32"))
        error = max(a if (a := abs(x - y)) == a else math.inf
                    for x, y in zip(npy.decode(case.function.element, out.read()), expected, strict=True))
        allowed = ALLOWED[case.function.element] * max(map(abs, expected))
        for buffer in (*inputs, out):
            buffer.free()
        self.add("check", **case.extents(), error=error, allowed=allowed, passed=error <= allowed)

    def time(self, case, peers):
        """Medians over rounds in which everybody is run in turn; `over_X` is our time / X's, of one round each."""
        if self.options.emulated:
            case = case.small()
        *inputs, out = self.buffers(case)
        for seed, buffer in enumerate(inputs[:3]):
            buffer.fill(npy.encode(case.function.element, numbers(250007, seed)))
        kernel, tensors = self.kernel(case), [b.tensor for b in inputs]
        begin = time.perf_counter()
        plan = kernel.plan(tensors)
        fields = {**case.extents(), "plan_ms": 1e3 * (time.perf_counter() - begin)}

        def ours(count):
            for _ in range(count):
                kernel.run_planned(plan, tensors, out.tensor)

        ours(1)
        self.device.wait()
        if not self.options.emulated:
            found, missing = peers.contestants(case, inputs)
            contestants = {"ours": ours, **{name: enqueue for name, (enqueue, _) in found.items()}}
            fields.update(self.speeds(case, contestants))
            for name, (_, result) in found.items():
                fields[f"difference_{name}"] = peers.difference(out, result)
            fields.update(missing=missing, published=case.published())
        kernel.free(plan)
        for buffer in (*inputs, out):
            buffer.free()
        self.add("time", **fields)

    def speeds(self, case, contestants):
        counts = {}
        for name, enqueue in contestants.items():
            enqueue(2)
            counts[name] = max(1, min(50, round(2e-3 / self.device.seconds(lambda: enqueue(1)))))
        begin = time.perf_counter()
        contestants["ours"](20)
        host = (time.perf_counter() - begin) / 20
        rounds = []
        while len(rounds) < 7 or (time.perf_counter() - begin < 0.7 and len(rounds) < 200):
            rounds.append({name: self.device.seconds(lambda: enqueue(counts[name])) / counts[name]
                           for name, enqueue in contestants.items()})
        ours = median(rounds, lambda r: r["ours"])
        fields = {"ms": 1e3 * ours, "enqueue_us": 1e6 * host, **self.rates(case, ours)}
        for name in list(contestants)[1:]:
            fields[f"{name}_ms"] = 1e3 * median(rounds, lambda r: r[name])
            fields[f"over_{name}"] = median(rounds, lambda r: r["ours"] / r[name])
        return fields

    def rates(self, case, seconds):
        """Of few queries memory counts, otherwise products; shares where the card's peak is known."""
        peak = next((peaks for name, peaks in PEAKS.items() if name in self.device.name()), None)
        if case.queries == 1:
            rate = 2 * sum(map(math.prod, case.shapes())) / seconds * 1e-9
            return {"GB_s": rate, "of_peak": rate / peak[1] if peak else None}
        rate = case.flops() / seconds * 1e-12
        return {"TFLOP_s": rate, "of_peak": rate / peak[0] if peak else None}

    def run(self):
        peers = None if self.options.emulated else open_peers()
        self.add("device", name="emulated" if self.options.emulated else self.device.name())
        for case in cases.checks(self.quick):
            self.check(case)
        for case in cases.timed(self.quick):
            if time.monotonic() - self.start > self.options.seconds:
                self.add("skipped", **case.extents(), why=f"{self.options.seconds} seconds are over")
            else:
                self.time(case, peers)


def open_fake_driver(folder, options):
    """Its kernels are run by the emulator. The compiled object then finds it under the driver's name."""
    os.environ["FAKE_CUDA_KERNELS"] = str(folder / "emulated.mlir")
    return options.build / "test" / "FakeDriver" / "libcuda.so.1"


TITLES = {"device": "where", "check": "against the float64 reference", "time": "beside PyTorch on the same data",
          "skipped": "not measured"}


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build" / "release")
    parser.add_argument("--chip", help="sm_90, or sm_80 for --emulated")
    parser.add_argument("--compile", type=pathlib.Path, metavar="FOLDER", help="write kernels and the data of checks there")
    parser.add_argument("--run", type=pathlib.Path, metavar="FOLDER", help="what --compile wrote; neither: both in turn")
    parser.add_argument("--emulated", action="store_true", help="no GPU: the fake driver, small extents, no times")
    parser.add_argument("--quick", action="store_true", help="few cases")
    parser.add_argument("--seconds", type=float, default=240, help="start no case after so long")
    parser.add_argument("--json", type=pathlib.Path, help="also write the lines to this file")
    options = parser.parse_args()
    options.chip = options.chip or ("sm_80" if options.emulated else "sm_90")
    with tempfile.TemporaryDirectory(prefix="attn-gpu-") as temporary:
        folder = options.run or options.compile or pathlib.Path(temporary)
        if not options.run:
            compile_all(folder, options)
        if options.compile and not options.run:
            return
        bench = Bench(folder, options)
        bench.run()
    if options.json:
        bench.write(options.json)
    bench.print_tables(TITLES)
    if wrong := [line for line in bench.lines if line.get("passed") is False]:
        sys.exit(f"{len(wrong)} checks failed")


if __name__ == "__main__":
    main()
