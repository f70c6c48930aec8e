"""The steps around attention: `steps.py CASE FOLDER [OPTION...]`, the options of attn-run, as --target=cuda-emulated."""

import sys

from cases import INF
from sweep import Sweep, write_npy


def steps(s, *options):
    """Rows gathered (-1: no row, groups of heads, numbers alone) and parts merged (empty ones, NaN in empty ones, far apart)."""
    for kind, width in (("f32", "?"), ("f32", "40"), ("f16", "?"), ("bf16", "24")):
        x, i = f"tensor<?x?x?x{width}x{kind}>", "tensor<?x?xQxi32>"
        for count, index in (("?", "i32"), ("7", "i64")):
            rows = f"tensor<?x?x{count}x{index}>"
            spec = (f"func.func @f(%x: {x}, %r: {rows}) -> {x.replace('?x?x?', f'?x?x{count}')} {{\n"
                    f"  %out = attn.gather_rows %x[%r] : {x}, {rows} -> {x.replace('?x?x?', f'?x?x{count}')}\n"
                    f"  return %out : {x.replace('?x?x?', f'?x?x{count}')}\n}}\n")
            fixed = "" if width != "?" else ",D=37"
            more = "" if count != "?" else ",W=19"
            numbers = [(5 * k + k // 9) % 15 - 3 for k in range(2 * 6 * (7 if count == "7" else 19))]
            files = {"r": write_npy(s.path("r.npy"), "i" if index == "i32" else "q", [2, 6, 7 if count == "7" else 19], numbers)}
            s.check(f"gather {kind} {width} {count}", spec, f"B=2,H=3,N=11{fixed}", *options, files=files)
    t, z, i = "tensor<?x?x?x?xf32>", "tensor<?x?x?xf32>", "tensor<?x?x?xi32>"
    flat = f"func.func @f(%x: {z}, %r: {i}) -> {z} {{\n  %out = attn.gather_rows %x[%r] : {z}, {i} -> {z}\n  return %out : {z}\n}}\n"
    s.check("gather numbers", flat, "H=2,N=9", *options, files={"r": write_npy(s.path("r3.npy"), "i", [1, 4, 6], [k % 11 - 1 for k in range(24)])})
    for groups in (1, 3):
        merge = (f"func.func @f(%o: {t}, %z: {z}) -> ({t}, {z}) {{\n  %out, %lse = attn.merge %o, %z groups({groups}) : {t}, {z} -> {t}, {z}\n"
                 f"  return %out, %lse : {t}, {z}\n}}\n")
        s.check(f"merge {groups}", merge, [f"B=2,G={2 * groups},N=21,Dv=40", f"B=1,G={groups},N=1,Dv=3"], *options)
    lses = [0.0, 5.0, -INF, -INF, -INF, -INF, 3e38, -3e38, 3e38, INF, 1.0, INF]
    values = [float("nan") if lse == -INF else k + d for k, lse in enumerate(lses) for d in range(4)]
    files = {"o": write_npy(s.path("o.npy"), "f", [1, 3, 4, 4], values), "z": write_npy(s.path("z.npy"), "f", [1, 3, 4], lses)}
    s.check("merge of what is far apart", merge, "", *options, files=files)
    t = "tensor<?x?x?x24xf32>"
    s.check("parts of keys, merged", f"""
func.func @f(%q: {t}, %k: {t}, %v: {t}, %i: {i}, %j: {i}) -> ({t}, {z}) {{
  %qg = attn.gather_rows %q[%i] : {t}, {i} -> {t}
  %kg = attn.gather_rows %k[%j] : {t}, {i} -> {t}
  %vg = attn.gather_rows %v[%j] : {t}, {i} -> {t}
  %o, %y = attn.attention %qg, %kg, %vg mask {{
  ^bb0(%b: index, %h: index, %r: index, %c: index):
    %a = tensor.extract %i[%b, %h, %r] : {i}
    %d = tensor.extract %j[%b, %h, %c] : {i}
    %keep = arith.cmpi sle, %d, %a : i32
    attn.yield %keep : i1
  }} : {t}, {t}, {t} -> {t}, {z}
  %out, %lse = attn.merge %o, %y groups(2) : {t}, {z} -> {t}, {z}
  return %out, %lse : {t}, {z}
}}
""", ["B=2,H=3,G=6,N=40,M=40,W=13,D=24", "H=2,G=4,N=300,M=300,D=24"], *options)


def compute(s, *options):
    """Sums over the elements of tensors: projections, strided convolutions, norms, means, without a sum; vectors and not, odd sizes."""
    multiply = "  ^bb0(%x: f32, %y: f32, %total: f32):\n    %xy = arith.mulf %x, %y : f32\n    %sum = arith.addf %total, %xy : f32\n    attn.result %sum : f32\n"
    square = "  ^bb0(%x: f32, %total: f32):\n    %xx = arith.mulf %x, %x : f32\n    %sum = arith.addf %total, %xx : f32\n    attn.result %sum : f32\n"
    bend = ("  ^bb0(%x: f32, %y: f32, %total: f32):\n    %c = arith.constant 0.5 : f32\n    %e = math.exp %x : f32\n    %z = arith.mulf %y, %c : f32\n"
            "    %o = arith.subf %e, %z : f32\n    attn.result %o : f32\n")
    def text(maps, body, types, out, more=""):
        loops = "(b, h, n, d" + "".join(f", {x}" for x in more) + ")"
        arguments = ", ".join(f"%a{k}: {t}" for k, t in enumerate(types))
        listed = ", ".join(f"affine_map<{loops} -> ({m})>" for m in maps)
        return (f"func.func @f({arguments}) -> {out} {{\n  %out = attn.compute({', '.join(f'%a{k}' for k in range(len(types)))}) maps([{listed}]) initial(0.0) {{\n{body}"
                f"  }} : {', '.join(types)} -> {out}\n  return %out : {out}\n}}\n")
    for kind in ("f32", "f16", "bf16"):
        for d in ("64", "37", "5"):
            t = f"tensor<?x?x?x{d}x{kind}>"
            own = "b, h, n, d"
            s.check(f"project, {kind}, {d}", text(["n, k", "b, h, k, d", own], multiply, [f"tensor<9x?x{kind}>", t], f"tensor<?x?x9x{d}x{kind}>", "k"),
                    ["B=2,H=3,N=33", "B=1,H=1,N=1"], *options)
            s.check(f"convolve, {kind}, {d}", text(["b, h, n * 3 + c, k", "h, k, c, d", own], multiply, [t, f"tensor<?x{d}x3x{d}x{kind}>"], t, "kc"),
                    ["B=2,H=2,N=20", "B=1,H=1,N=3", "B=1,H=1,N=2"], *options)
            s.check(f"without a sum, {kind}, {d}", text([own, own, own], bend, [t, t], t), ["B=2,H=3,N=33", "B=1,H=1,N=1", "B=1,H=2,N=0"], *options)
            s.check(f"columns, {kind}, {d}", text(["b, h, n, k", "d, k", own], multiply, [t, f"tensor<11x{d}x{kind}>"], f"tensor<?x?x?x11x{kind}>", "k"), "B=1,H=2,N=9", *options)
    norms = text(["b, h, n, d", "b, h, n"], square, ["tensor<?x?x?x40xf32>"], "tensor<?x?x?xf32>")
    s.check("norms", norms, "B=2,H=2,N=19", *options)
    mean = text(["b, h, n * 4 + c, d", "b, h, n, d"], square, ["tensor<?x?x?x40xf32>"], "tensor<?x?x?x40xf32>", "c").replace("initial(0.0)", "initial(1.5) extents([-1, -1, -1, -1, 4])")
    s.check("blocks", mean, ["B=2,H=2,N=19", "N=3,H=1", "N=4,H=1"], *options)


def linear(s, *options):
    """Features; linear attention with every kind of decay, with and without a state and weights; widths that are no multiple of a vector."""
    w, z = "tensor<?x?x?xf32>", "tensor<?x?x?xf32>"
    for kind, width in (("f32", "?"), ("f16", "40"), ("bf16", "?")):
        t, f = f"tensor<?x?x?x{width}x{kind}>", f"tensor<?x?x?x{width}xf32>"
        for name in ("elu_plus_one", "relu", "exp", "abs", "square", "sigmoid"):
            for more, args in (("", ""), (f"subtract(%z : {z}) plus(1.0e-2) ", f", %z: {z}")):
                spec = f"func.func @f(%x: {t}{args}) -> {f} {{\n  %out = attn.feature_map %x {name} {more}: {t} -> {f}\n  return %out : {f}\n}}\n"
                s.check(f"{name} of {kind}, {more}", spec, "B=2,H=3,N=37" + (",F=21" if width == "?" else ""), *options)
        for more, args in (("", ""), (f"logs(%l : {z}) subtract(%z : {z}) plus(1.0e-2) ", f", %l: {z}, %z: {z}")):
            g = f"tensor<?x?x?x{'?' if width == '?' else 80}xf32>"
            s.check(f"trigonometric of {kind}, {more}", f"func.func @f(%x: {t}{args}) -> {g} {{\n  %out = attn.feature_map %x trigonometric {more}: {t} -> {g}\n"
                    f"  return %out : {g}\n}}\n", "B=2,H=3,N=37" + (",F=21" if width == "?" else ""), *options)
        for soft, projection in (("softmax", "tensor<?x?xf32>"), ("", "tensor<?x?x?xf32>"), ("trigonometric", "tensor<?x?x?xf32>")):
            u = "tensor<?x?x?x?xf32>"
            spec = (f"func.func @f(%x: {t}, %p: {projection}) -> ({u}, {w}) {{\n  %out, %m = attn.random_features %x, %p {soft} : {t}, {projection} -> {u}, {w}\n"
                    f"  return %out, %m : {u}, {w}\n}}\n")
            s.check(f"random {soft}, {kind}", spec, [f"B=2,H=3,N={n},F={m}" + (f",D={d}" if width == "?" else "") for n, m, d in ((37, 21, 40), (1, 1, 3), (8, 130, 64))], *options)
    c = "tensor<?x?xf32>"
    for causal, args, start in (("", "", ""), ("causal", "", ""), ("causal", f", %c: {c}", f"state(%c : {c})")):
        spec = (f"func.func @f(%x: {w}{args}) -> ({w}, {w}, {c}) {{\n  %m, %g, %l = attn.running_max %x {causal} {start} : {w} -> {w}, {w}, {c}\n"
                f"  return %m, %g, %l : {w}, {w}, {c}\n}}\n")
        s.check(f"running maximum {causal} {start}", spec, ["B=2,H=3,N=37", "N=1", "N=0"], *options)
        if start:
            s.check("nothing yet", spec, "B=1,H=2,N=5", *options, files={"c": write_npy(s.path("c.npy"), "f", [1, 2], [-INF, -INF])})
    for kind in ("f32", "bf16"):
        t, f, state = f"tensor<?x?x?x?x{kind}>", f"tensor<?x?x?x?x{kind}>", "tensor<?x?x?x?xf32>"
        decays = {"none": "", "by head": "tensor<?xf32>", "by step": w, "by feature": "tensor<?x?x?x?xf32>"}
        for (name, decay), causal, start, weigh in ((item, *rest) for item in decays.items() for rest in
                                                    (("causal", False, True), ("causal", True, False), ("", True, True), ("", False, False))):
            if decay and not causal:
                continue
            how = f"{causal} " + (f"decay(%g : {decay}) " if decay else "")
            args = (f", %g: {decay}" if decay else "") + (f", %s0: {state}" if start else "") + (f", %z0: {z}" if start and weigh else "")
            weights = (f"  %qf = attn.feature_map %q elu_plus_one : {f} -> {f}\n  %kf = attn.feature_map %k elu_plus_one : {f} -> {f}\n"
                       f"  %w, %z = attn.linear_weights %qf, %kf {how}{f'state(%z0 : {z})' if start else ''} : {f}, {f} -> {w}, {z}\n")
            qk = "%qf, %kf" if weigh else "%q, %k"
            spec = (f"func.func @f(%q: {f}, %k: {f}, %v: {t}{args}) -> ({t}, {state}{', ' + z if weigh else ''}) {{\n{weights if weigh else ''}"
                    f"  %out, %s = attn.linear_attention {qk}, %v scale(0.5) {causal} {f'divide(%w : {w})' if weigh else ''} "
                    f"{f'decay(%g : {decay})' if decay else ''} {f'state(%s0 : {state})' if start else ''} : {f}, {f}, {t} -> {t}, {state}\n"
                    f"  return %out, %s{', %z' if weigh else ''} : {t}, {state}{', ' + z if weigh else ''}\n}}\n")
            files = {"z0": write_npy(s.path("z0.npy"), "f", [2, 3, 12], [1 + k % 5 for k in range(72)])} if start and weigh else {}
            sizes = ["B=2,H=3,N=37,F=12,Dv=40"] if files else ["B=2,H=3,N=37,F=21,Dv=70", "B=1,H=4,Hkv=2,N=9,F=3,Dv=3", "H=2,N=8,F=16,Dv=32", "N=0,F=5,Dv=4"]
            s.check(f"{kind}, decay {name}, '{causal}', state {start}, weights {weigh}", spec, sizes, *options, files=files)
    normalized(s, *options)


def normalized(s, *options):
    """Linear attention that maps and divides for itself; query heads that share key heads; features and columns that are known, or more than a panel."""
    for kind, shape, width, maps, sizes in (
            ("f32", "?x?x?x64", 64, ("elu_plus_one", "exp"), ["B=2,H=4,Hkv=2,N=103", "B=1,H=3,Hkv=1,N=1"]),
            ("f16", "2x6x?x40", 40, ("sigmoid",), ["N=37"]), ("bf16", "?x?x?x?", "?", ("relu",), ["B=2,H=6,Hkv=2,N=37,F=21,Dv=70", "H=2,N=13,F=100,Dv=35", "H=1,N=0,F=5,Dv=4"])):
        t, own = f"tensor<{shape}x{kind}>", shape.replace("2x6", "2x2")
        pairs = "x".join(own.split("x")[:2])
        k, state, z = f"tensor<{own}x{kind}>", f"tensor<{pairs}x{width}x{width}xf32>", f"tensor<{pairs}x{width}xf32>"
        decays = ("", "tensor<?x?x?xf32>", f"tensor<?x?x?x{width}xf32>")
        for feature in maps:
            for decay, causal, start in ((d, c, st) for d in decays for c in ("causal", "") for st in (False, True) if c or not (d or st)):
                args = (f", %g: {decay}" if decay else "") + (f", %s0: {state}, %z0: {z}" if start else "")
                how = (f"decay(%g : {decay}) " if decay else "") + (f"state(%s0, %z0 : {state}, {z}) " if start else "")
                spec = (f"func.func @f(%q: {t}, %k: {k}, %v: {k}{args}) -> ({t}, {state}, {z}) {{\n  %out, %s, %z = attn.linear_attention %q, %k, %v feature({feature}) "
                        f"normalize {causal} {how}: {t}, {k}, {k} -> {t}, {state}, {z}\n  return %out, %s, %z : {t}, {state}, {z}\n}}\n")
                s.check(f"{feature} of {kind}, {shape}, '{causal}', decay {decay}, state {start}", spec, sizes, *options)


if __name__ == "__main__":
    run = Sweep(sys.argv[2])
    globals()[sys.argv[1]](run, *sys.argv[3:])
    run.finish()
