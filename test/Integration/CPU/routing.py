"""The steps of routing and hashing, on a CPU or, with --target=cuda-emulated, on a GPU: `routing.py CASE FOLDER [OPTION...]`."""

import sys

from sweep import Sweep, write_npy

INF = float("inf")


def chain(arguments, results, *steps, outs=None):
    """func.func @f of `steps`, "name = op : types", whose last ones are the results, or `outs`; types by their letter."""
    types = dict(t="tensor<?x?x?x?xf32>", h="tensor<?x?x?x?xf16>", z="tensor<?x?x?xf32>", i="tensor<?x?x?xi32>", c="tensor<?x3x?xf32>")
    names = "".join(f"!{letter} = {text}\n" for letter, text in types.items())
    body = "".join(f"  {step}\n" for step in steps)
    out = outs.split(", ") if outs else [step.split(" = ")[0] for step in steps][-len(results):]
    return (f"{names}func.func @f({', '.join(f'%{name}: !{kind}' for name, kind in arguments.items())}) -> "
            f"({', '.join('!' + kind for kind in results)}) {{\n{body}  return {', '.join(out)} : {', '.join('!' + kind for kind in results)}\n}}\n")


def routing_steps(s, *options):
    """Rows normalised, scored, chosen (ties, NaN, fewer than wanted) and scattered back (rows twice, in no group, -1)."""
    for kind in "th":
        for more in ("eps(1.0e-5)", "eps(0.0) centered"):
            spec = chain(dict(x=kind), kind, f"%out = attn.normalize_rows %x {more} : !{kind} -> !{kind}")
            s.check(f"normalize_rows {more} {kind}", spec, ["B=2,H=3,N=37,D=24", "N=1,D=1", "H=1,N=5,D=19"], *options)
    zeros = write_npy(s.path("zeros.npy"), "f", [1, 1, 3, 9], [0.0] * 18 + [1.0] * 9)
    for more in ("eps(0.0)", "eps(0.0) centered"):
        spec = chain(dict(x="t"), "t", f"%out = attn.normalize_rows %x {more} : !t -> !t")
        s.check(f"zero rows {more}", spec, "", *options, files=dict(x=zeros))
    spec = chain(dict(x="t", c="c"), "z", "%out = attn.row_scores %x, %c : !t, !c -> !z")
    s.check("row_scores", spec, ["B=2,H=3,N=70,D=24", "N=1,D=3"], *options)
    scores = [float((7 * n) % 5 - 2) for n in range(2 * 3 * 11)]
    scores[:11] = [float("nan"), -INF, INF, -0.0, 0.0, -1e-40, 1e-40, -3e38, 3e38, float("nan"), INF]
    scores[11:22] = [float("nan")] * 11
    for count in (1, 4, 7, 11, 13):
        spec = chain(dict(x="z"), "i", f"%out = attn.top_rows %x count({count}) : !z -> !i")
        s.check(f"top_rows {count}", spec, "", *options, files=dict(x=write_npy(s.path("x.npy"), "f", [2, 3, 11], scores)))
    rows = write_npy(s.path("rows.npy"), "i", [1, 4, 3], [0, 4, 2, 4, -1, -1, 9, 4, -7, 3, 3, 2])
    spec = chain(dict(x="t", r="i", like="t"), "it", "%p = attn.invert_rows %r like %like : !i, !t -> !i",
                 "%out = attn.scatter_mean %x[%p] groups(2) eps(0.0) : !t, !i -> !t")
    s.check("scatter_mean", spec, ["H=2,N=6,Dv=40", "H=2,N=5,Dv=3"], *options, files=dict(r=rows))
    s.check("scatter_mean, shrunk", spec.replace("eps(0.0)", "eps(0.5)").replace("!t = tensor<?x?x?x?xf32>", "!t = tensor<?x?x?x24xf16>"),
            "H=2,N=6", *options, files=dict(r=rows))
    spec = chain(dict(x="t", r="i", base="t"), "t", "%p = attn.invert_rows %r like %base : !i, !t -> !i",
                 "%out = attn.scatter_rows %x[%p] into %base : !t, !i, !t -> !t")
    s.check("scatter_rows", spec, ["H=2,N=6,D=40", "H=4,N=5,D=3", "H=1,N=5,D=8"], *options, files=dict(r=rows))
    block_steps(s, *options)


def block_steps(s, *options):
    """Means of cut blocks; blocks chosen with ties, NaN, -inf, queries before the first key, and always too many."""
    for kind in "th":
        for block in (1, 8, 64):
            spec = chain(dict(x=kind), kind, f"%out = attn.block_means %x block({block}) : !{kind} -> !{kind}")
            s.check(f"block_means {block} {kind}", spec, ["B=2,H=3,N=37,D=24", "H=1,N=1,D=1"], *options)
    some = [float((7 * n) % 5 - 2) for n in range(2 * 37 * 37)]
    some[:10] = [float("nan"), -INF, INF, -0.0, 0.0, 0.0, -3e38, 3e38, float("nan"), INF]
    for queries, keys, rows, block in ((37, 37, 1, 2), (19, 37, 1, 2), (37, 19, 1, 1), (37, 37, 2, 2), (9, 5, 4, 16)):
        shape = [1, 2, -(-queries // rows), -(-keys // block)]
        scores = write_npy(s.path("scores.npy"), "f", shape, some[:2 * shape[2] * shape[3]])
        q, k = (write_npy(s.path(f"{name}.npy"), "f", [1, 2, count, 1], [0.0] * 2 * count) for name, count in (("q", queries), ("k", keys)))
        for more in ("count(1)", "count(4)", "count(4) causal", "count(5) first(2) local(3) causal", "count(2) first(2) local(1)", "count(99) first(1) causal"):
            spaced = more.replace(")", f") queries({rows}) block({block})", 1)
            spec = chain(dict(s="t", q="t", k="t"), "j", f"%out = attn.top_blocks %s of %q, %k {spaced} : !t, !t, !t -> !j")
            spec = spec.replace("!i =", "!j = tensor<?x?x?x?xi32>\n!i =", 1)
            s.check(f"top_blocks {shape} {more}", spec, "", *options, files=dict(s=scores, q=q, k=k))



def sorting_steps(s, *options):
    """Tokens hashed (ties, NaN, buckets that vectors do not fill), sorted (keys outside), looked back at; blocks sorted softly and mixed."""
    for half in (1, 3, 21, 64):
        w = f"tensor<?x3x?x{half}xf32>"
        spec = chain(dict(x="t", w="w"), "i", "%out = attn.lsh_buckets %x, %w : !t, !w -> !i").replace("!i =", f"!w = {w}\n!i =", 1)
        whole = [float((5 * k + k // 7) % 7 - 3) for k in range(max(2 * 37 * 4, 2 * 3 * 4 * half))]  # ties, and exact
        x = write_npy(s.path("x.npy"), "f", [1, 2, 37, 4], [float("nan") if k == 40 else n for k, n in enumerate(whole[:2 * 37 * 4])])
        s.check(f"lsh_buckets {half}", spec, "", *options, files=dict(x=x, w=write_npy(s.path("w.npy"), "f", [2, 3, 4, half], whole[:2 * 3 * 4 * half])))
    for count, buckets in ((37, 5), (1, 1), (8, 40), (0, 3)):
        keys = write_npy(s.path("keys.npy"), "i", [2, 3, count], [(7 * k + k // 5) % 9 - 2 for k in range(2 * 3 * count)])
        spec = chain(dict(keys="i"), "iii", f"%out, %places, %starts = attn.sort %keys buckets({buckets}) : !i -> !i, !i, !i", outs="%out, %places, %starts")
        s.check(f"sort {count} {buckets}", spec, "", *options, files=dict(keys=keys))
        for ring, chunk in ((1, 8), (3, 5), (3, 64)):
            spec = chain(dict(keys="i"), "i", f"%out = attn.look_back %keys chunk({chunk}) groups({ring}) : !i -> !i")
            s.check(f"look_back {count} {chunk} {ring}", spec, "", *options, files=dict(keys=keys))
    for more in ("iterations(1)", "iterations(8)", "iterations(3) causal"):
        spec = chain(dict(r="t"), "t", f"%out = attn.sinkhorn %r {more} : !t -> !t")
        for size in (1, 2, 9):
            logits = [float((11 * k) % 13 - 6) for k in range(2 * size * size)]
            if size == 9:
                logits[9:18] = [-INF] * 9  # a row and a column of nothing; far apart
                logits[81 + 3::9] = [-INF] * 9
                logits[-1] = 80.0
            s.check(f"sinkhorn {more} {size}", spec, "", *options, files=dict(r=write_npy(s.path("r.npy"), "f", [1, 2, size, size], logits)))
    for width in ("?", "24"):
        spec = chain(dict(p="t", x="u"), "u", "%out = attn.mix_blocks %p, %x block(4) : !t, !u -> !u").replace("!i =", f"!u = tensor<?x?x?x{width}x{'f16' if width == '24' else 'f32'}>\n!i =", 1)
        weights = write_npy(s.path("p.npy"), "f", [1, 2, 3, 3], [float(k % 4) / 4 for k in range(18)])
        s.check(f"mix_blocks {width}", spec, ["N=12" + ",D=37" * (width == "?"), "N=9" + ",D=3" * (width == "?")], *options, files=dict(p=weights))
    nan = write_npy(s.path("nan.npy"), "f", [1, 1, 3, 2], [1.0, 2.0, float("nan"), INF, 3.0, 4.0])
    weights = write_npy(s.path("p.npy"), "f", [1, 1, 2, 3], [0.5, 0.0, 1.0, 0.0, 0.0, 0.0])
    spec = chain(dict(p="t", x="t"), "t", "%out = attn.mix_blocks %p, %x block(1) : !t, !t -> !t")
    s.check("weights of 0", spec, "", *options, files=dict(p=weights, x=nan))


if __name__ == "__main__":
    run = Sweep(sys.argv[2])
    globals()[sys.argv[1]](run, *sys.argv[3:])
    run.finish()
