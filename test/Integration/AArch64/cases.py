"""Objects for AArch64 run under qemu-aarch64 and must agree with this machine's; `cases.py NAME FOLDER CC` runs one table."""

import os
import pathlib
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here.parent / "CPU"), str(here.parents[1])]
from cases import MASKS, mask_spec
from specs import attention, index_region

CODES = {"f32": "f4", "f16": "f2", "bf16": "b2", "i8": "i1", "i32": "i4", "i64": "i8"}
TOLERANCES = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}  # two units in the last place of numbers near 1


class Machine:
    def __init__(self, folder, cc):
        self.folder, self.cc, self.wrong, self.runs = pathlib.Path(folder), cc, [], 0
        self.folder.mkdir(parents=True, exist_ok=True)
        self.caller = self.path("call.o")
        root = here.parents[2]
        self.build("-c", here / "Inputs/call.c", f"-I{root}/include", "-o", self.caller)

    def path(self, name):
        return str(self.folder / name)

    def build(self, *arguments):
        dlpack = "/usr/include"
        subprocess.run([self.cc, "--target=aarch64-linux-gnu", "-O1", "-Wno-deprecated-non-prototype", "-idirafter", dlpack,
                        *map(str, arguments)], check=True)

    def run_here(self, source, *options):
        done = subprocess.run(["attn-run", source, "--check", *options], check=True, capture_output=True, text=True)
        return done.stdout.splitlines()[0]

    def check(self, name, spec, extents, cpu="generic"):
        self.runs += 1
        source, stem = self.path(f"{self.runs}.mlir"), self.path(str(self.runs))
        pathlib.Path(source).write_text(spec)
        # "f: q 1x2x77x20xf32 k ... -> out 1x2x77x20xf32"
        function, tensors = self.run_here(source, f"--random={extents}").split(": ")
        words, files = tensors.split(), {}
        arguments, results = words[:words.index("->")], words[words.index("->") + 1:]
        for tensor in (arguments + results)[::2]:
            files[tensor] = f"{stem}.{tensor}.npy"
        self.run_here(source, f"--random={extents}", *(f"--output={tensor}={file}" for tensor, file in files.items()))
        subprocess.run(["attn-compile", source, "--triple=aarch64-linux-gnu", f"--cpu={cpu}", "--threads=off", "-o", stem + ".o"],
                       check=True, stderr=subprocess.DEVNULL)
        alias = [] if function == "f" else [f"-Wl,--defsym=f={function}"]
        self.build("-static", "-fuse-ld=lld", *alias, self.caller, stem + ".o", "-lm", "-o", stem)
        done = subprocess.run(["qemu-aarch64", stem, *self.describe(arguments, files), "--",
                               *self.describe(results, files, TOLERANCES)], capture_output=True, text=True)
        if done.returncode:
            self.wrong.append(f"{name}, {extents}: {done.stdout}{done.stderr} (status {done.returncode}, {source})")

    @staticmethod
    def describe(words, files, tolerances=None):
        """Files with the types of their elements, for call.c."""
        for tensor, shape in zip(words[::2], words[1::2]):
            kind = shape.split("x")[-1]
            yield f"{files[tensor]}:{CODES[kind]}" + (f":{tolerances[kind]}" if tolerances else "")

    def finish(self):
        for wrong in self.wrong:
            print(wrong)
        print(f"{self.runs} kernels, {len(self.wrong)} wrong")
        sys.exit(bool(self.wrong) or not self.runs)


def masks(machine):
    for name in MASKS:
        machine.check(name, mask_spec(name), "B=2,H=3,N=77,D=20")


def shapes(machine):
    for extents in ("N=1", "N=5,M=130,D=64,H=4,Hkv=2", "N=130,M=5,D=1,Dv=33", "N=33,D=576,H=1", "N=0", "N=40,D=128,Dv=7"):
        machine.check("causal", attention("causal", align="bottom_right", lse=True), extents, cpu="neoverse-v2")


def types(machine):
    for element in ("f16", "bf16"):
        for name in ("causal", "window", "strided", "documents"):
            machine.check(f"{name}, {element}", mask_spec(name, element=element), "B=1,H=2,N=70,D=64")


def regions(machine):
    """A score region with functions that would be calls of libm."""
    cap = index_region(["%c = arith.constant 5.0 : f32", "%x = arith.divf %s, %c : f32", "%t = math.tanh %x : f32",
                        "%r = math.floor %t : f32", "%z = arith.addf %t, %r : f32", "%y = arith.mulf %z, %c : f32", "attn.yield %y : f32"])
    machine.check("soft cap", attention("causal", cap, lse=True), "N=70,H=2,D=24")


def steps(machine):
    """Functions of several ops: features and sums, hashing and sorting, routing, soft permutations."""
    for preset, *settings in (("linear",), ("performer", "causal=on"), ("reformer", "chunk=16", "buckets=8"),
                              ("routing", "clusters=4", "window=16"), ("sinkhorn", "block=16"), ("linformer", "features=16")):
        spec = subprocess.run(["attn-compile", f"--preset={preset}", *(f"--set={s}" for s in settings), "--emit=attn"],
                              check=True, capture_output=True, text=True).stdout
        machine.check(preset, spec, "N=70,H=2")


if __name__ == "__main__":
    machine = Machine(*sys.argv[2:4])
    globals()[sys.argv[1]](machine)
    machine.finish()
