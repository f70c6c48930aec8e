"""Runs every preset in the GPU emulator and, with --cubin, hands its PTX to ptxas: `gpu.py FOLDER [--cubin]`."""

import os
import re
import subprocess
import sys

# Settings small enough that a few tokens see every kind of tile.
SMALL = {
    "attention-sinks": ["window=20"], "axial": ["inner=8"], "bigbird": ["block=8", "tokens=72"], "chunked-local": ["chunk=24"],
    "linformer": ["features=24"], "moba": ["block=8"], "nsa": ["block=8", "count=4", "window=20"], "etc": ["radius=9"], "image-1d": ["query=16", "memory=9"], "image-2d": ["width=12", "rows=2", "columns=4", "flange_rows=1", "flange_columns=3"],
    "longformer": ["window=9", "dilation=1,2"], "memory-compressed-local": ["block=24"], "neighborhood-1d": ["size=17"],
    "neighborhood-2d": ["width=9", "rows=3", "columns=3"], "reformer": ["chunk=8", "rounds=3", "buckets=8"], "routing": ["clusters=5", "window=19", "causal=on"], "sliding-window": ["window=20"],
    "sinkhorn": ["block=16"], "sparse-fixed": ["stride=16", "columns=2", "combine=per_head"], "sparse-strided": ["stride=16"],
}

# In f32: which rows are compared follows from numbers on the way, which 16 bits round to others than the reference has; or sums
# are beyond 16 bits.
EXACT = {"moba", "nsa", "retention", "reformer", "routing"}
# Presets of several functions.
FUNCTIONS = {"compressive": ["compressive", "compress"], "etc": ["etc_long", "etc_global"],
             "memory-compressed": ["memory_compressed", "compress"]}


# Further operands and steps of a preset.
VARIANTS = [("longformer", "globals=separate", "window=9"), ("synthesizer", "scores=factorised_dense"), ("set", "block=pma", "padding=on"),
            ("compressive", "function=most_used", "keep=9"), ("linear", "padding=on"), ("performer", "padding=on", "causal=on")]


def check(name, settings, folder):
    """What is wrong of a preset; with a folder ptxas gets its PTX, too."""
    spec = [f"--preset={name}", f"--dtype={'f32' if name in EXACT else 'f16'}", *(f"--set={entry}" for entry in settings)]
    run = ["attn-run", *spec, "--target=cuda-emulated", "--random=B=1,H=2,N=72", "--check"]
    commands = [[*run, f"--function={function}"] for function in FUNCTIONS.get(name, [])] or [run]
    if folder:
        commands.append(["attn-compile", *spec, "--target=cuda", "--emit=cubin", "-o", f"{folder}/{name}.cubin"])
    wrong = []
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            wrong.append(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return wrong


def main(folder, cubin):
    os.makedirs(folder, exist_ok=True)
    listed = subprocess.run(["attn-compile", "--list-presets"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^([a-z0-9-]+):", listed, re.M)
    unknown = set(SMALL) - set(names)
    wrong = [f"no preset {name}" for name in unknown]
    for name in names:
        wrong += check(name, SMALL.get(name, []), folder if cubin else None)
    for name, *settings in VARIANTS:
        wrong += check(name, settings, None)
    print(f"{len(names)} presets, {len(wrong)} wrong")
    sys.exit("\n".join(wrong) if wrong or not names else 0)


main(sys.argv[1], "--cubin" in sys.argv)
