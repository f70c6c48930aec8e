"""Every preset and variant of it against NumPy and reference.py, which share no code with the compiler: `oracles.py FOLDER`."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import reference as ref

B, H, D = 2, 3, 16
RNG = np.random.default_rng(11)
LENGTHS = (1, 5, 37, 64)  # one token, less than a block, no multiple of one, a multiple


class Case:
    """`mask` and `bias` broadcast to [B, H, N, M]; `scale` and `post` (of scaled scores) as the preset has them."""

    def __init__(self, preset, settings, n, mask=None, bias=0.0, scale=D ** -0.5, post=None, m=None, captured=None, function=None,
                 unused=(), oracle=None, kv=H):
        """`oracle(q, k, v)` where it is not one softmax; `unused`: which of q, k and v the function does not take; `kv` heads of keys."""
        self.unused, self.oracle = unused, oracle
        self.preset, self.settings, self.captured, self.function = preset, settings, captured or {}, function
        self.q, self.k, self.v = (RNG.standard_normal((B, heads, rows, D)).astype(np.float32) for heads, rows in ((H, n), (kv, m or n), (kv, m or n)))
        self.mask, self.bias, self.scale, self.post = mask, bias, scale, post
        self.name = f"{preset} {settings} N={n}"

    def expected(self):
        q, k, v = (t.astype(np.float64) for t in (self.q, self.k, self.v))
        if self.oracle:
            return self.oracle(q, k, v)
        s = self.scale * np.einsum("bhid,bhjd->bhij", q, k) + self.bias
        s = s if self.post is None else self.post(s)
        return ref.softmax(s if self.mask is None else np.where(self.mask, s, ref.NEG)) @ v

    def run(self, folder):
        os.makedirs(folder, exist_ok=True)
        command = ["attn-run", f"--preset={self.preset}", f"--head-dim={D}", "--check",
                   *(f"--set={key}={value}" for key, value in self.settings.items()),
                   *([f"--function={self.function}"] if self.function else [])]
        for key, tensor in {"q": self.q, "k": self.k, "v": self.v, **self.captured}.items():
            if key in self.unused and key not in self.captured:
                continue
            np.save(f"{folder}/{key}.npy", tensor)
            command.append(f"--input={key}={folder}/{key}.npy")
        done = subprocess.run([*command, f"--output=out={folder}/out.npy"], capture_output=True, text=True)
        if done.returncode:
            return f"{self.name}: {done.stderr.strip()} {done.stdout.strip()}"
        off = np.abs(np.load(f"{folder}/out.npy") - self.expected()).max(initial=0)
        return "" if off < 2e-5 else f"{self.name}: off by {off}"


def fixed(n):
    i, j = ref.ij(n)
    past = ref.causal(n)
    local = ref.local_block_mask
    yield Case("memory-compressed-local", dict(block=8), n, local(n, 8))
    yield Case("memory-compressed-local", dict(block=8, causal="off"), n, local(n, 8, False))
    yield Case("image-1d", dict(query=8, memory=5), n, ref.image_1d_mask(n, 8, 5))
    yield Case("image-1d", dict(query=8, memory=5, after=3, causal="off"), n, ref.image_1d_mask(n, 8, 5, False, 3))
    for l, c in ((8, 2), (6, 3)):
        for inclusive in ("off", "on"):
            a1, a2 = ref.sparse_strided(n, l, inclusive == "on")
            yield from combined("sparse-strided", dict(stride=l, inclusive=inclusive), n, a1, [a2])
        for distinct in (1, 2):
            fixed_parts = [ref.sparse_fixed(n, l, c, head, distinct) for head in range(distinct)]
            yield from combined("sparse-fixed", dict(stride=l, columns=c, distinct=distinct), n, fixed_parts[0][0],
                                [a2 for _, a2 in fixed_parts])
    yield Case("dense", {}, n)
    yield Case("set", {}, n, m=7)
    yield Case("set", dict(scale="model", heads=H), n, scale=(H * D) ** -0.5)
    yield Case("causal", {}, n, past)
    yield Case("causal", dict(align="bottom_right"), n, np.arange(n + 9) <= np.arange(n)[:, None] + 9, m=n + 9)
    yield Case("sliding-window", dict(window=6), n, past & (i - j < 6))
    yield Case("attention-sinks", dict(window=6, sinks=2), n, past & ((i - j < 6) | (j < 2)))
    yield Case("chunked-local", dict(chunk=10), n, past & (i // 10 == j // 10))
    yield Case("chunked-local", dict(chunk=10, causal="off"), n, i // 10 == j // 10)
    yield Case("neighborhood-1d", dict(size=5), n, ref.natten_1d_mask(n, 5))


def combined(preset, settings, n, local, summaries):
    """Heads take the summaries in turn; per head, local and summary alternate."""
    by_head = lambda masks: np.stack([masks[h % len(masks)] for h in range(H)])[None]
    turns = [mask for summary in summaries for mask in (local, summary)]
    for combine, mask in (("union", local | by_head(summaries)), ("local", local), ("summary", by_head(summaries)),
                          ("per_head", by_head(turns))):
        yield Case(preset, dict(settings, combine=combine), n, mask)


def grids():
    for height, width in ((1, 1), (3, 5), (7, 6), (4, 9)):
        n = height * width
        yield Case("image-2d", dict(width=width, rows=2, columns=3, flange_rows=1, flange_columns=2), n,
                   ref.image_2d_mask(height, width, 2, 3, 1, 2))
        if height >= 3 and width >= 3:
            rows, columns = ref.natten_1d_mask(height, 3), ref.natten_1d_mask(width, 3)
            yield Case("neighborhood-2d", dict(width=width, rows=3, columns=3), n,
                       np.kron(rows, np.ones((width, width), bool)) & np.tile(columns, (height, height)))
    for shape in ((5, 7), (3, 4, 5), (2, 3, 2, 4)):
        for axis in range(len(shape)):
            for causal in ("off", "on"):
                yield Case("axial", dict(inner=",".join(map(str, shape[1:])), axis=axis, causal=causal), int(np.prod(shape)),
                           ref.axial_mask(shape, axis, causal == "on"))


def learned(n):
    """Masks and scores that read tensors."""
    i, j = ref.ij(n)
    past = ref.causal(n)
    prefix = np.array([0, (n + 2) // 3], np.int32)
    yield Case("prefix-lm", {}, n, past | (j < prefix[:, None, None, None]), captured=dict(prefix=prefix))
    doc = np.sort(RNG.integers(0, 4, (B, n)), 1).astype(np.int32)
    same = doc[:, None, :, None] == doc[:, None, None, :]
    yield Case("documents", {}, n, past & same, captured=dict(documents=doc))
    yield Case("documents", dict(causal="off", shared_prefix=3), n, same | (j < 3), captured=dict(documents=doc))
    glob = np.array([[0, n - 1, -1], [n // 2, -1, -1]], np.int32)
    yield from longformer(n, glob)
    yield from bigbird(n)
    tree = (RNG.random((B, n, n)) < 0.3) | np.eye(n, dtype=bool)
    yield Case("tree", {}, n, np.concatenate([np.ones((B, 1, n, 11), bool), tree[:, None]], -1), m=n + 11,
               captured=dict(ancestors=tree.astype(np.int8)))
    for logits in (RNG.standard_normal(H), np.zeros(H), [-np.inf, 40.0, -40.0]):
        logits = np.asarray(logits, np.float32)
        for window in (0, 5):
            seen = past if window == 0 else past & (i - j < window)
            yield Case("learned-sinks", dict(window=window), n, captured=dict(sinks=logits),
                       oracle=lambda q, k, v, seen=seen, z=logits: ref.sdpa_sink(q, k, v, seen, z.astype(np.float64)))
    rates = np.log2(1 - 2.0 ** (-5 - np.arange(H))).astype(np.float32)
    kept = lambda q, k, v: np.where(past, 2 ** (rates[None, :, None, None].astype(np.float64) * (i - j)) * D ** -0.5 * np.einsum("bhid,bhjd->bhij", q, k), 0) @ v
    yield Case("retention", {}, n, captured=dict(rates=rates), oracle=kept)
    slopes = (2.0 ** -np.arange(1, H + 1)).astype(np.float32)
    for causal in ("on", "off"):
        yield Case("alibi", dict(causal=causal), n, past if causal == "on" else None,
                   bias=-slopes[None, :, None, None] * np.abs(i - j), captured=dict(slopes=slopes))
        sigmoid = lambda q, k, v, seen=past if causal == "on" else np.ones((n, n), bool): np.where(
            seen, 1 / (1 + np.exp(np.log(n) - D ** -0.5 * np.einsum("bhid,bhjd->bhij", q, k))), 0) @ v
        yield Case("sigmoid", dict(causal=causal), n, oracle=sigmoid)
        yield Case("soft-cap", dict(cap=2, causal=causal), n, past if causal == "on" else None, post=lambda s: 2 * np.tanh(s / 2))
        for buckets, farthest in ((32, 128), (8, 20)):
            table = RNG.standard_normal((H, buckets)).astype(np.float32)
            bias = table[:, ref.t5_bucket(j - i, buckets, farthest, causal == "off")]
            yield Case("t5-bias", dict(buckets=buckets, max_distance=farthest, causal=causal), n,
                       past if causal == "on" else None, bias=bias[None], scale=1.0, captured=dict(biases=table))


def longformer(n, glob):
    i, j = ref.ij(n)
    on = np.stack([np.isin(np.arange(n), g) for g in glob])[:, None]
    past = ref.causal(n)
    for windows, dilations in (([4], [1]), ([3], [1, 2]), ([2, 5], [1, 3, 1])):
        count = max(len(windows), len(dilations))
        settings = dict(window=",".join(map(str, windows)), dilation=",".join(map(str, dilations)))
        band = np.stack([(np.abs(i - j) <= windows[h % count % len(windows)] * dilations[h % count % len(dilations)]) &
                         ((i - j) % dilations[h % count % len(dilations)] == 0) for h in range(H)])[None]
        for causal in ("off", "on"):
            keep = past if causal == "on" else np.ones((n, n), bool)
            more = dict(settings, causal=causal)
            yield Case("longformer", dict(more, globals="none"), n, band & keep)
            yield Case("longformer", more, n, (band | on[:, :, None, :] | on[:, :, :, None]) & keep, captured=dict(**{"global": glob}))


def bigbird(n):
    """Blocks of 4, the last one perhaps cut; a table with padding; set semantics."""
    blocks = -(-n // 4)
    table = RNG.integers(-1, blocks, (blocks, 2)).astype(np.int32)
    p, q = ref.ij(blocks)
    glob = np.isin(p, (0, blocks - 1))
    keep = (np.abs(p - q) <= 1) | np.isin(p, (0, blocks - 1)) | np.isin(q, (0, blocks - 1))
    for row, entries in enumerate(table):
        keep[row, [entry for entry in entries if entry >= 0]] = True
    yield Case("bigbird", dict(block=4, random=2, tokens=n), n, np.kron(keep, np.ones((4, 4), bool))[:n, :n], captured=dict(random=table))
    for r in (table, np.zeros_like(table)):
        count = ((np.abs(p - q) <= 1) | glob | glob.T).astype(int)
        for row, entries in enumerate(r):
            for entry in entries[(entries >= 0) & (0 < row < blocks - 1)]:
                count[row, entry] += 1
        counts = np.kron(count, np.ones((4, 4), int))[:n, :n]
        with np.errstate(divide="ignore"):
            bias = np.where(counts > 0, np.log(counts), ref.NEG)
        yield Case("bigbird", dict(block=4, random=2, tokens=n, counted="on"), n, counts > 0, bias=bias, captured=dict(random=r))
        if n % 4 == 0 and blocks > 2 and (r >= 0).all():
            rand = np.broadcast_to(r[1:-1], (H, blocks - 2, 2))
            yield Case("bigbird", dict(block=4, random=2, tokens=n, counted="on"), n, captured=dict(random=r),
                       oracle=lambda q, k, v, rand=rand: ref.bigbird(q, k, v, 4, rand, multiset=True))


def routed(n):
    """Routing: more than all tokens to a cluster, tokens in several clusters and in none."""
    for clusters, window in ((2, 3), (5, 9), (3, 64)):
        mu = RNG.standard_normal((H, clusters, D)).astype(np.float32)
        for causal in ("off", "on"):
            for keys in ("separate", "shared"):
                for scale, mean in (("head_dim", "exact"), ("one", "shrunk")):
                    def oracle(q, k, v, mu=mu, w=window, more=dict(is_causal=causal == "on", share_qk=keys == "shared",
                               scale=1.0 if scale == "one" else None, eps=0.01 if mean == "shrunk" else 0.0)):
                        return ref.routing(q, k, v, mu.astype(np.float64), w, **more)
                    settings = dict(clusters=clusters, window=window, causal=causal, keys=keys, scale=scale, mean=mean)
                    unused = ("k",) if keys == "shared" else ()
                    yield Case("routing", settings, n, captured=dict(centroids=mu), unused=unused, oracle=oracle)
                if causal == "on":
                    nk, nv = (RNG.standard_normal((H * clusters, 2, D)).astype(np.float32) for _ in range(2))
                    yield Case("routing", dict(settings, null=2), n, captured=dict(centroids=mu, null_keys=nk, null_values=nv), unused=unused,
                               oracle=lambda q, k, v, mu=mu, w=window, nk=nk, nv=nv, shared=keys == "shared": routed_with_null(q, k, v, mu, w, nk, nv, shared))


def routed_with_null(q, k, v, mu, w, nk, nv, shared):
    """Causal, scale one, shrunk mean; the null keys of a cluster are seen by all its queries."""
    q = ref.layernorm(q)
    k = q if shared else ref.layernorm(k)
    total, count, clusters = np.zeros(v.shape), np.zeros(v.shape[:3] + (1,)), mu.shape[1]
    for b, h, c in np.ndindex(B, H, clusters):
        iq, ik = (np.sort(np.argsort(-(x[b, h] @ mu[h, c].astype(np.float64)), kind="stable")[:w]) for x in (q, k))
        g = h * clusters + c
        keys, values = (np.concatenate([extra[g].astype(np.float64), own[b, h][ik]]) for extra, own in ((nk, k), (nv, v)))
        mask = np.concatenate([np.ones((len(iq), 2), bool), ik <= iq[:, None]], 1)
        total[b, h][iq] += ref.sdpa(q[b, h][iq], keys, values, mask, scale=1.0)
        count[b, h][iq] += 1
    return np.where(count > 0, total / (count + 0.01), 0)


def recurrences(n):
    """Linear attention by its quadratic form, decays by their recurrence."""
    for causal in ("on", "off"):
        maps = dict(elu_plus_one=ref.elu1, relu=lambda x: np.maximum(x, 0), exp=np.exp, abs=np.abs, square=np.square, sigmoid=lambda x: 1 / (1 + np.exp(-x)))
        for features, phi in maps.items():
            for kv in (H, 1) if n == 37 else (H,) if features == "elu_plus_one" else ():
                yield Case("linear", dict(causal=causal, features=features), n, kv=kv, oracle=lambda q, k, v, causal=causal, phi=phi:
                           ref.linear_attention(q, *(np.broadcast_to(t, q.shape) for t in (k, v)), phi=phi, is_causal=causal == "on", eps=0))
    yield from performers(n)
    by_head = np.log(1 - 2.0 ** (-5 - np.arange(H)))
    by_step = -RNG.random((B, H, n)) * 3
    by_feature = -RNG.random((B, H, n, D))
    for preset, decay, log_decay, scale in (("retnet", by_head, by_head[None, :, None].repeat(n, 2), None), ("mamba2", by_step, by_step, 1.0),
                                            ("gla", by_feature, by_feature, None)):
        yield Case(preset, {}, n, captured=dict(decay=decay.astype(np.float32)), oracle=lambda q, k, v, log_decay=log_decay, scale=scale:
                   ref.lin_recurrence(q, k, v, log_decay, scale=scale))


def performers(n):
    """FAVOR+ and generalised features; causal ones by their running maximum, which sees no later key."""
    for projection, shape in (("shared", (24, D)), ("per_head", (H, 21, D))):
        w = RNG.standard_normal(shape).astype(np.float32)
        apply = lambda f, x, w=w.astype(np.float64): f(x, w) if w.ndim == 2 else np.stack([f(x[:, h:h + 1], w[h]) for h in range(H)], 1)[:, :, 0]
        for epsilon in ("1.0e-06", "0.0", "1.0e-03"):
            e = float(epsilon)
            favor = lambda x, query, e=e, apply=apply: apply(lambda x, w: ref.favor_plus(x, w, query, e), x)
            relu = lambda x, e=e, apply=apply: apply(lambda x, w: ref.favor_generalized(x, w, eps=e), x)
            settings = dict(projection=projection, epsilon=epsilon)
            yield Case("performer", settings, n, captured=dict(projection=w), oracle=lambda q, k, v, favor=favor:
                       ref.linear_attention(favor(q, True), favor(k, False), v, phi=lambda x: x, eps=0))
            yield Case("performer", dict(settings, causal="on"), n, captured=dict(projection=w), oracle=lambda q, k, v, favor=favor, apply=apply, e=e:
                       running(favor(q, True), apply(lambda x, w: x * D ** -0.25 @ w.T, k), (k * k).sum(-1) / (2 * D ** 0.5), v, e))
            if e == 0 and n == 37:  # of a narrow kernel: weights near 0 would be a test of the draw
                narrow = np.float32(0.25) * w
                wide = narrow.astype(np.float64)
                turn = lambda x, wide=wide: ref.favor_trig(x, wide) if wide.ndim == 2 else np.concatenate([ref.favor_trig(x[:, h:h + 1], wide[h]) for h in range(H)], 1)
                for causal in ("on", "off"):
                    yield Case("performer", dict(projection=projection, features="trigonometric", causal=causal), n, captured=dict(projection=narrow),
                               oracle=lambda q, k, v, turn=turn, causal=causal: ref.linear_attention(turn(q), turn(k), v, phi=lambda x: x, eps=0, is_causal=causal == "on"))
            for name, f in dict(exp=np.exp, abs=np.abs, square=np.square).items() if e == 1e-3 and n == 37 and projection == "shared" else ():
                mapped = lambda x, apply=apply, f=f: apply(lambda x, w: ref.favor_generalized(x, w, f, eps=1e-3), x)
                yield Case("performer", dict(settings, features=name), n, captured=dict(projection=w), oracle=lambda q, k, v, mapped=mapped:
                           ref.linear_attention(mapped(q), mapped(k), v, phi=lambda x: x, eps=0))
            if e:  # else all weights of a query may be 0
                for causal in ("on", "off"):
                    yield Case("performer", dict(settings, features="relu", causal=causal), n, captured=dict(projection=w), oracle=lambda q, k, v, relu=relu, causal=causal:
                               ref.linear_attention(relu(q), relu(k), v, phi=lambda x: x, eps=0, is_causal=causal == "on"))


def running(fq, u, half, v, e):
    """Token by token: sums shrink as the largest product so far grows."""
    c, s, z, out = np.full(u.shape[:2], -1e300), 0.0, 0.0, np.zeros(v.shape)
    for t in range(v.shape[2]):
        new = np.maximum(c, u[:, :, t].max(-1))
        f = np.exp(u[:, :, t] - half[:, :, t, None] - new[..., None]) + e
        a, c = np.exp(c - new)[..., None], new
        s, z = a[..., None] * s + f[..., None] * v[:, :, t, None], a * z + f
        out[:, :, t] = np.einsum("bhf,bhfd->bhd", fq[:, :, t], s) / (fq[:, :, t] * z).sum(-1, keepdims=True)
    return out


def decoded(folder):
    """Token by token through the state is what all at once is; answers what is wrong."""
    n, wrong = 9, []
    tensors = {key: RNG.standard_normal((B, H, n, D)).astype(np.float32) for key in ("q", "k", "v")}
    decays = dict(linear=None, retnet=-RNG.random(H), mamba2=-RNG.random((B, H, n)), gla=-RNG.random((B, H, n, D)), performer=None)
    for preset, decay, *settings in [*decays.items(), ("performer", None, "--set=features=trigonometric")]:
        inputs = dict(tensors) if decay is None else dict(tensors, decay=decay.astype(np.float32))
        directions = 24 if preset == "performer" else D
        features = 2 * directions if settings else directions
        state = dict(s0=np.zeros((B, H, features, D), np.float32))
        if decay is None:
            state = dict(z0=np.zeros((B, H, features), np.float32), **state)
        if preset == "performer":
            inputs["projection"] = RNG.standard_normal((directions, D)).astype(np.float32) * np.float32(0.25)
            state = dict(c0=np.full((B, H), -np.inf, np.float32), **state)
        whole = run_state(f"{folder}/{preset}", preset, {**inputs, **state}, settings)
        rows = []
        for t in range(n):
            token = {key: x[:, :, t:t + 1] if x.ndim > 2 else x for key, x in inputs.items()}
            row, *sums = run_state(f"{folder}/{preset}", preset, {**token, **state}, settings)
            rows.append(row)
            state = dict(zip(state, sums))
        for got, wanted in zip((np.concatenate(rows, 2), *sums), whole):
            if not np.abs(got - wanted).max() < 2e-5:
                wrong.append(f"{preset}: token by token off by {np.abs(got - wanted).max()}")
    return wrong


def run_state(folder, preset, inputs, settings):
    """The results of a preset with `state=on`."""
    os.makedirs(folder, exist_ok=True)
    command = ["attn-run", f"--preset={preset}", f"--head-dim={D}", "--set=state=on", "--set=causal=on", "--check", *settings]
    for key, tensor in inputs.items():
        np.save(f"{folder}/{key}.npy", tensor)
        command.append(f"--input={key}={folder}/{key}.npy")
    names = [f"out{i}" for i in range(1 + len({"c0", "z0", "s0"} & set(inputs)))]
    subprocess.run([*command, *(f"--output={name}={folder}/{name}.npy" for name in names)], capture_output=True, check=True)
    return [np.load(f"{folder}/{name}.npy") for name in names]


def projected(n):
    """Systems whose keys, values or scores are sums over other tensors."""
    draw = lambda *shape: RNG.standard_normal(shape).astype(np.float32)
    wide = lambda t: t.astype(np.float64)
    for sharing in ("heads", "none", "key_value"):
        e, f = (draw(H if sharing == "none" else 1, 6, n) / np.float32(8) for _ in range(2))
        flat = (lambda t: t) if sharing == "none" else (lambda t: t[0])
        own = dict(e=flat(e)) if sharing == "key_value" else dict(e=flat(e), f=flat(f))
        last = e if sharing == "key_value" else f
        yield Case("linformer", dict(features=6, sharing=sharing), n, captured=own,
                   oracle=lambda q, k, v, e=e, f=last: ref.linformer(q, k, v, *(np.broadcast_to(wide(t), (H, 6, n)) for t in (e, f))))
    for factor in (1, 3):
        for causal in ("inclusive", "strict", "off"):
            wk, wv = draw(H, D, factor, D) / np.float32(8), draw(H, D, factor, D) / np.float32(8)  # [heads, from, place, to]
            turn = lambda w: wide(w).transpose(0, 3, 1, 2)
            yield Case("memory-compressed", dict(factor=factor, causal=causal), n, captured=dict(wk=wk, wv=wv), function="memory_compressed",
                       oracle=lambda q, k, v, wk=wk, wv=wv, c=factor, s=causal: np.zeros_like(q) if len(q[0, 0]) < c else ref.memory_compressed(
                           q, k, v, turn(wk), np.zeros((H, D)), turn(wv), np.zeros((H, D)), c, s != "off", s == "strict"))
    scores, table = draw(B, H, n, n), draw(H, n, n)
    for kind, captured, total in (("dense", dict(scores=scores), scores), ("random", dict(table=table), table[None]),
                                  ("mixture", dict(scores=scores, table=table), scores + table)):
        for causal in ("off", "on"):
            yield Case("synthesizer", dict(scores=kind, causal=causal), n, captured=captured, unused=("q", "k"),
                       oracle=lambda q, k, v, s=total, c=causal: ref.synth(wide(s), v, c == "on"))
    for causal in ("off", "on"):
        q2, k2, lam = draw(B, H, n, D), draw(B, H, n, D), draw(H)
        mask = ref.causal(n) if causal == "on" else None
        case = Case("differential", dict(causal=causal), n, captured=dict(q2=q2, k2=k2), unused=("q", "k"),
                    oracle=lambda q, k, v, q2=q2, k2=k2, lam=lam, mask=mask: ref.sdpa(q, k, v, mask) - wide(lam)[None, :, None, None] * ref.sdpa(wide(q2), wide(k2), v, mask))
        case.captured.update(q1=case.q, k1=case.k, **{"lambda": lam})
        yield case


def recurrent(n):
    """Memory before the segment; distances beyond the table; what the memory is compressed by."""
    draw = lambda *shape: RNG.standard_normal(shape).astype(np.float32)
    wide = lambda t: t.astype(np.float64)
    for memory in (0, 11):
        for preset in ("transformer-xl", "compressive"):
            for length in (n + memory + 3, max(n // 2, 1)):
                r, u, w = draw(H, length, D), draw(H, D), draw(H, D)
                yield Case(preset, {}, n, m=n + memory, captured=dict(r=r, u=u, w=w), function="compressive" if preset == "compressive" else None,
                           oracle=lambda q, k, v, r=r, u=u, w=w, m=memory: ref.xl_attention(q, k, v, wide(r), wide(u), wide(w), m))
    r, u, w = draw(H, n + 11, D), draw(H, D), draw(H, D)
    i, j = ref.ij(n, n + 11)
    def near(q, k, v):
        dist = i + 11 - j
        s = np.einsum("bhid,bhjd->bhij", q + wide(u)[None, :, None], k) + np.einsum("bhid,hijd->bhij", q + wide(w)[None, :, None], wide(r)[:, np.clip(dist, 0, n + 10)])
        return ref.softmax(np.where((dist >= 0) & (dist < 7), s * D ** -0.5, ref.NEG)) @ v
    yield Case("transformer-xl", dict(same_length=7), n, m=n + 11, captured=dict(r=r, u=u, w=w), oracle=near)
    for factor in (1, 3):
        for function in ("mean", "max", "conv"):
            old, kernel = draw(B, H, n, D), draw(D, factor, D)
            fn = lambda q, k, v, old=old, kernel=kernel, c=factor, f=function: ref.compress(
                wide(old).reshape(B * H, n, D), c, f, wide(kernel).transpose(2, 0, 1)).reshape(B, H, n // c, D)
            yield Case("compressive", dict(factor=factor, function=function), n, captured=dict(old=old, **(dict(kernel=kernel) if function == "conv" else {})),
                       unused=("q", "k", "v"), function="compress", oracle=fn)
    g = 4
    kg, vg, qg, kgl, vgl = draw(B, H, g, D), draw(B, H, g, D), draw(B, H, g, D), draw(B, H, n, D), draw(B, H, n, D)
    for radius in (0, 5, 200):
        yield Case("etc", dict(radius=radius), n, captured=dict(kg=kg, vg=vg), function="etc_long",
                   oracle=lambda q, k, v, radius=radius: ref.etc(q, k, v, wide(kg), wide(vg), wide(qg), wide(kg), wide(vg), wide(kgl), wide(vgl), radius)[0])
    radius, labels = 5, 7
    emb, bias = draw(H, labels, D), draw(H, labels)
    ids = {name: RNG.integers(0, labels, shape).astype(np.int32) for name, shape in dict(
        near=(B, n, 2 * radius + 1), l2g=(B, n, g), g2g=(B, g, g), g2l=(B, g, n)).items()}
    def labelled(q, k, v, at):
        """Batch by batch, as labels are its own; those of far pairs do not matter."""
        out = []
        for b in range(B):
            one = lambda t: wide(t)[b:b + 1]
            i, j = ref.ij(n)
            l2l = np.take_along_axis(ids["near"][b], np.clip(j - i + radius, 0, 2 * radius), -1)
            rel = dict(l2l=l2l, l2g=ids["l2g"][b], g2g=ids["g2g"][b], g2l=ids["g2l"][b])
            out.append(ref.etc(one(q), one(k), one(v), one(kg), one(vg), one(qg), one(kg), one(vg), one(k), one(v), radius,
                               rel={name: (of, wide(emb), wide(bias)) for name, of in rel.items()})[at])
        return np.concatenate(out)
    more = dict(emb=emb, bias=bias, kg=kg, vg=vg)
    yield Case("etc", dict(radius=radius, labels="on"), n, captured=dict(more, near=ids["near"], **{"global": ids["l2g"]}), function="etc_long",
               oracle=lambda q, k, v: labelled(q, k, v, 0))
    case = Case("etc", dict(radius=radius, labels="on"), n, captured=dict(more, far=ids["g2l"], **{"global": ids["g2g"]}), function="etc_global",
                unused=("q",), oracle=lambda q, k, v: labelled(q, k, v, 1))
    case.captured["q"] = qg
    yield case
    case = Case("etc", {}, n, captured=dict(kg=kg, vg=vg), function="etc_global", unused=("q",),
                oracle=lambda q, k, v: ref.etc(k, k, v, wide(kg), wide(vg), wide(qg), wide(kg), wide(vg), k, v, 1)[1])
    case.captured["q"] = qg
    yield case


def reformed(n):
    """Reformer: a last chunk that is cut, one chunk only, buckets larger than a chunk and empty ones, given buckets with ties all over."""
    for rounds, chunk, buckets in ((3, 8, 6), (1, 5, 16)):
        for causal, same, wrap, dedup in [(c, s, w, d) for c in ("on", "off") for s in ("off", "on") for w in ("rounds", "cyclic", "none")
                                          for d in ("off", "on") if d == "off" or w == "none"]:
            rotations = RNG.standard_normal((H, rounds, D, buckets // 2)).astype(np.float32)
            yield hashed(n, rotations, dict(rounds=rounds, chunk=chunk, buckets=buckets, causal=causal, same_bucket=same, wrap=wrap, dedup=dedup))
        yield hashed(n, rotations, dict(rounds=rounds, chunk=chunk, buckets=buckets, scale="scaled"))
        for given in (RNG.integers(0, buckets, (B, H * rounds, n)), np.zeros((B, H * rounds, n))):
            yield hashed(n, rotations, dict(rounds=rounds, chunk=chunk, buckets=buckets, hash="given"), given.astype(np.int32))
        if n % chunk:
            yield padded(hashed(n, rotations, dict(rounds=rounds, chunk=chunk, buckets=buckets)), rotations, chunk, buckets)


def padded(case, rotations, chunk, buckets):
    """A last chunk that is cut is one that tokens of padding fill, in a bucket of their own behind all others."""
    qk, rounds = case.q.astype(np.float64), rotations.shape[1]
    n, more = qk.shape[2], -qk.shape[2] % chunk
    given = np.stack([[[ref.lsh_buckets(qk[b, h], rotations[h, r].astype(np.float64)) for r in range(rounds)] for h in range(H)] for b in range(B)])
    given = np.concatenate([given, np.full((B, H, rounds, more), buckets)], -1)
    fill = lambda t: np.concatenate([t, np.ones((B, H, more, D))], 2)
    case.oracle = lambda q, k, v: ref.reformer(fill(qk), fill(v), rotations.astype(np.float64), chunk, buckets=given)[:, :, :n]
    return case


def hashed(n, rotations, settings, given=None):
    case = Case("reformer", settings, n, unused=("q", "k"))
    on = lambda name, initial="off": settings.get(name, initial) == "on"
    buckets = None if given is None else given.reshape(B, H, settings["rounds"], n)
    qk = case.q
    case.oracle = lambda q, k, v: ref.reformer(
        qk.astype(np.float64), v, rotations.astype(np.float64), settings["chunk"], on("causal", "on"), settings.get("wrap", "rounds"),
        on("same_bucket"), on("dedup"), key_scale=settings.get("scale", "unit"), buckets=buckets)
    case.captured = dict(qk=qk, **(dict(rotations=rotations) if given is None else dict(buckets=given)))
    return case


def chosen(n):
    """Blocks of keys by score: fewer blocks than are wanted, one block, a last one that is cut, queries behind a cache."""
    for earlier, block, count, queries, group, first, window in ((0, 8, 2, 1, 1, 1, 5), (13, 4, 3, 4, H, 0, 2), (13, 16, 1, 1, 1, 1, 300), (0, 3, 40, 7, H, 2, 9)):
        for causal in ("on", "off"):
            yield Case("moba", dict(block=block, count=count, queries=queries, causal=causal), n, m=n + earlier, oracle=lambda q, k, v, a=(
                block, count, queries, causal == "on"): moba(q, k, v, *a))
        gates = RNG.random((B, H, n, 3)).astype(np.float32)
        settings = dict(block=block, count=count, queries=queries, first=first, local=1 + (first > 0), window=window, group=group)
        case = Case("nsa", settings, n, m=n + earlier, captured=dict(gates=gates))
        case.k, case.v = (t[:, :H // group] for t in (case.k, case.v))
        case.oracle = lambda q, k, v, s=settings, g=gates: nsa(q, k, v, s, g)
        yield case


def take_blocks(scores, own, count, first, local, causal):
    """The blocks that one row takes; `own` are the first and the last of its own."""
    always = [v for v in range(len(scores)) if (v < first and not (causal and v > own[1])) or (local and own[0] - local < v <= own[1])]
    others = sorted((v for v in range(len(scores)) if v not in always and not (causal and v > own[1])), key=lambda v: -scores[v])
    return always + others[:max(count - len(always), 0)]


def block_mask(n, m, scores, block, queries, count, first, local, causal):
    keep = np.zeros((*scores.shape[:2], n, m), bool)
    for b, g, u in np.ndindex(scores.shape[:3]):
        rows = range(u * queries, min((u + 1) * queries, n))
        taken = take_blocks(scores[b, g, u], [(row + m - n) // block for row in (rows[0], rows[-1])], count, first, local, causal)
        keep[b, g, rows[0]:rows[-1] + 1] = np.isin(np.arange(m) // block, taken)
    return keep & (np.arange(m) <= np.arange(n)[:, None] + m - n) if causal else keep


def block_means(t, block):
    return np.stack([t[:, :, at:at + block].mean(2) for at in range(0, t.shape[2], block)], 2)


def moba(q, k, v, block, count, queries, causal):
    n, m = q.shape[2], k.shape[2]
    speakers = q[:, :, ::queries] if causal else block_means(q, queries)
    scores = np.einsum("bhud,bhvd->bhuv", speakers, block_means(k, block))
    return ref.sdpa(q, k, v, block_mask(n, m, scores, block, queries, count, 0, 1, causal))


def nsa(q, k, v, settings, gates):
    n, m, block, group = q.shape[2], k.shape[2], settings["block"], settings["group"]
    kc, vc, kh, vh = (np.repeat(t, group, 1) for t in (block_means(k, block), block_means(v, block), k, v))
    position = np.arange(n)[:, None] + m - n
    seen = (np.arange(kc.shape[2]) + 1) * block - 1 <= position
    s = np.where(seen, D ** -0.5 * np.einsum("bhid,bhvd->bhiv", q, kc), ref.NEG)
    weights = np.exp(s - np.where(np.isfinite(z := ref.lse(s, -1)), z, 0))  # of one head they are in the order of its scores
    by_group = weights.reshape(B, -1, group, n, kc.shape[2]).sum(2)[:, :, ::settings["queries"]]
    keep = np.repeat(block_mask(n, m, by_group, block, *(settings[name] for name in ("queries", "count", "first", "local")), True), group, 1)
    j = np.arange(m)
    parts = ref.sdpa(q, kc, vc, seen), ref.sdpa(q, kh, vh, keep), ref.sdpa(q, kh, vh, (j <= position) & (j > position - settings["window"]))
    return sum(part * gates[..., at:at + 1].astype(np.float64) for at, part in enumerate(parts))


def sorted_softly(n):
    """Sinkhorn: a last block that is cut, one block, blocks from nowhere."""
    for block in (8, 3):
        blocks = -(-n // block)
        logits = RNG.standard_normal((B, H, blocks, blocks)).astype(np.float32)
        for combine in ("concat", "sum", "sorted"):
            for more in (dict(), dict(causal="on"), dict(sortcut=2), dict(iterations=1), dict(logits="means")):
                means = "logits" in more
                if not means or n % block == 0:
                    settings = dict(block=block, combine=combine, **more)
                    yield Case("sinkhorn", settings, n, captured={} if means else dict(logits=logits),
                               oracle=lambda q, k, v, settings=settings, r=None if means else logits: sinkhorn(q, k, v, settings, r))


def sinkhorn(q, k, v, settings, logits):
    """reference.py where blocks are whole and there is no order of time."""
    n, block, iterations, cut = q.shape[2], settings["block"], settings.get("iterations", 8), settings.get("sortcut", 0)
    blocks = -(-n // block)
    split = lambda t: np.pad(t, ((0, 0), (0, 0), (0, blocks * block - n), (0, 0))).reshape(B, H, blocks, block, D)
    if logits is None:
        logits = np.einsum("bhud,bhvd->bhuv", split(q).mean(3), split(k).mean(3)) * D ** -0.5
    causal = settings.get("causal") == "on"
    if not causal and n % block == 0:
        return ref.sinkhorn(q, k, v, logits.astype(np.float64), block, iterations, settings["combine"], min(cut, blocks))
    out = np.zeros(q.shape)
    for u in range(blocks):
        # Of a causal order block u is computed from what there is until then: nothing later can matter.
        weights = causal_weights(logits[..., :u + 1, :u + 1], iterations) if causal else ref.sinkhorn_norm(logits.astype(np.float64), iterations)
        rows = slice(u * block, min(n, (u + 1) * block))
        chosen = [u] if not cut else range(min(cut, blocks))
        seen = weights.shape[-1]
        mixed = [np.concatenate([np.einsum("bhv,bhvtd->bhtd", weights[:, :, c], split(t)[:, :, :seen]) for c in chosen], 2) for t in (k, v)]
        own = [t[:, :, rows] for t in (k, v)]
        mask = ref.causal(own[0].shape[2]) if causal else np.ones((own[0].shape[2],) * 2, bool)
        if causal and u == 0:
            mixed = [t[:, :, :0] for t in mixed]
        full = np.ones((mask.shape[0], mixed[0].shape[2]), bool)
        if settings["combine"] == "concat":
            mixed = [np.concatenate(pair, 2) for pair in zip(mixed, own)]
            full = np.concatenate([full, mask], 1)
        out[:, :, rows] = attend(q[:, :, rows], *mixed, full)
        if settings["combine"] == "sum":
            out[:, :, rows] += attend(q[:, :, rows], *own, mask)
    return out


def attend(q, k, v, mask):
    return ref.sdpa(q, k, v, mask) if k.shape[2] else np.zeros(q.shape)


def causal_weights(logits, iterations):
    x = np.where(np.tri(logits.shape[-1], k=-1, dtype=bool), logits.astype(np.float64), ref.NEG)
    finite = lambda z: np.where(np.isfinite(z), z, 0.0)
    for _ in range(iterations):
        x = x - finite(ref.lse(x, -1))
        x = x - finite(np.logaddexp.accumulate(x, -2))
    return np.exp(x)


def main(folder):
    cases = [case for n in LENGTHS for family in (fixed, learned, routed, recurrences, projected, recurrent, reformed, sorted_softly, chosen) for case in family(n)] + list(grids())
    with ThreadPoolExecutor(2) as pool:
        wrong = [text for text in pool.map(lambda item: item[1].run(f"{folder}/{item[0]}"), enumerate(cases)) if text]
    wrong += decoded(f"{folder}/decoded")
    listed = subprocess.run(["attn-compile", "--list-presets"], capture_output=True, text=True, check=True).stdout
    missing = {line.split(":")[0] for line in listed.splitlines() if line and line[0] != " "} - {case.preset for case in cases}
    wrong += [f"{name}: no case" for name in sorted(missing)]
    print(f"{len(cases)} cases, {len(wrong)} wrong")
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main(sys.argv[1])
