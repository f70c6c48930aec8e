"""Keys and values made by linalg, against NumPy, which shares no conversion with us: `linalg.py SPEC FOLDER [OPTION...]`."""

import os
import subprocess
import sys

import numpy as np


def main(spec, folder, *options):
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(3)
    for n in (3, 5, 37):
        q, k, v = (rng.standard_normal((2, 3, n, 8)).astype(np.float32) for _ in range(3))
        w = rng.standard_normal((3, 8, 8)).astype(np.float32) / np.float32(5)
        command = ["attn-run", spec, "--check", f"--output=out={folder}/out.npy", *options]
        for name, tensor in dict(q=q, k=k, v=v, w=w).items():
            np.save(f"{folder}/{name}.npy", tensor)
            command.append(f"--input={name}={folder}/{name}.npy")
        subprocess.run(command, check=True)
        thirds = lambda t: t[:, :, :n // 3 * 3].reshape(2, 3, n // 3, 3, 8).astype(np.float64)
        kc, vc = np.einsum("bhmce,ced->bhmd", thirds(k), w.astype(np.float64)), thirds(v).sum(3)
        s = np.exp(np.einsum("bhid,bhjd->bhij", q, kc) * 8 ** -0.5)
        off = np.abs(np.load(f"{folder}/out.npy") - s / s.sum(-1, keepdims=True) @ vc).max()
        assert off < 2e-5, f"N={n}: off by {off}"


main(*sys.argv[1:])
