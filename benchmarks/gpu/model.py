"""What a tile costs at least on a multiprocessor, by the rates at which it takes instructions. Formulas: docs/Performance.md.

All times are cycles of one scheduler (a quarter of a multiprocessor) for one warp and one tile.
"""

import dataclasses

WARP, SCHEDULERS, SHARED_BYTES_PER_CYCLE = 32, 4, 128
MMA = 16 * 8 * 16  # multiply-adds of a warp's mma.sync


@dataclasses.dataclass
class Chip:
    """Lanes a cycle of a scheduler; `matrix` are multiply-adds of 16-bit elements, `mma_sync` the share that it reaches."""
    name: str
    matrix: int
    mma_sync: float
    fma: int
    alu: int = 16
    exp: int = 4
    warps: int = 64
    blocks: int = 32
    registers: int = 65536
    shared: int = 164 << 10  # of a multiprocessor

    def warps_at_once(self, registers, shared_bytes, warps):
        """Of a multiprocessor, for blocks of so many warps."""
        by_registers = self.registers // (-(-registers * WARP // 256) * 256) // warps
        return warps * min(by_registers, self.shared // (shared_bytes + 1024), self.warps // warps, self.blocks)


CHIPS = {
    "sm_80": Chip("A100", matrix=256, mma_sync=1.0, fma=16),
    "sm_90": Chip("H100", matrix=512, mma_sync=0.63, fma=32, shared=228 << 10),
}

FMA_OPS = {"FFMA", "FADD", "FMUL", "IMAD"}
SHARED_OPS = {"LDS", "STS", "LDSM", "LDGSTS"}
OTHER_OPS = {"HMMA", "MUFU", "SHFL", "LDG", "STG", "BAR", "BRA", "LDGDEPBAR", "DEPBAR", "CALL", "BSSY", "BSYNC", "EXIT", "NOP",
             "WARPSYNC"}


def is_alu(op):
    """Integers, comparisons, selections, conversions; the uniform data path has instructions of its own."""
    return op not in FMA_OPS | SHARED_OPS | OTHER_OPS and not op.startswith("U")


def passes(name):
    """Over the banks of shared memory, without conflicts: 16 bytes a lane go a quarter of a warp at a time."""
    op, *rest = name.split(".")
    if op == "SHFL":
        return 1
    if op not in SHARED_OPS:
        return 0
    if op == "LDSM":
        return int(rest[-1])
    return 4 if "128" in rest else 2 if "64" in rest else 1


def times(chip, counts):
    """Cycles that each unit needs for instructions by name."""
    def lanes(width, belongs):
        return sum(n for name, n in counts.items() if belongs(name.split(".")[0])) * WARP / width

    return {
        "matrix": lanes(chip.matrix * chip.mma_sync, lambda op: op == "HMMA") * MMA / WARP,
        "exp": lanes(chip.exp, lambda op: op == "MUFU"),
        "fma": lanes(chip.fma, lambda op: op in FMA_OPS),
        "alu": lanes(chip.alu, is_alu),
        "shared": sum(passes(name) * n for name, n in counts.items()) * WARP * 4 / SHARED_BYTES_PER_CYCLE * SCHEDULERS,
        "issue": float(sum(counts.values())),
    }


def share_of_peak(chip, cycles, multiply_adds, tensor_cores):
    """With all units at work at once, and with products and softmax in turn; the unit that limits the former."""
    least = multiply_adds / (chip.matrix if tensor_cores else chip.fma)
    limit = max(cycles, key=cycles.get)
    if tensor_cores:
        turns = max(cycles["matrix"], cycles["shared"]) + max(cycles["exp"], cycles["fma"], cycles["alu"])
    else:
        turns = max(cycles["issue"], cycles["shared"]) + cycles["exp"]
    return {"together": least / cycles[limit], "in_turn": least / max(turns, cycles[limit]), "limit": limit}
