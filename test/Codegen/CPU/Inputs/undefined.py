"""Compiles regions with every op for a table of CPUs; fails where an object needs anything but what docs/Flow.md lists."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 3))
from region_ops import CAPTURED, TABLES, score_region
from specs import attention

CPUS = [("x86_64-linux-gnu", cpu, lanes) for cpu, lanes in (("x86-64", 4), ("x86-64-v2", 4), ("ivybridge", 4), ("x86-64-v3", 8),
                                                              ("x86-64-v4", 16), ("znver4", 16), ("sapphirerapids", 16))]
CPUS += [("aarch64-linux-gnu", "generic", 4), ("aarch64-linux-gnu", "neoverse-v2", 4)]
LIBC = {"aligned_alloc", "calloc", "free", "malloc", "memcpy", "memset", "realloc", "snprintf", "__tls_get_addr",
        "_GLOBAL_OFFSET_TABLE_"}

DEVICE = {"dlopen", "dlsym", "sched_yield", "strcmp", "strcspn", "strstr"}


def compiled(spec, path, *options):
    """What the object of a spec needs beside libc."""
    with open(path + ".mlir", "w") as file:
        file.write(spec)
    subprocess.run(["attn-compile", path + ".mlir", *options, "-o", path + ".o"], check=True)
    names = subprocess.run(["llvm-nm", "-u", "--just-symbol-name", path + ".o"], check=True, capture_output=True, text=True)
    return set(names.stdout.split()) - LIBC


def undefined(cases, path, cpu):
    triple, name, lanes = cpu
    spec = attention("", score_region(cases), args=CAPTURED, dim=16, schedule=f"query_tile = {lanes}, tail_tile = {lanes}")
    return compiled(spec, path, "--threads=off", f"--triple={triple}", f"--cpu={name}")


def blame(path, cpu):
    """Which ops call what."""
    for kind, ops in TABLES.items():
        if not undefined([(kind, lines) for lines in ops.values()], path, cpu):
            continue
        for name, lines in ops.items():
            if calls := undefined([(kind, lines)], path, cpu):
                yield f"{name} on {kind}, {' '.join(cpu[:2])}: calls {', '.join(sorted(calls))}"


def main(folder):
    os.makedirs(folder, exist_ok=True)
    path, cases = os.path.join(folder, "region"), [(kind, lines) for kind, ops in TABLES.items() for lines in ops.values()]
    wrong = []
    for cpu in CPUS:
        if calls := undefined(cases, path, cpu):
            wrong += [f"{' '.join(cpu[:2])}: all ops together call {', '.join(sorted(calls))}", *blame(path, cpu)]
        for element in ("f16", "bf16"):
            spec = attention("causal", lse=True, element=element)
            if calls := compiled(spec, path, "--threads=off", f"--triple={cpu[0]}", f"--cpu={cpu[1]}"):
                wrong.append(f"{' '.join(cpu[:2])}: {element} tensors call {', '.join(sorted(calls))}")
    threads = {name for name in compiled(attention("causal"), path, "--threads=on") if not name.startswith("__kmpc_")}
    device = compiled(attention("causal", element="f16", dim=64), path, "--target=cuda") - DEVICE
    wrong += [f"an object {kind} calls {', '.join(sorted(calls))}" for kind, calls in (("with threads", threads), ("for a GPU", device)) if calls]
    print(f"{len(cases)} ops on {len(CPUS)} CPUs")
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main(sys.argv[1])
