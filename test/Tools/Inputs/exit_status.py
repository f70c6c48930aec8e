"""attn-compile exits 0 exactly where it tells no error, for every --emit, of specs that some target has no code for."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 2))
from specs import attention, index_region

EMITS = "attn schedule tile cpu gpu llvm asm ptx cubin object shared header svg report".split()
POWER = index_region(["%x = math.powf %s, %s : f32", "attn.yield %x : f32"])
SPECS = {"no GPU code": attention("stride(size = 7)", element="f16", dim=320), "no polynomial": attention("causal", POWER, dim=64),
         "no CPU code": attention("causal", element="f16", dim=64), "no spec": "func.func @f(",
         "nothing to compile": "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"}


def main(folder):
    os.makedirs(folder, exist_ok=True)
    path, wrong, refused = os.path.join(folder, "spec.mlir"), [], 0
    for name, spec in SPECS.items():
        with open(path, "w") as file:
            file.write(spec)
        for target in ("cpu", "cuda"):
            for emit in EMITS:
                command = ["attn-compile", path, f"--target={target}", f"--emit={emit}", "-o", os.path.join(folder, "out")]
                done = subprocess.run(command, capture_output=True, text=True)
                refused += done.returncode != 0
                if done.returncode not in (0, 1) or (done.returncode == 1) != ("error:" in done.stderr):
                    wrong.append(f"{name}, {target}, {emit}: status {done.returncode}, said: {done.stderr.strip()}")
    print(f"{refused} refused")
    sys.exit("\n".join(wrong) or (0 if refused > len(EMITS) else "too few were refused"))


if __name__ == "__main__":
    main(sys.argv[1])
