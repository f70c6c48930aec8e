"""Generation token by token, over a cache of keys and values, against all tokens at once: `decode.py FOLDER`.

A step is the same function called with the last query alone. Where a system's output for a token depends on later tokens
(routing among all tokens, chunks and blocks whose bounds or sums move), a step gives what the prefix gives, and that differs."""

import os
import subprocess
import sys

import numpy as np

B, H, D, N = 2, 3, 16, 41
STEPS = (0, 6, N - 1)
RNG = np.random.default_rng(5)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


QKV = {name: normal(B, H, N, D) for name in "qkv"}


def run(folder, preset, settings, tensors, function=None):
    """The results of one call, as arrays by name."""
    os.makedirs(folder, exist_ok=True)
    command = ["attn-run", f"--preset={preset}", f"--head-dim={D}", *(f"--set={k}={v}" for k, v in settings.items()),
               *([f"--function={function}"] if function else []), f"--output=out={folder}/out.npy"]
    for name, tensor in tensors.items():
        np.save(f"{folder}/{name}.npy", tensor)
        command.append(f"--input={name}={folder}/{name}.npy")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{preset} {settings}: {done.stderr.strip()}")
    return np.load(f"{folder}/out.npy")


def cut(name, tensor, t, memory):
    """What a step at token t is given of a tensor; `memory` keys stand before token 0."""
    if name in ("q", "q1", "q2"):
        return tensor[:, :, t:t + 1]
    if name in ("k", "v", "k1", "k2"):
        return tensor[:, :, :memory + t + 1]
    if name in ("gates", "hidden", "a", "c"):
        return tensor[:, :, t:t + 1]
    if name == "documents":
        return tensor[:, :t + 1]
    if name == "scores":
        return tensor[:, :, t:t + 1, :t + 1]
    if name in ("w2", "b2", "of_keys"):
        return tensor[:, :t + 1]
    if name == "of_queries":
        return tensor[:, t:t + 1]
    if name == "table":
        return tensor[:, t:t + 1, :t + 1]
    return tensor


# What is before all its tokens, in the order of generation, decides a row.
INVARIANT = [
    ("memory-compressed-local", dict(block=8), {}),
    ("image-1d", dict(query=8, memory=5), {}),
    *(("sparse-strided", dict(stride=6, combine=combine), {}) for combine in ("union", "per_head", "local", "summary")),
    *(("sparse-fixed", dict(stride=8, columns=2, combine=combine), {}) for combine in ("union", "per_head", "local", "summary")),
    *(("axial", dict(inner="7", axis=axis, causal="on"), {}) for axis in (0, 1)),
    ("longformer", dict(window=5, dilation="1,2", causal="on", globals="none"), {}),
    ("longformer", dict(window=5, causal="on"), {"global": np.array([[0, 9, -1], [3, -1, -1]], np.int32)}),
    ("moba", dict(block=4, count=3), {}),
    ("nsa", dict(block=4, count=4, window=5), {"gates": normal(B, H, N, 3)}),
    ("causal", {}, {}),
    ("sliding-window", dict(window=6), {}),
    ("attention-sinks", dict(window=6, sinks=2), {}),
    ("chunked-local", dict(chunk=10), {}),
    ("alibi", {}, {"slopes": np.float32([0.5, 0.25, 0.1])}),
    ("soft-cap", dict(cap=2), {}),
    ("t5-bias", dict(buckets=8, max_distance=20), {"biases": normal(H, 8)}),
    ("documents", {}, {"documents": np.sort(RNG.integers(0, 4, (B, N)), 1).astype(np.int32)}),
]


def static(folder):
    for preset, settings, captured in INVARIANT:
        yield from compare(folder, preset, settings, {**QKV, **captured})
    tensors = {"q1": QKV["q"], "k1": QKV["k"], "q2": normal(B, H, N, D), "k2": normal(B, H, N, D), "v": QKV["v"],
               "lambda": np.float32([0.3, 0.5, 0.8])}
    yield from compare(folder, "differential", {}, tensors)
    table = normal(H, N, N)
    for kind, more in (("dense", {"scores": normal(B, H, N, N)}), ("random", {"table": table}), ("plus", {"table": table, "q": QKV["q"], "k": QKV["k"]}),
                       ("factorised_dense", {"a": normal(B, H, N, 8), "c": normal(B, H, N, 6)}),
                       ("factorised_random", {"of_queries": normal(H, N, 8), "of_keys": normal(H, N, 8)}),
                       ("network", {"hidden": normal(B, H, N, D), "w2": normal(H, N, D), "b2": normal(H, N)})):
        yield from compare(folder, "synthesizer", dict(scores=kind, causal="on"), {"v": QKV["v"], **more})


def recurrent(folder):
    """A memory of keys stands before the segment."""
    memory = 11
    tensors = {"q": QKV["q"], **{name: normal(B, H, memory + N, D) for name in "kv"}, "r": normal(H, memory + N, D),
               "u": normal(H, D), "w": normal(H, D)}
    yield from compare(folder, "transformer-xl", {}, tensors, memory)
    yield from compare(folder, "compressive", {}, tensors, memory, "compressive")


def compare(folder, preset, settings, tensors, memory=0, function=None):
    whole = run(folder, preset, settings, tensors, function)
    for t in STEPS:
        step = run(folder, preset, settings, {name: cut(name, tensor, t, memory) for name, tensor in tensors.items()}, function)
        off = np.abs(step[:, :, 0] - whole[:, :, t]).max()
        yield "" if off < 2e-5 else f"{preset} {settings}: token {t} is off by {off}"


def compressed(folder):
    """Every `factor` tokens become one key; a query attends to all that are finished."""
    factor = 3
    wk, wv = normal(H, D, factor, D), normal(H, D, factor, D)
    for causal in ("inclusive", "strict"):
        settings = dict(factor=factor, causal=causal)
        whole = run(folder, "memory-compressed", settings, {**QKV, "wk": wk, "wv": wv}, "memory_compressed")
        for t in STEPS:
            seen = {name: QKV[name][:, :, :t + (causal == "inclusive")] for name in "kv"}
            k, v = (run(folder, "memory-compressed", settings, {"old": seen[name], "w": w}, "compress")
                    for name, w in (("k", wk), ("v", wv)))
            step = run(folder, "dense", {}, {"q": QKV["q"][:, :, t:t + 1], "k": k, "v": v})
            off = np.abs(step[:, :, 0] - whole[:, :, t]).max()
            yield "" if off < 2e-5 else f"memory-compressed {settings}: token {t} is off by {off}"
        tensors = {**QKV, "wk": wk, "wv": wv}  # or all at once, from the cache as it is
        yield from compare(folder, "memory-compressed", settings, tensors, function="memory_compressed")


def image_2d(folder):
    """Generation runs over blocks, not in raster order: a step sees the whole canvas, whose later tokens do not matter."""
    settings = dict(width=8, rows=2, columns=3, flange_rows=1, flange_columns=2)
    canvas = {name: normal(B, H, 40, D) for name in "qkv"}
    whole = run(folder, "image-2d", settings, canvas)
    order = sorted(range(40), key=lambda p: (p // 8 // 2, p % 8 // 3, p // 8, p % 8))
    for place in (0, 7, 19, 39):
        later = order[place + 1:]
        spoilt = {name: tensor.copy() for name, tensor in canvas.items()}
        for name in "kv":
            spoilt[name][:, :, later] = 100.0
        off = np.abs(run(folder, "image-2d", settings, spoilt)[:, :, order[:place + 1]] - whole[:, :, order[:place + 1]]).max()
        yield "" if off < 2e-5 else f"image-2d: the first {place + 1} tokens are off by {off}"


def sorted_blocks(folder):
    """Sinkhorn with causal=on: no row of the permutation depends on later blocks, so a step needs the prefix of whole blocks."""
    logits = normal(B, H, 5, 5)
    settings = dict(block=8, causal="on")
    canvas = {name: normal(B, H, 40, D) for name in "qkv"}
    whole = run(folder, "sinkhorn", settings, {**canvas, "logits": logits})
    for blocks in (1, 3):
        prefix = {name: tensor[:, :, :8 * blocks] for name, tensor in canvas.items()}
        part = run(folder, "sinkhorn", settings, {**prefix, "logits": logits[:, :, :blocks, :blocks]})
        off = np.abs(part - whole[:, :, :8 * blocks]).max()
        yield "" if off < 2e-5 else f"sinkhorn: the first {blocks} blocks are off by {off}"


def depends_on_later_tokens(folder):
    """Causal masks, and yet what is routed, sorted or summed depends on all tokens: documented in docs/Systems.md."""
    centroids, rotations = normal(H, 4, D), normal(H, 4, D, 4)
    cases = (("routing", dict(clusters=4, window=8, causal="on"), {**QKV, "centroids": centroids}),
             ("reformer", dict(chunk=8, buckets=8), {"qk": QKV["q"], "v": QKV["v"], "rotations": rotations}))
    for preset, settings, tensors in cases:
        whole = run(folder, preset, settings, tensors)
        prefix = {name: tensor[:, :, :21] if tensor.shape[2] == N else tensor for name, tensor in tensors.items()}
        off = np.abs(run(folder, preset, settings, prefix) - whole[:, :, :21]).max()
        yield "" if off > 1e-2 else f"{preset}: a prefix gives what all tokens give, within {off}; docs/Systems.md says otherwise"


def main(folder):
    checks = [wrong for part in (static, recurrent, compressed, image_2d, sorted_blocks, depends_on_later_tokens) for wrong in part(folder)]
    wrong = [message for message in checks if message]
    print("\n".join(wrong + [f"{len(checks)} steps, {len(wrong)} wrong"]))
    return bool(wrong) or len(checks) < 90


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
