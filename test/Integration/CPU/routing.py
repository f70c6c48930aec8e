"""The steps of routing and hashing, on a CPU or, with --target=cuda-emulated, on a GPU: `routing.py CASE FOLDER [OPTION...]`."""

import sys

from sweep import Sweep, write_npy

INF = float("inf")


def chain(arguments, results, *steps):
    """func.func @f of `steps`, "name = op : types", whose last ones are the results; types by their letter."""
    types = dict(t="tensor<?x?x?x?xf32>", h="tensor<?x?x?x?xf16>", z="tensor<?x?x?xf32>", i="tensor<?x?x?xi32>", c="tensor<?x3x?xf32>")
    names = "".join(f"!{letter} = {text}\n" for letter, text in types.items())
    body = "".join(f"  {step}\n" for step in steps)
    out = [step.split(" = ")[0] for step in steps][-len(results):]
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


if __name__ == "__main__":
    run = Sweep(sys.argv[2])
    globals()[sys.argv[1]](run, *sys.argv[3:])
    run.finish()
