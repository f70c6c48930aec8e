"""Variants of presets that take further operands, and batches with padding, against NumPy: `variants.py FOLDER`."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from oracles import B, D, H, RNG, Case, ref, running

NOTHING = ("q", "k", "v")


def draw(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def wide(t):
    return t.astype(np.float64)


def synthesizer(n):
    r1, r2, hidden = draw(H, n, 5), draw(H, n, 5), draw(B, H, n, D)
    w2, b2, table = draw(H, n, D), draw(H, n), draw(H, n, n)
    a, c = draw(B, H, n, 4), draw(B, H, n, -(-n // 4))
    network = np.einsum("bhnd,hld->bhnl", np.maximum(wide(hidden), 0), wide(w2)) + wide(b2)[None, :, None]
    for causal in ("off", "on"):
        for scores, captured, total in (("factorised_random", dict(of_queries=r1, of_keys=r2), ref.synth_fact_random(wide(r1), wide(r2))[None]),
                                        ("factorised_dense", dict(a=a, c=c), ref.synth_fact_dense(wide(a), wide(c))[..., :n]),
                                        ("network", dict(hidden=hidden, w2=w2, b2=b2), network)):
            yield Case("synthesizer", dict(scores=scores, causal=causal, rank=5 if "random" in scores else 4), n, captured=captured,
                       unused=("q", "k"), oracle=lambda q, k, v, s=total, c=causal: ref.synth(s, v, c == "on"))
        yield Case("synthesizer", dict(scores="plus", causal=causal), n, mask=ref.causal(n) if causal == "on" else None, bias=table, captured=dict(table=table))


def sets(n):
    """Points without a batch; padding behind the tokens of a batch, one of which is empty."""
    lengths = np.array([n, n // 2], np.int32)
    there = (np.arange(n) < lengths[:, None])[:, None, None]
    points, wk, wv = draw(H, 4, D), draw(H, D, H, D) / np.float32(8), draw(H, D, H, D) / np.float32(8)
    every = np.broadcast_to(wide(points), (B, H, 4, D))
    for padding in ("off", "on"):
        seen, more = (there, dict(lengths=lengths)) if padding == "on" else (None, {})
        for scale, settings in ((D ** -0.5, {}), ((H * D) ** -0.5, dict(scale="model", heads=H))):
            settings = dict(settings, padding=padding)
            yield Case("set", settings, 5, seen, m=n, captured=more, scale=scale)
            yield Case("set", dict(settings, block="pma"), n, captured=dict(more, seeds=points), unused=("q",), function="pma",
                       oracle=lambda q, k, v, seen=seen, scale=scale: ref.sdpa(every, k, v, seen, scale=scale))
            def isab(q, k, v, seen=seen, scale=scale):
                gathered = ref.sdpa(every, k, v, seen, scale=scale)
                kp, vp = (np.einsum("bgne,gehd->bhnd", gathered, wide(w)) for w in (wk, wv))
                return ref.sdpa(q, kp, vp, scale=scale)
            yield Case("set", dict(settings, block="isab"), n, captured=dict(more, points=points, wk=wk, wv=wv), oracle=isab)


def compressed(n):
    """Biases, keys that are always there, zeros to the left of the tokens."""
    c = 3
    wk, wv, bk, bv = draw(H, D, c, D) / np.float32(8), draw(H, D, c, D) / np.float32(8), draw(H, D), draw(H, D)
    nk, nv = draw(H, D), draw(H, D)
    turn = lambda w: wide(w).transpose(0, 3, 1, 2)
    every = lambda t: np.ascontiguousarray(np.broadcast_to(t[None, :, None], (B, H, 1, D)))
    for causal in ("inclusive", "strict", "off") if n >= c else ():
        captured = dict(wk=wk, wv=wv, bk=bk, bv=bv, nk=every(nk), nv=every(nv))
        yield Case("memory-compressed", dict(factor=c, causal=causal, bias="on", null="on"), n, captured=captured, function="memory_compressed",
                   oracle=lambda q, k, v, s=causal: ref.memory_compressed(q, k, v, turn(wk), wide(bk), turn(wv), wide(bv), c, s != "off",
                                                                          s == "strict", (wide(nk), wide(nv))))
    case = Case("memory-compressed", dict(factor=c), n, captured=dict(wk=wk, wv=wv), function="memory_compressed")
    left = -n % c
    case.k, case.v = (np.pad(t, ((0, 0), (0, 0), (left, 0), (0, 0))) for t in (case.k, case.v))
    case.oracle = lambda q, k, v: ref.memory_compressed(np.pad(q, ((0, 0), (0, 0), (left, 0), (0, 0))), k, v, turn(wk), np.zeros((H, D)), turn(wv),
                                                        np.zeros((H, D)), c, True)[:, :, left:]
    yield case
    for taps, factor, dilation in ((3, 2, 4), (0, 3, 2), (1, 2, 9)):
        old, kernel = draw(B, H, n, D), draw(D, taps or factor, D)
        reach = ((taps or factor) - 1) * dilation + 1
        if n >= reach:
            at = np.arange((n - reach) // factor + 1)[:, None] * factor + np.arange(taps or factor) * dilation
            yield Case("compressive", dict(factor=factor, function="conv", taps=taps, dilation=dilation), n, captured=dict(old=old, kernel=kernel),
                       unused=NOTHING, function="compress", oracle=lambda q, k, v, old=old, kernel=kernel, at=at:
                       np.einsum("bhmtk,ktd->bhmd", wide(old)[:, :, at], wide(kernel)))
    old, usage = draw(B, H, n, D), RNG.integers(0, 3, (B, H, n)).astype(np.float32)  # with ties: the lower token
    def most_used(q, k, v, old=old, usage=usage, keep=6):
        out = np.zeros((B, H, keep, D))
        for b, h in np.ndindex(B, H):
            kept = np.sort(np.argsort(-usage[b, h], kind="stable")[:keep])
            out[b, h, :len(kept)] = old[b, h, kept]
        return out
    yield Case("compressive", dict(function="most_used", keep=6), n, captured=dict(old=old, usage=usage), unused=NOTHING, function="compress", oracle=most_used)


def longformer(n):
    """Global tokens by head, whose rows are of other projections."""
    glob = np.stack([np.stack([RNG.permutation(n)[:3] if n > 2 else np.array([0, -1, -1]) for _ in range(H)]) for _ in range(B)]).astype(np.int32)
    glob[0, 0, -1] = -1
    i, j = ref.ij(n)
    on = np.stack([[np.isin(np.arange(n), g) for g in heads] for heads in glob])
    qg, kg, vg = draw(B, H, 3, D), draw(B, H, n, D), draw(B, H, n, D)
    for causal in ("off", "on"):
        past = ref.causal(n) if causal == "on" else np.ones((n, n), bool)
        def oracle(q, k, v, past=past):
            out = ref.sdpa(q, k, v, ((np.abs(i - j) <= 4) | on[:, :, None]) & past)
            for b, h, g in np.ndindex(glob.shape):
                if (at := glob[b, h, g]) >= 0:
                    rows = [wide(t)[b:b + 1, h:h + 1] for t in (qg[:, :, g:g + 1], kg, vg)]
                    out[b, h, at] = ref.sdpa(*rows, past[at:at + 1])[0, 0, 0]
            return out
        yield Case("longformer", dict(window=4, globals="separate", causal=causal), n, captured={"global": glob, "qg": qg, "kg": kg, "vg": vg}, oracle=oracle)


def tables(n):
    """BigBird with a table for each head; ETC with who sees whom."""
    blocks = -(-n // 4)
    p, q = ref.ij(blocks)
    near = (np.abs(p - q) <= 1) | np.isin(p, (0, blocks - 1)) | np.isin(q, (0, blocks - 1))
    table = RNG.integers(-1, blocks, (H, blocks, 2)).astype(np.int32)
    named = (table[..., None] == np.arange(blocks)).any(2)
    grow = lambda t: np.kron(t, np.ones((4, 4), t.dtype))[..., :n, :n]
    settings = dict(block=4, random=2, tokens=n, tables="per_head")
    yield Case("bigbird", settings, n, np.stack([grow(near | named[h]) for h in range(H)])[None], captured=dict(random=table))
    count = near + np.where(np.isin(p, (0, blocks - 1)), 0, (table[..., None] == np.arange(blocks)).sum(2))
    counts = np.stack([grow(count[h]) for h in range(H)])[None]
    yield Case("bigbird", dict(settings, counted="on"), n, counts > 0, bias=np.log(np.maximum(counts, 1)), captured=dict(random=table))
    g, radius = 4, 5
    kg, vg, qg = draw(B, H, g, D), draw(B, H, g, D), draw(B, H, g, D)
    some = lambda *shape: (RNG.random(shape) < 0.6).astype(np.int8)
    masks = dict(l2l=some(B, n, 2 * radius + 1), l2g=some(B, n, g), g2g=some(B, g, g), g2l=some(B, g, n))
    i, j = ref.ij(n)
    def etc(q, k, v, at):
        out = []
        for b in range(B):
            one = lambda t: wide(t)[b:b + 1]
            of = dict({name: t[b] != 0 for name, t in masks.items()}, l2l=np.take_along_axis(masks["l2l"][b], np.clip(j - i + radius, 0, 2 * radius), -1) != 0)
            out.append(ref.etc(one(q), one(k), one(v), one(kg), one(vg), one(qg), one(kg), one(vg), one(k), one(v), radius, masks=of)[at])
        return np.concatenate(out)
    settings = dict(radius=radius, masks="on")
    yield Case("etc", settings, n, captured=dict(kg=kg, vg=vg, l2l=masks["l2l"], l2g=masks["l2g"]), function="etc_long", oracle=lambda q, k, v: etc(q, k, v, 0))
    case = Case("etc", settings, n, captured=dict(kg=kg, vg=vg, g2g=masks["g2g"], g2l=masks["g2l"]), function="etc_global", unused=("q",),
                oracle=lambda q, k, v: etc(k, k, v, 1))
    case.captured["q"] = qg
    yield case


def padded(n):
    """What stands behind the tokens of a batch, or among them, does not matter: it is huge here."""
    lengths = np.array([n, n // 2], np.int32)
    there = (np.arange(n) < lengths[:, None]).astype(np.float32)
    there[0, n // 3] = n == 1
    on = there[:, None, :, None] != 0
    def spoil(case):
        case.k, case.v = (np.where(on, t, np.float32(1e30)) for t in (case.k, case.v))
        return case
    clean = lambda t: np.where(on, t, 0.0)
    e, f = draw(H, 6, n) / np.float32(8), draw(H, 6, n) / np.float32(8)
    yield spoil(Case("linformer", dict(features=6, sharing="none", padding="on"), n, captured=dict(e=e, f=f, there=there),
                     oracle=lambda q, k, v: ref.linformer(q, clean(k), clean(v), wide(e), wide(f))))
    keys = lambda phi, k: np.where(on, phi(clean(k)), 0.0)
    def plain(q, k, v, causal):
        with np.errstate(invalid="ignore"):  # a batch of no token gives 0
            return np.nan_to_num(ref.linear_attention(q, k, clean(v), phi=lambda x: x, eps=0, is_causal=causal == "on"), nan=0.0)
    w = draw(24, D) * np.float32(0.25)
    for causal in ("on", "off"):
        yield spoil(Case("linear", dict(causal=causal, padding="on"), n, captured=dict(there=there), oracle=lambda q, k, v, c=causal:
                         plain(ref.elu1(q), keys(ref.elu1, k), v, c)))
        for features, phi in (("relu", lambda x: ref.favor_generalized(x, wide(w), eps=1e-3)), ("trigonometric", lambda x: ref.favor_trig(x, wide(w)))):
            yield spoil(Case("performer", dict(features=features, causal=causal, epsilon="1.0e-03", padding="on"), n, captured=dict(projection=w, there=there),
                             oracle=lambda q, k, v, c=causal, phi=phi: plain(phi(q), keys(phi, k), v, c)))
    def favor(q, k, v):
        """The largest product is that of a token, so epsilon is what it is without padding."""
        out = np.zeros(v.shape)
        for b in range(B):
            at = there[b] != 0
            if at.any():
                fq, fk = ref.favor_plus(q[b:b + 1], wide(w), True, 1e-3), ref.favor_plus(k[b:b + 1, :, at], wide(w), False, 1e-3)
                out[b:b + 1] = ref.linear_attention(fq, fk, v[b:b + 1, :, at], phi=lambda x: x, eps=0)
        return out
    yield spoil(Case("performer", dict(padding="on", epsilon="1.0e-03"), n, captured=dict(projection=w, there=there), oracle=favor))
    half = lambda k: (k * k).sum(-1) / (2 * D ** 0.5)
    def favor_so_far(q, k, v):
        out = np.zeros(v.shape)
        for b in range(B):
            at = np.flatnonzero(there[b])
            if len(at):
                k0, v0 = k[b:b + 1, :, at], v[b:b + 1, :, at]
                last = np.maximum(np.searchsorted(at, np.arange(n), side="right") - 1, 0)  # of a query, the last token so far
                seen = np.arange(n) >= at[0]
                for t in np.flatnonzero(seen):
                    fq = ref.favor_plus(q[b:b + 1, :, t:t + 1], wide(w), True, 1e-3)
                    m = last[t] + 1
                    rows = running(np.repeat(fq, m, 2), k0[:, :, :m] * D ** -0.25 @ wide(w).T, half(k0[:, :, :m]), v0[:, :, :m], 1e-3)
                    out[b, :, t] = rows[0, :, -1]
        return out
    if n == 5:
        yield spoil(Case("performer", dict(padding="on", epsilon="1.0e-03", causal="on"), n, captured=dict(projection=w, there=there), oracle=favor_so_far))


def main(folder):
    few = (padded,)
    families = {1: (synthesizer, sets, longformer, tables, *few), 5: few, 37: (synthesizer, sets, compressed, longformer, tables, *few)}
    cases = [case for n, chosen in families.items() for family in chosen for case in family(n)]
    with ThreadPoolExecutor(2) as pool:
        wrong = [text for text in pool.map(lambda item: item[1].run(f"{folder}/{item[0]}"), enumerate(cases)) if text]
    print(f"{len(cases)} cases, {len(wrong)} wrong")
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main(sys.argv[1])
