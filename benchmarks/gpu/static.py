#!/usr/bin/env python3
"""What can be said of GPU kernels without a GPU: registers, shared memory, traffic, instructions of a tile. See ../README.md.

    benchmarks/gpu/static.py [--chips=sm_80,sm_90] [--types=f16,bf16,f32] [--dims=64,128,256] [--masks=none,...|all]

Fails where a loop over tiles spills (of heads to 128), where banks conflict or where sectors are wasted.
"""

import argparse
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import masks
from common.report import Report
from gpu import model, sass

MASKS = {"none": masks.DENSE, "causal": masks.CAUSAL, "window": masks.WINDOW, "document": masks.DOCUMENTS,
         "table": masks.TABLE}
MORE = {mask.name: mask for mask in (*masks.SPARSE, masks.SETS, masks.BIGBIRD) if mask not in MASKS.values()}
# Opcodes in the low 12 bits of an instruction, for machines without nvdisasm.
OPCODES = {0x23c: "HMMA", 0x308: "MUFU", 0x223: "FFMA", 0x387: "STL", 0x983: "LDL"}


def find(name):
    """A CUDA tool: in PATH, a toolkit, or a package of this Python (nvidia-cuda-nvdisasm)."""
    toolkits = [os.path.join(os.environ[v], "bin") for v in ("CUDA_HOME", "CUDA_PATH") if v in os.environ]
    packages = glob.glob(os.path.join(sysconfig.get_path("purelib"), "nvidia", "*", "bin"))
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *toolkits, "/usr/local/cuda/bin", *packages]))


class Compiled:
    """One kernel: what the compiler decided, what ptxas said, and its machine code."""

    def __init__(self, tools, folder, chip, element, dim, mask):
        self.tools, self.chip, self.element, self.dim = tools, chip, element, dim
        self.spec, self.cubin = folder / "kernel.mlir", folder / "kernel.cubin"
        self.spec.write_text(mask.spec(dim, element))
        flags = ["--target=cuda", f"--chip={chip}"]
        ptx = folder / "kernel.ptx"
        subprocess.run([tools.compiler, self.spec, *flags, "--emit=ptx", "-o", ptx], check=True)
        report = subprocess.run([tools.compiler, self.spec, *flags, "--emit=report", "--json", "--shape=N=1024"], check=True,
                                stdout=subprocess.PIPE, text=True)
        attention = json.loads(report.stdout)["attentions"][0]
        self.schedule, self.shared = attention["schedule"], attention["resources"]["shared_bytes"]
        self.tensor_cores = attention["resources"]["tensor_cores"]
        said = subprocess.run([tools.ptxas, "-v", f"-arch={chip}", ptx, "-o", self.cubin], check=True, capture_output=True,
                              text=True).stderr
        # Of a union, the first attention. The merge of split keys is a kernel of its own.
        task = next(part for part in said.split("Compiling entry function")[1:] if "k0$task'" in part)
        self.registers = int(re.search(r"Used (\d+) registers", task).group(1))
        self.spills = sum(map(int, re.findall(r"(\d+) bytes spill", task)))

    def tile(self):
        """(products, exponentials, multiply-adds) of a warp in one tile."""
        rows, keys = self.schedule["query_tile"] // self.schedule["warps"], self.schedule["key_tile"]
        multiply_adds = rows * keys * 2 * self.dim
        return multiply_adds / (model.MMA if self.tensor_cores else model.WARP), rows * keys / model.WARP, multiply_adds

    def ideal(self):
        """The least instructions besides products and exponentials: per score a fused multiply-add, a maximum, a sum and
        half a conversion; fragments of K and V once (in f32, 16 bytes for 16 multiply-adds); copies of 16 bytes a lane."""
        products, scores, multiply_adds = self.tile()
        size = 2 if self.tensor_cores else 4
        rows, keys, warps = self.schedule["query_tile"] // self.schedule["warps"], self.schedule["key_tile"], self.schedule["warps"]
        copies = keys * 2 * self.dim * size / (16 * model.WARP * warps)
        loads = keys * 2 * self.dim * size / (16 * model.WARP) if self.tensor_cores else products / 16
        return scores * (3.5 if self.tensor_cores else 3) + loads + copies

    def main_loop(self):
        """The loop with the products of a tile, and its instructions in a full and in a partial tile. Another loop, with
        more instructions, is for tiles with numbers that are not finite."""
        kernels = sass.disassemble(self.tools.nvdisasm, self.cubin)
        lines = next(lines for name, lines in kernels.items() if name.endswith("k0$task"))
        products, op = self.tile()[0], "HMMA" if self.tensor_cores else "FFMA"
        found = []
        for loop in sass.loops_of(lines):
            if not self.tensor_cores and not self.count_trips(loop):
                continue
            full = loop.count(loop.path(lambda i: 1000 * (i.op == op) + (i.op == "LDGSTS")))
            if sass.total(full, op) >= products:
                partial = loop.path(lambda i: 1000 * (i.op == op) + 10 * masks_a_score(i) + (i.op == "LDGSTS"))
                found.append((loop, full, loop.count(partial)))
        return min(found, key=lambda one: sum(one[1].values()), default=None)

    def count_trips(self, loop):
        """Products of f32 are loops: those before the exponentials make the scores, those behind them the output."""
        half = self.tile()[0] / 2
        first = {f: sum(i.op == "FFMA" for b in members for i in loop.blocks[b].instructions) for f, members in loop.inner.items()}
        first = {f: n for f, n in first.items() if n >= 16}
        exp = min((b for b in loop.members if any(i.op == "MUFU" for i in loop.blocks[b].instructions)), default=0)
        for group in ([f for f in first if f < exp], [f for f in first if f > exp]):
            total = sum(first[f] for f in group)
            if not total or half % total:
                return False
            loop.trips.update({f: int(half / total) for f in group})
        return True


def masks_a_score(instruction):
    return instruction.op in ("FSEL", "SEL") and "-INF" in instruction.operands


def emulated(tools, compiled):
    """Bank conflicts and wasted sectors that the emulator counts: passes and sectors above the least, of all there are."""
    extents = "B=1,H=2,N=512,M=512"
    done = subprocess.run([tools.runner, compiled.spec, "--target=cuda-emulated", f"--chip={compiled.chip}", f"--random={extents}",
                           "--check", "--json"], check=True, stdout=subprocess.PIPE, text=True)
    seen = json.loads(done.stdout)["emulation"]
    return {"bank_conflicts": seen["shared_passes"] - seen["ideal_shared_passes"],
            "wasted_sectors": (seen["sectors"] - seen["ideal_sectors"]) / seen["sectors"]}


def histogram(cubin):
    """Known opcodes of all kernels: instructions are 16 bytes, the opcode in the low 12 bits."""
    words = cubin.read_bytes()
    opcodes = (int.from_bytes(words[at:at + 2], "little") & 0xfff for at in range(0, len(words) - 15, 16))
    counts = dict.fromkeys(OPCODES.values(), 0)
    for opcode in opcodes:
        if opcode in OPCODES:
            counts[OPCODES[opcode]] += 1
    return counts


def measure(tools, folder, chip, element, dim, name):
    c = Compiled(tools, folder, chip, element, dim, {**MASKS, **MORE}[name])
    s = c.schedule
    line = {"chip": chip, "type": element, "D": dim, "mask": name, "rows": s["query_tile"], "warps": s["warps"],
            "keys": s["key_tile"], "registers": c.registers, "spill_bytes": c.spills, "shared": c.shared,
            "warps_at_once": model.CHIPS[chip].warps_at_once(c.registers, c.shared, s["warps"])}
    if tools.emulate:
        line.update(emulated(tools, c))
    if not tools.nvdisasm:
        return {**line, "no_nvdisasm": histogram(c.cubin)}
    found = c.main_loop()
    if not found:
        return {**line, "no_main_loop": "no loop has the products of a tile"}
    loop, full, partial = found
    return {**line, **count(c, loop, full, partial)}


def count(c, loop, full, partial):
    products, exponentials, multiply_adds = c.tile()
    op = "HMMA" if c.tensor_cores else "FFMA"

    others = sum(full.values()) - products - exponentials
    chip = model.CHIPS[c.chip]
    cycles = model.times(chip, full)
    return {
        "spills_in_loop": sass.spills(loop.instructions()),
        "products": sass.total(full, op), "least_products": products, "exp": sass.total(full, "MUFU"), "least_exp": exponentials,
        "others": others, "least_others": c.ideal(), "partial_others": sum(partial.values()) - products - exponentials,
        "cycles": {unit: round(time) for unit, time in cycles.items()},
        **model.share_of_peak(chip, cycles, multiply_adds, c.tensor_cores),
        "instructions": dict(full.most_common()),
    }


def pair(line, name):
    return f"{line[name]:.0f} / {line['least_' + name]:.0f}" if name in line else "?"


COLUMNS = {
    "chip": lambda l: l["chip"],
    "type": lambda l: l["type"],
    "D": lambda l: str(l["D"]),
    "rows x warps, keys": lambda l: f"{l['rows']} x {l['warps']}, {l['keys']}",
    "shared KiB": lambda l: f"{l['shared'] / 1024:.4g}",
    "registers": lambda l: str(l["registers"]),
    "warps": lambda l: str(l["warps_at_once"]),
    "products": lambda l: pair(l, "products"),
    "exp": lambda l: pair(l, "exp"),
    "others": lambda l: pair(l, "others"),
    "of peak": lambda l: f"{l['in_turn']:.2f} to {l['together']:.2f}" if "in_turn" in l else "?",
    "limit": lambda l: l.get("limit", "?"),
}


def partial_tile(line):
    spills = f", spills {line['spill_bytes']} B" if line["spill_bytes"] else ""
    if line.get("spills_in_loop"):
        spills += f" ({line['spills_in_loop']} in the loop)"
    return (f"{line['partial_others']:.0f}" if "partial_others" in line else "?") + spills


def markdown(lines):
    """A tile of the first mask; the other instructions of its partial tiles for all masks. Types with the same are one row."""
    def table(columns, rows):
        place, merged = columns.index("type"), {}
        for row in rows:
            merged.setdefault((*row[:place], *row[place + 1:]), []).append(row[place])
        rows = [[*key[:place], ", ".join(types), *key[place:]] for key, types in merged.items()]
        return "\n".join("| " + " | ".join(row) + " |" for row in [columns, ["---"] * len(columns), *rows])

    names = list(dict.fromkeys(line["mask"] for line in lines))
    kernels = {}
    for line in lines:
        kernels.setdefault((line["chip"], line["type"], str(line["D"])), {})[line["mask"]] = line
    tiles = table(list(COLUMNS), [[cell(line) for cell in COLUMNS.values()] for line in lines if line["mask"] == names[0]])
    partial = table(["chip", "type", "D", *names],
                    [[*key, *(partial_tile(of[name]) if name in of else "" for name in names)] for key, of in kernels.items()])
    counted = [line for line in lines if "wasted_sectors" in line]
    conflicts, wasted = (max((line[field] for line in counted), default="?") for field in ("bank_conflicts", "wasted_sectors"))
    return f"{tiles}\n\n{partial}\n\nOf a kernel at most: bank conflicts {conflicts}, wasted sectors {wasted}."


def broken_promises(lines):
    for line in lines:
        where = f"{line['chip']}, {line['type']}, {line['D']}, {line['mask']}"
        if line.get("spills_in_loop") and line["D"] <= 128:
            yield f"{where}: {line['spills_in_loop']} spills in the loop over tiles"
        for field in ("bank_conflicts", "wasted_sectors"):
            if line.get(field):
                yield f"{where}: {field} {line[field]}"


def parse_options():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")
    parser.add_argument("--build", type=pathlib.Path, default=root / "build" / "release")
    parser.add_argument("--chips", type=words, default=list(model.CHIPS), help=", ".join(model.CHIPS))
    parser.add_argument("--types", type=words, default=["f16", "bf16", "f32"], help="f16, bf16, f32")
    parser.add_argument("--dims", type=words, default=["64", "128", "256"], help="head_dims")
    parser.add_argument("--masks", type=words, default=list(MASKS), help=f"{', '.join(MASKS)} (these), {', '.join(MORE)}; all")
    parser.add_argument("--emulate", choices=["on", "off"], default="on", help="count bank conflicts and sectors (on)")
    parser.add_argument("--nvdisasm", choices=["on", "off"], default="on", help="look at machine code (on)")
    parser.add_argument("--json", type=pathlib.Path, help="also write the lines to this file")
    options = parser.parse_args()
    if options.masks == ["all"]:
        options.masks = [*MASKS, *MORE]
    for given, known in ((options.chips, model.CHIPS), (options.masks, {**MASKS, **MORE})):
        for name in given:
            if name not in known:
                parser.error(f"no {name}; there are {', '.join(known)}")
    return options


def main():
    options = parse_options()
    bin_folder = options.build / "bin"
    tools = argparse.Namespace(compiler=bin_folder / "attn-compile", runner=bin_folder / "attn-run", ptxas=find("ptxas"),
                               nvdisasm=options.nvdisasm == "on" and find("nvdisasm"), emulate=options.emulate == "on")
    if not tools.ptxas:
        raise SystemExit("no ptxas in PATH, CUDA_HOME or /usr/local/cuda: nothing is known of registers without it")
    if not tools.nvdisasm:
        print("no nvdisasm (pip install nvidia-cuda-nvdisasm): opcodes of whole kernels, no tiles", file=sys.stderr)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="attn-static-") as folder:
        for chip in options.chips:
            for element in options.types:
                for dim in map(int, options.dims):
                    for name in options.masks:
                        report.add("static", **measure(tools, pathlib.Path(folder), chip, element, dim, name))
    if options.json:
        report.write(options.json)
    print(markdown(report.lines), file=sys.stderr)
    if broken := list(broken_promises(report.lines)):
        sys.exit("\n".join(broken))


if __name__ == "__main__":
    main()
