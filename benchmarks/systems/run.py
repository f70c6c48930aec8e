#!/usr/bin/env python3
"""How work and time of the survey's systems grow with the tokens. See ../README.md.

    benchmarks/systems/run.py counts [--build=build/release] [--json=FILE] [PRESET...]
    benchmarks/systems/run.py times  [--build=build/release] [--json=FILE] [--plot=FILE.svg] [--most=TOKENS] [PRESET...]

`counts` has no clock: it fails where the operations or bytes of a plan grow faster than the survey says.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common.plot import Curve, log_log_plot
from common.report import Report
from systems.cases import SYSTEMS

COUNTED = (4096, 16384, 65536)
NEAR = 0.06  # borders of windows and the last blocks move an exponent by less
TITLES = {"counts": "exponents of the tokens in operations and bytes, between 4,096 and 65,536 tokens",
          "times": "the same of the time of a call, one core, one head"}


def output_of(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def exponent(numbers):
    """The slope of the least squares line through (log tokens, log number)."""
    points = [(math.log(n), math.log(value)) for n, value in numbers.items()]
    x, y = (sum(axis) / len(points) for axis in zip(*points))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def count(report, system, options):
    """Exponents of what the plan computes; False where one is above the survey's, or work is below it."""
    operations, moved = {}, {}
    for n in COUNTED:
        work = output_of([options.build / "bin/attn-compile", *system.arguments(n, "--shape"), "--emit=report", "--json"])
        total = work["functions"][0]
        operations[n], moved[n] = total["operations"], total["bytes_read"] + total["bytes_written"]
    ops, data = exponent(operations), exponent(moved)
    right = abs(ops - system.exponent) <= NEAR and data <= system.exponent + NEAR
    report.add("counts", system=system.name, survey=system.survey, expected=system.exponent, operations=ops, bytes=data,
               GFLOP_at_65536=operations[COUNTED[-1]] / 1e9, right=right)
    return right


def measure(report, system, options):
    """Medians for as many tokens as take seconds, and the exponent of the last half of them."""
    seconds, n = {}, 1024
    while n <= min(system.most, options.most):
        run = output_of([options.build / "bin/attn-run", *system.arguments(n, "--random"), "--bench=0.3", "--threads=1",
                         "--json"])
        seconds[n] = run["bench"]["median_s"]
        n *= 4
    tail = dict(list(seconds.items())[-3:])
    report.add("times", system=system.name, survey=system.survey, expected=system.exponent, exponent=exponent(tail),
               **{f"ms_{n}": 1e3 * t for n, t in seconds.items()})
    return Curve(system.name, list(seconds.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("counts", "times"))
    parser.add_argument("presets", nargs="*")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--plot", type=pathlib.Path)
    parser.add_argument("--most", type=int, default=1 << 20)
    options = parser.parse_intermixed_args()
    unknown = set(options.presets) - {system.preset for system in SYSTEMS}
    if unknown:
        parser.error(f"no system has the preset {', '.join(sorted(unknown))}")
    chosen = [system for system in SYSTEMS if not options.presets or system.preset in options.presets]
    report = Report()
    results = [(count if options.what == "counts" else measure)(report, system, options) for system in chosen]
    if options.json:
        report.write(options.json)
    report.print_tables(TITLES)
    if options.what == "counts":
        sys.exit(0 if all(results) else "some systems do not cost what the survey says")
    if options.plot:
        options.plot.write_text(log_log_plot(results, "tokens", "seconds a call", "Time of the survey's systems, one core, one head"))


if __name__ == "__main__":
    main()
