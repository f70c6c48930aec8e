"""The cases, one function each; `cases.py NAME FOLDER` runs one. Numbers such as C5 are those of the issue lists they come from."""

import json
import os
import pathlib
import random
import subprocess
import sys

import sweep
from sweep import Sweep, grid, write_npy
from library import INT, Library, Memory, View
from specs import attention, index_region

SIZES = [1, 2, 63, 65, 127, 129, 137]
DIMS = [1, 8, 24, 31, 40, 63, 64, 72, 80, 96, 128, 192, 256, 576]
INF = float("inf")

# Every kind of predicate and their combinations, with the captured tensors they need.
MASKS = {
    "causal": ("causal", ""),
    "window": ("causal and window(left = 33)", ""),
    "window both sides": ("window(left = 20, right = 7)", ""),
    "dilated": ("dilated_window(left = 5, right = 3, dilation = 4)", ""),
    "strided": ("causal and (window(left = 15) or stride(size = 16))", ""),
    "stride alone": ("stride(size = 7)", ""),
    "fixed": ("causal and (same_block(size = 24) or last_columns(block = 24, count = 5))", ""),
    "blocks": ("same_block(size = 50)", ""),
    "chunks": ("causal and chunk_lookback(size = 20, before = 2)", ""),
    "image": ("local_blocks(size = 32, before = 9, after = 5)", ""),
    "image 2-D": ("causal and local_blocks_2d(width = 12, block = [3, 4], flange = [2, 1])", ""),
    "axial row": ("same_row(width = 12)", ""),
    "axial column": ("same_column(width = 12) and causal", ""),
    "neighbourhood": ("neighborhood(size = 21)", ""),
    "neighbourhood 2-D": ("neighborhood_2d(width = 8, size = [5, 3])", ""),
    "prefix": ("causal or prefix(length = 30)", ""),
    "global": ("window(left = 9, right = 9) or global(tokens = [3, 64])", ""),
    "not": ("not window(left = 40, right = 40)", ""),
    "lengths": ("key_length(%n : tensor<?xi32>)", "%n: tensor<?xi32>"),
    "by head": ("causal and ((heads(period = 2, index = 0) and window(left = 9)) or (heads(period = 2, index = 1) and stride(size = 8)))", ""),
    "documents": ("causal and same_document(%d : tensor<?x?xi32>)", "%d: tensor<?x?xi32>"),
    "index sets": ("window(left = 4, right = 4) or column_in(%g : tensor<?x?xi32>) or row_in(%g : tensor<?x?xi32>)",
                   "%g: tensor<?x?xi32>"),
    "block table": ("causal and block_mask(%t : tensor<?x?x?xi8>, size = 16)", "%t: tensor<?x?x?xi8>"),
    "bigbird": ("blocked(16, window(left = 1, right = 1) or global(count = 1) or in_table(%r : tensor<?x?xi64>))",
                "%r: tensor<?x?xi64>"),
}


def mask_spec(name, **more):
    mask, args = MASKS[name]
    return attention(mask, args=args, lse=True, **more)


def empty_rows(s):
    """C1: rows without a key, rows whose first key tiles are masked, nothing kept at all: out 0, lse -inf, no NaN."""
    late = index_region(["%x = arith.cmpi sge, %j, %c300 : index", "%y = arith.cmpi slt, %i, %c2 : index",
                         "%z = arith.xori %x, %y : i1", "attn.yield %z : i1"], (2, 300))
    for name, mask in (("columns only", "causal and last_columns(block = 40, count = 3)"), ("strictly causal", "causal and not window(left = 0, right = 0)"),
                       ("far only", "causal and not window(left = 200)"), ("late keys", late)):
        s.check(name, attention(mask, lse=True), grid((1, 65, 450), (1, 64, 450), ",H=2,D=40"))
    spec = attention("key_length(%n : tensor<?xi32>)", args="%n: tensor<?xi32>", lse=True)
    lengths = write_npy(s.path("lengths.npy"), "i", [3], [0, 150, 0])
    s.check("lengths 0 and 150", spec, "N=130,M=150,H=2", files={"n": lengths})
    zero = write_npy(s.path("zero.npy"), "i", [3], [0, 0, 0])
    values = s.results("nothing kept", spec, ("out", "lse"), "--random=N=130,M=150,H=2", f"--input=n={zero}")
    if values:
        s.expect(all(x == 0 for x in values["out"]), "nothing kept: out must be 0")
        s.expect(all(x == -INF for x in values["lse"]), "nothing kept: lse must be -inf")
    s.check("no keys at all", attention(lse=True), "N=7,M=0,H=2")
    s.check("no queries", attention("causal", lse=True), "N=0,M=9,H=2")


def score_before_mask(s):
    """C2, C4: what a score region makes of a masked key does not bring it back, at lengths that are no multiple of a tile too."""
    relative = index_region(["%d = arith.subi %j, %i : index", "%e = arith.index_cast %d : index to i32", "%f = arith.sitofp %e : i32 to f32",
                             "%c = arith.constant 0.01 : f32", "%y = math.fma %f, %c, %s : f32", "attn.yield %y : f32"])
    s.check("relative position, causal", attention("causal", relative, lse=True), "H=2,N=1025,D=64")
    line = {"soft cap": ["%c = arith.constant 5.0 : f32", "%x = arith.divf %s, %c : f32", "%t = math.tanh %x : f32",
                         "%y = arith.mulf %t, %c : f32"],
            "times 0": ["%c = arith.constant 0.0 : f32", "%y = arith.mulf %s, %c : f32"],
            "clamp": ["%c = arith.constant 1.0 : f32", "%n = arith.constant -1.0 : f32", "%x = arith.minimumf %s, %c : f32",
                      "%y = arith.maximumf %x, %n : f32"]}
    for name, lines in line.items():
        for mask in ("causal", "window(left = 10, right = 0)", ""):
            s.check(f"{name}, {mask}", attention(mask, index_region([*lines, "attn.yield %y : f32"]), lse=True),
                    grid((1, 65, 130), (65, 130), ",H=2"))


def shifts(s):
    """A shift by a negative number, or by all bits and more, is 0 in masks and scores, on every CPU."""
    amounts = {"distance": ["%a = arith.subi %i, %j : index"], "far": ["%a = arith.addi %j, %c60 : index"],
               "all bits": ["%a = arith.constant 64 : index"], "one less": ["%a = arith.constant 63 : index"]}
    for op in ("shli", "shrsi", "shrui"):
        for kind, lines in amounts.items():
            for number in ("%c1", "%j", "%m"):
                mask = index_region(["%m = arith.subi %j, %c60 : index", *lines, f"%x = arith.{op} {number}, %a : index",
                                     "%y = arith.cmpi slt, %x, %c1 : index", "attn.yield %y : i1"], (1, 60))
                s.check(f"{op} of {number} by {kind}", attention(mask, lse=True), "H=1,N=90,D=8")
    narrow = index_region(["%n = arith.index_cast %j : index to i32", "%c40 = arith.constant 40 : i32", "%x = arith.shli %n, %c40 : i32",
                           "%z = arith.shrsi %n, %n : i32", "%w = arith.addi %x, %z : i32", "%f = arith.sitofp %w : i32 to f32",
                           "%y = arith.addf %s, %f : f32", "attn.yield %y : f32"])
    for cpu in ("native", "x86-64-v3", "x86-64"):
        s.check(f"scores, i32, {cpu}", attention("", narrow, lse=True), "H=1,N=90,D=8", f"--cpu={cpu}")


def distances(s, *options):
    """Products with distances: tables that end early or late, any steps between tokens, heads that share keys, parts of split keys."""
    near = index_region(["%x = arith.mulf %s, %s : f32", "%y = arith.subf %s, %x : f32", "attn.yield %y : f32"])
    emulated = bool(options)
    sizes = ["B=1,H=4,Hkv=2,N=35,M=70,L=40", "H=1,N=1,M=90,L=90", "H=1,N=37,M=5,L=1"]
    if not emulated:
        sizes += ["B=2,H=2,N=130,M=67,L=300", "N=3,M=0,L=2"]
    for number, (mask, score, align) in enumerate((("", "", "bottom_right"), ("causal", near, "bottom_right"), ("window(left = 9, right = 20)", "", "top_left"),
                                                   ("stride(size = 5)", "", "bottom_right"), ("causal and not window(left = 12)", "", "top_left"))):
        for element in emulated and [("f32", "f16", "bf16")[number % 3]] or ["f32", ("f16", "bf16")[number % 2]]:
            r, w = f"tensor<?x?x40x{element}>", f"tensor<?x40x{element}>"
            for biased in emulated and [number % 2 == 0] or [False, True]:
                clause, args = (f"%r, %w : {r}, {w}", f"%r: {r}, %w: {w}") if biased else (f"%r : {r}", f"%r: {r}")
                text = attention(mask, score, align=align, element=element, dim=40, lse=True, relative=clause, args=args)
                s.check(f"{element}, '{mask}', bias {biased}", text, sizes, *options)
            if number < 2:
                s.check(f"{element}, '{mask}', split keys", text, ["H=1,N=3,M=300,L=200"], "--split=64", *options)
    for normalizer in ("sigmoid", "none"):
        s.check(normalizer, attention("causal", normalizer=normalizer, dim=24, relative="%r : tensor<?x?x24xf32>", args="%r: tensor<?x?x24xf32>"), sizes[:3], *options)


def counted(s, *options):
    """Keys that weigh as often as they are named: by ranges, blocks and tables, with a score region, in heads that share keys."""
    twice = index_region(["%x = arith.cmpi sle, %j, %i : index", "%y = arith.cmpi slt, %j, %c9 : index", "attn.yield %x, %x, %y : i1, i1, i1"], (9,))
    line = index_region(["%y = arith.addf %s, %s : f32", "attn.yield %y : f32"])
    t = "tensor<?x?xi32>"
    cases = (("causal or window(left = 9, right = 3) or prefix(length = 5)", "", ""), ("stride(size = 4) or stride(size = 4)", "", ""),
             (f"causal or column_in(%g : {t})", line, f"%g: {t}"), (f"blocked(16, window(left = 1) or causal) or global(count = 2)", line, ""))
    sizes = ["B=1,H=4,Hkv=2,N=35,M=70", "H=1,N=1,M=77", "N=3,M=0"] + ([] if options else ["H=2,N=130,M=67"])
    for number, (mask, score, args) in enumerate(cases):
        element = ("f16", "f32", "f32", "bf16")[number]
        text = attention(mask, score, align="bottom_right", args=args, lse=True, element=element, dim=40).replace("mask(", "mask counted(")
        s.check(f"'{mask}'", text, sizes, *options)
        if number < 2:
            s.check(f"'{mask}', split keys", text, "H=1,N=3,M=300", "--split=64", *options)
    s.check("a region", attention(twice, lse=True, dim=40), sizes, *options)


def scores(s, *options):
    """Scores in place of products: of every batch or of all, in any type beside any values, with all that masks and softmax do."""
    sizes = ["B=2,H=4,Hkv=2,N=35,M=70", "H=1,N=1,M=77", "N=3,M=0", "N=0,M=3"] + ([] if options else ["H=2,N=130,M=67"])
    line = index_region(["%y = arith.addf %s, %s : f32", "attn.yield %y : f32"])
    for number, (mask, score, align) in enumerate((("", "", "top_left"), ("causal", line, "bottom_right"), ("window(left = 9, right = 20)", "", "bottom_right"),
                                                   ("stride(size = 5)", "", "top_left"), ("causal and not window(left = 12)", "", "top_left"))):
        element, given = ("f32", "f16", "f32", "bf16", "f32")[number], ("f32", "f32", "bf16", "bf16", "f16")[number]
        forms = [f"tensor<?x?x?x?x{given}>", f"tensor<?x?x?x{given}>"]
        for form in forms[number % 2:][:1] if options else forms:
            text = attention(mask, score, align=align, element=element, dim=40, lse=True, scores=form, scale=("", "-3.0")[number % 2])
            s.check(f"{element}, {form}, '{mask}'", text, sizes, *options)
            if number < 2:
                s.check(f"{element}, {form}, '{mask}', split keys", text, "H=1,N=3,M=300", "--split=64", *options)
    for more in (dict(normalizer="sigmoid"), dict(normalizer="none"), dict(sink="%z : tensor<?xf32>", args="%z: tensor<?xf32>", lse=True)):
        s.check(str(more), attention("causal", dim=24, scores="tensor<?x?x?x?xf32>", **more), sizes[:3], *options)
    counting = attention("causal or prefix(length = 7)", dim=8, scores="tensor<?x?x?xf32>").replace("mask(", "mask counted(")
    s.check("counted", counting, sizes[:2], *options)
    for bad in (INF, -INF, float("nan"), 3e38, -3e38):
        draw = random.Random(3)
        values = [bad if index % 11 == 3 else draw.gauss(0, 9) for index in range(2 * 35 * 60)]
        files = {"p": write_npy(s.path(f"s{bad}.npy"), "f", [2, 35, 60], values)}
        for mask in ("causal",) if options else ("causal", ""):
            s.check(f"{bad}, '{mask}'", attention(mask, dim=8, lse=True, scores="tensor<?x?x?xf32>"), "B=1", *options, files=files)
    shape = write_npy(s.path("shape.npy"), "f", [2, 5, 6], [0.0] * 60)
    s.refuse("keys", attention("", dim=8, scores="tensor<?x?x?xf32>"), "M is 7 from --random but 6 from", f"--input=p={shape}", "--random=M=7", *options)


def rows(s, *options):
    """Queries and keys by number, some of them no row, some twice: one list or one of each batch or group, under every mask; positions are
    the numbers. Of a group that is no head, and of keys that several heads share, each has its own list."""
    lists = ["tensor<?x?x?xi32>", "tensor<?x?xi64>", "tensor<?xi32>"]
    of_score = index_region(["%x = arith.subi %i, %j : index", "%y = arith.index_cast %x : index to i32", "%z = arith.sitofp %y : i32 to f32",
                             "%f = arith.constant 0.03125 : f32", "%u = arith.mulf %z, %f : f32", "%y0 = arith.addf %s, %u : f32", "attn.yield %y0 : f32"])
    sizes = ["B=2,H=4,H2=2,Hkv=1,G=2,N=35,N2=40,M=70,W=29", "H=1,N=1,N2=3,M=9,W=66", "B=2,H=2,G=1,Hkv=1,N=67,N2=64,M=30,W=5"]
    for number, name in enumerate(MASKS):
        if options and number % 4 != 2:
            continue
        mask, args = MASKS[name]
        more = dict(element=("f32", "f16", "bf16")[number % 3] if options or number % 2 else "f32", dim=(24, 8, 40)[number % 3])
        given = dict(query_rows=lists[number % 3] if number % 4 else "", key_rows=lists[number // 4 % 3] if number % 4 != 1 else "")
        forms = sorted({",".join(f"{key}={value}" for key, value in (pair.split("=") for pair in size.split(","))
                                 if (key not in ("H2", "N2") or "?" in given["query_rows"]) and
                                 (key != "H2" or given["query_rows"] == lists[0]) and (key != "W" or given["key_rows"]) and
                                 (key != "G" or given["key_rows"] == lists[0])) for size in sizes[:2 if options else 3]})
        s.check(f"{name}, {given}", attention(mask, of_score if number % 5 == 2 else "", args=args, lse=True, **given, **more), forms, *options)
    both = dict(query_rows=lists[0], key_rows=lists[0], dim=24)
    counting = attention("causal or prefix(length = 7)", lse=True, **both).replace("mask(", "mask counted(")
    for name, text in (("dense", attention("", lse=True, **both)), ("counted", counting), ("sigmoid", attention("causal", normalizer="sigmoid", **both)),
                       ("sink", attention("causal", lse=True, sink="%z : tensor<?xf32>", args="%z: tensor<?xf32>", **both))):
        s.check(name, text, sizes[:2], *options)
    s.check("one batch and head", attention("causal", lse=True, heads=1, key_heads=1, dim=8, key_rows="tensor<?xi32>"), "N=70,M=90,W=33", *options)
    s.check("split keys", attention("causal", lse=True, **both), "H=1,G=1,N=3,N2=9,M=40,W=300", "--split=64", *options)
    s.check("nothing to read", attention("causal", lse=True, **both), ["N=5,N2=5,M=5,W=0", "N=0,N2=5,M=5,W=5"], *options)
    none = {"rk": write_npy(s.path("none.npy"), "i", [1, 2, 5], [-1, 7, 6, -9, 2**31 - 1] * 2)}
    got = s.results("no row", attention("", key_rows=lists[0], dim=8), ("out",), *options, "--random=H=2,N=3,M=6", f"--input=rk={none['rk']}")
    s.expect(got and not any(got["out"]), "without a row the output is 0")


def poisoned_keys(s):
    """C2: nothing of a masked key reaches a row, not even a NaN or an infinity in k or v."""
    for bad in (float("nan"), INF):
        draw = random.Random(5)
        shape, keys = [1, 2, 150, 8], {}
        for name in ("k", "v"):
            values = [bad if (index // 8) % 150 >= 140 else draw.gauss(0, 1) for index in range(2 * 150 * 8)]
            keys[name] = write_npy(s.path(f"{name}.{bad}.npy"), "f", shape, values)
        for mask in ("prefix(length = 140)", "causal and prefix(length = 140)", "window(left = 20, right = 0) and prefix(length = 140)"):
            values = s.results(f"{bad}, {mask}", attention(mask), ("out",), "--random=N=150", *(f"--input={k}={p}" for k, p in keys.items()))
            s.expect(values and all(abs(x) < 10 for x in values["out"]), f"{bad} in masked keys, {mask}: it reached a row")
    # A key that some rows keep spoils these, and only these.
    draw, shape = random.Random(6), [1, 2, 150, 8]
    for name in ("k", "v"):
        values = [float("nan") if (index // 8) % 150 in (77, 149) else draw.gauss(0, 1) for index in range(2 * 150 * 8)]
        file = write_npy(s.path(f"{name}.npy"), "f", shape, values)
        for mask in ("causal", "window(left = 20, right = 0)", "same_block(size = 40)", "stride(size = 8)"):
            s.check(f"NaN in two keys of {name}, {mask}", attention(mask, lse=True), "N=150", files={name: file})


def odd_sizes(s):
    """C3, C6: no length has to be a multiple of anything, under any mask."""
    for name in MASKS:
        s.check(name, mask_spec(name), grid(SIZES, SIZES, ",B=2,H=2,D=16"))
    for name in ("causal", "window", "strided", "documents", "bigbird"):
        s.check(name, mask_spec(name), ["B=1,H=2,N=1025,D=64", "B=1,H=2,N=48,D=64", "B=1,H=2,N=64,D=64"])


def alignment(s):
    """C5: causal alignment where queries and keys differ in number."""
    pairs = [(2, 5), (5, 2), (3, 128), (128, 3), (1, 130), (130, 1), (100, 257), (257, 100)]
    for align in ("top_left", "bottom_right"):
        for mask in ("causal", "window(left = 30, right = 2)", "causal and same_block(size = 16)", "stride(size = 5)",
                     "causal and dilated_window(left = 9, dilation = 3)", "neighborhood(size = 9)"):
            s.check(f"{align}, {mask}", attention(mask, align=align, lse=True), [f"N={n},M={m},H=2,D=24" for n, m in pairs])


def head_dims(s):
    """C7, C13: any head_dim, fixed in the spec or known at run time only, and one for v of its own."""
    sizes = [(d, d) for d in DIMS] + [(64, 24), (24, 64), (192, 128), (1, 576), (576, 512), (31, 1)]
    s.check("dynamic", attention("causal", lse=True), [f"N=70,H=2,D={d},Dv={dv}" for d, dv in sizes])
    s.check("every one to 70", attention(), [f"N=19,M=33,H=1,D={d}" for d in range(1, 71)])
    for d, dv in sizes:
        s.check(f"static {d}, {dv}", static_spec(d, dv), "N=131,H=2")


def static_spec(d, dv):
    q, v = f"tensor<?x?x?x{d}xf32>", f"tensor<?x?x?x{dv}xf32>"
    return (f"func.func @f(%q: {q}, %k: {q}, %v: {v}) -> {v} {{\n  %out = attn.attention %q, %k, %v mask(causal) : "
            f"{q}, {q}, {v} -> {v}\n  return %out : {v}\n}}\n")


def groups(s):
    """C8, C9: any number of query heads on a key head; %h is the query head."""
    head = index_region(["%x = arith.muli %h, %c9 : index", "%d = arith.subi %i, %j : index", "%y = arith.cmpi sle, %d, %x : index",
                         "attn.yield %y : i1"], (9,))
    for name, mask in (("causal", "causal"), ("by head", head)):
        heads = [(1, 1), (3, 1), (10, 2), (12, 2), (28, 4), (8, 2)]
        s.check(name, attention(mask, align="bottom_right", lse=True),
                [f"N={n},M={m},B=2,H={h},Hkv={kv},D=32" for h, kv in heads for n, m in ((1, 130), (17, 130), (66, 66))])
    table = "block_mask(%t : tensor<?x?x?xi8>, size = 16)"
    s.check("table by head", attention(table, args="%t: tensor<?x?x?xi8>", lse=True), "N=100,H=8,Hkv=2,B=2")
    table = "block_mask(%t : tensor<?x?x?x?xi8>, size = 16)"
    s.check("table by batch and head", attention(table, args="%t: tensor<?x?x?x?xi8>", lse=True), "N=100,H=6,Hkv=2,B=2")


def token_major(s):
    """Keys and values [M, B, H, D]: the last token stands more than 2^31 elements behind the first."""
    keys, dim, step = 24000, 8, 90000
    assert (keys - 1) * step > 1 << 31
    near, shape, strides = [Memory.normal(keys * dim, seed) for seed in (3, 4)], (1, 1, keys, dim), (step, dim, step, 1)
    far = [Memory(size=keys * step) for _ in near]
    for row, memory in zip(near, far):
        for j in range(keys):
            memory.write(j * step, row.read(j * dim, dim))
    q, out = View(Memory.normal(3 * dim, 5), (1, 1, 3, dim)), View(Memory(size=3 * dim), (1, 1, 3, dim))
    for name in ("causal", "window", "strided"):
        f = Library(attention(MASKS[name][0], align="bottom_right"), s.path(name))
        wanted = f.call(q, *(View(memory, shape) for memory in near), out)
        got = f.call(q, *(View(memory, shape, strides) for memory in far), out)
        s.compare(f"24000 tokens, token-major, {name}", got, wanted)


def far_offsets(s):
    """C10: offsets beyond 32 bits, a cache of 24000 tokens in token-major order, and a mask of more than 2^31 pairs."""
    token_major(s)
    s.check("batches 2^31 elements apart", attention("causal", lse=True), "B=3,H=2,N=70,D=8", "--strides=far")
    s.check("65537 tokens", attention("causal and window(left = 20)"), "H=1,N=65537,D=8")
    s.check("65537 tokens, strided", attention("causal and dilated_window(left = 8, dilation = 300)"), "H=1,N=65537,D=8")


def strides(s):
    """C11: views: [B, N, H, D] storage, gaps full of NaN, batch stride 0; a strided last dimension is refused by name."""
    for layout in ("bshd", "padded", "broadcast"):
        for name in ("causal", "window", "strided", "axial column", "lengths", "documents", "index sets", "block table", "bigbird"):
            s.check(f"{layout}, {name}", mask_spec(name), ["B=2,H=3,N=65,D=24", "B=2,H=2,N=137,D=40,Dv=31"], f"--strides={layout}")
    s.refuse("strided last dimension", attention(), "'q'", "--random=N=5,D=8", "--strides=transposed")


def packed(s):
    """C11: q, k and v are views of one buffer: [B, N, 3, H, D], [B, N, H + 2 Hkv, D] and [B, H, N, 3, D]."""
    b, n, d = 2, 70, 24
    for name in ("causal", "window", "strided", "axial column", "neighbourhood"):
        f = Library(attention(MASKS[name][0]), s.path(name))
        for h, kv in ((3, 3), (6, 2)):
            width = (h + 2 * kv) * d
            buffer = Memory.normal(b * n * width, 7)
            views = [View(buffer, (b, heads, n, d), (n * width, d, width, 1), first * d)
                     for heads, first in ((h, 0), (kv, h), (kv, h + kv))]
            compare_views(s, f, f"{name}, [B, N, {h} + 2 x {kv}, D]", views)
        buffer = Memory.normal(b * 3 * n * 3 * d, 8)
        views = [View(buffer, (b, 3, n, d), (3 * n * 3 * d, n * 3 * d, 3 * d, 1), part * d) for part in range(3)]
        compare_views(s, f, f"{name}, [B, H, N, 3, D]", views)
        # An output in the same buffer would be written while it is read.
        error = f.try_call(*views, View(buffer, (b, 3, n, d), (3 * n * 3 * d, n * 3 * d, 3 * d, 1)))
        s.expect(error and "'out': shares memory with 'q'" in error, f"{name}: an output over its input was answered with {error}")


def broadcast(s):
    """C11: stride 0 over batches, heads, tokens, and all of them, in q, k and v alone and together."""
    b, h, n, d = 2, 3, 70, 24
    for name in ("causal", "window", "strided", "axial column"):
        f = Library(attention(MASKS[name][0]), s.path(name))
        for dims in ((0,), (1,), (0, 1), (2,), (0, 1, 2)):
            for which in ((0,), (1,), (2,), (1, 2), (0, 1, 2)):
                views = []
                for part in range(3):
                    strides = [h * n * d, n * d, d, 1]
                    for dim in dims if part in which else ():
                        strides[dim] = 0
                    views.append(View(Memory.normal(b * h * n * d, part), (b, h, n, d), strides))
                compare_views(s, f, f"{name}, stride 0 in dimensions {dims} of {which}", views)


def compare_views(s, function, name, views):
    """A call on views gives the bits of a call on contiguous copies."""
    b, h, n, _ = views[0].shape
    shape = (b, h, n, views[2].shape[3])
    out = View(Memory(size=b * h * n * shape[3]), shape)
    wanted = function.call(*(view.copy() for view in views), out)
    s.compare(name, function.call(*views, out), wanted)


def guard_pages(s):
    """Nothing before or behind a tensor is touched: an unreadable page lies there."""
    for side in ("after", "before"):
        for name in MASKS:
            s.check(f"{side}, {name}", mask_spec(name), ["B=2,H=2,N=63,D=8", "B=1,H=2,N=129,D=40,Dv=24", "B=1,H=1,N=2,D=1"], f"--guard={side}")
        s.check(f"{side}, head_dims", attention(lse=True), [f"H=1,N=17,M=19,D={d},Dv={e}" for d, e in zip(DIMS, reversed(DIMS))],
                f"--guard={side}")


def block_lists(s):
    """C15, C33: block lists alone, without an element mask; unsorted, repeated and padded with -1; blocks of 48."""
    lists = [5, 0, -1, 3, 3, 3, -1, -1, -1, 2, 1, 0, 0, 5, 2, 4, 4, 1]
    for size in (48, 16, 7):
        table = write_npy(s.path("lists.npy"), "i", [6, 3], lists)
        spec = attention(f"blocked({size}, in_table(%r : tensor<?x?xi32>))", args="%r: tensor<?x?xi32>", lse=True)
        s.check(f"lists of blocks of {size}", spec, f"H=2,N={6 * size},D=16", files={"r": table})
        spec = attention(f"causal and blocked({size}, in_table(%r : tensor<?x?xi32>))", args="%r: tensor<?x?xi32>", lse=True)
        s.check(f"lists of blocks of {size}, causal", spec, f"H=2,N={6 * size - 3},D=16", files={"r": table})
    for kind, text in (("?", "i1"), ("b", "i8"), ("q", "i64")):
        table = write_npy(s.path(f"table{kind}.npy"), kind, [3, 3], [0, 1, 0, 0, 0, 0, 1, 1, 1])
        spec = attention(f"block_mask(%t : tensor<?x?x{text}>, size = 32)", args=f"%t: tensor<?x?x{text}>", lse=True)
        s.check(f"table of {text}", spec, "H=2,N=96,D=16", files={"t": table})


def schedules(s):
    """Schedules written by hand: query tiles, key tiles, groups, spans and splits of any size compute the same."""
    masks = ["causal", "window", "strided", "blocks", "axial column", "neighbourhood 2-D", "documents", "index sets", "bigbird"]
    sizes = [(16, 16, 16), (16, 384, 16), (32, 40, 8), (32, 192, 16), (48, 1, 1), (48, 128, 32), (64, 96, 16), (80, 64, 64)]
    for place, (query, key, granule) in enumerate(sizes):
        for name in masks:
            more = f"query_tile = {query}, key_tile = {key}, granule = {granule}, group = {1 + place % 3}, span = {key * (1 + place % 4)}"
            s.check(f"{name}, {more}", mask_spec(name, schedule=more), ["B=2,H=2,N=65,M=137,D=24", "B=1,H=4,Hkv=2,N=203,D=8"])
    for split, tasks in ((16, 9), (64, 1000), (0, 1000), (32, 0)):
        more = f"query_tile = 32, key_tile = 16, split = {split}, tasks = {tasks}"
        for name in ("causal", "window", "lengths"):
            s.check(f"{name}, {more}", mask_spec(name, schedule=more), ["B=1,H=2,N=3,M=700,D=24", "B=1,H=6,Hkv=2,N=70,M=300,D=8"])
    more = "query_tile = 32, tail_tile = 32, key_tile = 64, reindex = residue, reindex_size = 4"
    s.check("dilated as classes", mask_spec("dilated", schedule=more), ["H=2,N=65,M=137,D=24", "H=1,N=3,D=8"])


def one_kernel(s):
    """C17, P2: one compiled kernel for many lengths, batches and mask tensors, in any order."""
    draw = random.Random(1)
    for name in ("lengths", "documents", "index sets", "block table", "bigbird", "causal", "strided"):
        extents = [f"B={draw.randint(1, 3)},H={draw.randint(1, 3)},N={draw.randint(1, 200)},D={draw.choice(DIMS[:9])}" for _ in range(40)]
        s.check(name, mask_spec(name), extents)
    f = Library(attention(MASKS["causal"][0]), s.path("causal"))
    library, d = pathlib.Path(s.path("causal.so")), 16
    before = (library.stat().st_ino, library.stat().st_mtime_ns)
    for n in draw.sample(range(1, 700), 100):
        memory, shape = [Memory.normal(n * d, seed) for seed in (n, n + 1)], (1, 1, n, d)
        values = View(Memory([1.0] * n * d), shape)
        out = f.call(*(View(m, shape) for m in memory), values, View(Memory(size=n * d), shape))
        s.expect(all(abs(x - 1) < 1e-6 for x in out), f"{n} tokens whose values are all 1: the average is not 1")
    s.expect(before == (library.stat().st_ino, library.stat().st_mtime_ns), "the kernel was compiled again")


def split_keys(s):
    """Keys split into many parts, under every mask, with a score region and without, with the log-sum-exp."""
    soft = index_region(["%c = arith.constant 3.0 : f32", "%x = arith.divf %s, %c : f32", "%z = math.tanh %x : f32",
                         "%y = arith.mulf %z, %c : f32", "attn.yield %y : f32"])
    for name in MASKS:
        for score in ("", soft):
            for align in ("top_left", "bottom_right"):
                spec = mask_spec(name, score=score, align=align)
                s.check(f"{name}, {align}{', soft cap' if score else ''}", spec, ["B=1,H=1,N=1,M=1500,D=16", "B=1,H=2,N=19,M=700,D=40,Dv=24"],
                        "--split=128")
    runs = [s.results("parts", attention(), ("out",), "--random=H=2,N=48,M=3000,D=64", f"--split={keys}") for keys in (128, 4096)]
    s.expect(all(runs) and runs[0] != runs[1], "--split=128 changes no bit: keys were not split")


def few_queries(s):
    """One to eight queries over keys that are read once, with the heads that share them: types, CPUs, masks whose runs are full, layouts."""
    sizes = ["H=2,N=1,M=700", "B=2,H=8,Hkv=2,N=1,M=333", "H=1,N=4,M=129", "H=1,N=8,M=150", "H=28,Hkv=2,N=1,M=100", "N=1,M=1"]
    for element in ("f32", "bf16", "f16"):
        for cpu in ("native", "x86-64-v3", "x86-64"):
            spec = attention(lse=True, element=element, dim=64, value_dim=32)
            s.check(f"{element}, {cpu}", spec, sizes, f"--cpu={cpu}", "--split=192")
    s.check("bf16, no log-sum-exp", attention(element="bf16", dim=64), sizes[1:4])
    for strides in ("bshd", "padded"):
        s.check(strides, attention(dim=64), sizes[:2], f"--strides={strides}", "--guard=after")
    for mask, args in (*MASKS.values(), ("window(left = 300)", "")):  # those that are reindexed ask for positions without a mask
        for align in ("top_left", "bottom_right"):
            s.check(f"{mask}, {align}", attention(mask, args=args, align=align, lse=True, dim=16), ["H=4,Hkv=2,N=1,M=700", "H=1,N=5,M=600"])
    for scale in ("50.0", "1000.0"):  # references that are far too low
        s.check(f"scale {scale}", attention(scale=scale, lse=True, dim=16), ["H=2,N=3,M=300", "H=4,Hkv=1,N=1,M=500"])
    n, m, d = 2, 200, 16
    heads, files = overflow_files(s, n, m, d, 1.0)
    for cpu in ("native", "x86-64-v3"):
        s.check(f"overflow, {cpu}", attention(scale="1.0", lse=True, dim=d), f"H={heads},N={n},M={m}", f"--cpu={cpu}", files=files)
    shared = s.results("heads", attention(dim=64), ("out",), "--random=H=6,Hkv=2,N=1,M=500")
    s.expect(shared, "no result with shared keys")


def levels(s):
    """One object for several CPUs: every body that this one can run, called by its name, agrees; the best is what runs."""
    with open("/proc/cpuinfo") as info:
        flags = set(next(line for line in info if line.startswith("flags")).split())
    needs = {"x86_64": set(), "x86_64_v3": {"avx2", "fma", "bmi2", "f16c"}, "x86_64_v4": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"},
             "x86_64_v4__avx512bf16": {"avx512_bf16"}, "sapphirerapids": {"amx_bf16", "avx512_fp16"}}
    library = Library(attention("causal and window(left = 40)", dim=64), s.path("levels"),
                      "--cpu=x86-64-v3,x86-64-v4,sapphirerapids,x86-64-v4,+avx512bf16,x86-64")
    shape = [1, 2, 137, 64]
    inputs = [View(Memory.normal(2 * 137 * 64, seed), shape) for seed in range(3)]
    run = lambda: list(library.call(*inputs, View(Memory(size=2 * 137 * 64), shape)))
    chosen, results, present = run(), {}, set()
    for level, features in needs.items():
        present |= features
        if not present <= flags:
            continue
        library.loaded.f = getattr(library.loaded, f"f_on_{level}")
        results[level] = run()
        worst = max(abs(x - y) for x, y in zip(results[level], chosen))
        s.expect(worst < 1e-5, f"{level} is off by {worst}")
        s.runs += 1
    best = list(results)[-1]
    s.expect(chosen == results[best], f"what runs is not {best}")
    s.expect(len(results) == 1 or chosen != results["x86_64"], "all bodies give the same bits: one of them runs under all names")
    if "amx_bf16" not in flags:
        beyond = Library(attention(dim=64), s.path("beyond"), "--cpu=sapphirerapids,graniterapids")
        message = beyond.try_call(*inputs, View(Memory(size=2 * 137 * 64), shape))
        s.expect(message and "f: compiled for sapphirerapids, graniterapids, none of which runs" in message, f"said: {message}")


def types(s):
    """f16 and bf16, summed in f32: every mask, head dims and sizes, layouts and guard pages, split keys, regions, CPUs."""
    soft = index_region(["%c = arith.constant 3.0 : f32", "%x = arith.divf %s, %c : f32", "%z = math.tanh %x : f32",
                         "%y = arith.mulf %z, %c : f32", "attn.yield %y : f32"])
    sizes = ["B=2,H=4,Hkv=2,N=65,M=130,D=24,Dv=40", "N=1,M=1,D=1", "H=2,N=137,D=64"]
    for element in ("f16", "bf16"):
        for name in MASKS:
            s.check(f"{element}, {name}", mask_spec(name, element=element), sizes)
        for cpu in ("native", "x86-64-v3", "x86-64"):
            for score in ("", soft):
                spec = attention("causal", score=score, lse=True, element=element)
                s.check(f"{element}, {cpu}", spec, sizes + ["N=33,M=500,D=31,Dv=72"], f"--cpu={cpu}")
                s.check(f"{element}, {cpu}, split keys", spec, "H=1,N=3,M=900,D=40", f"--cpu={cpu}", "--split=64")
        for dim in (1, 16, 31, 64, 72, 128, 256, 576):
            s.check(f"{element}, head_dim {dim}", attention("window(left = 20)", element=element, dim=dim, value_dim=max(1, dim - 8)), "N=50,M=70")
        for layout in ("bshd", "padded", "broadcast"):
            for guard in ("after", "before"):
                s.check(f"{element}, {layout}, guard {guard}", attention("causal", lse=True, element=element), ["B=2,H=2,N=70,D=40", "B=2,N=17,D=7"],
                        f"--strides={layout}", f"--guard={guard}")
        t, z = f"tensor<?x?x?x?x{element}>", "tensor<?x?x?xf32>"
        s.check(f"{element}, joined", attention("causal", lse=True, element=element, join=f"%o0, %z0 : {t}, {z}", args=f"%o0: {t}, %z0: {z}"), sizes)


def join(s):
    """Two or three segments in one softmax; rows that keep nothing in one or all; what is joined by the caller."""
    t, z = "tensor<?x?x?x?xf32>", "tensor<?x?x?xf32>"
    soft = " score { " + " ".join(["^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):", "%c = arith.constant 2.0 : f32",
                                   "%x = arith.mulf %s, %c : f32", "attn.yield %x : f32"]) + " }"
    sizes = ["B=2,H=4,Hkv=2,N=1,M=3,D=24", "B=1,H=2,N=65,M=130,D=40,Dv=72", "B=1,H=1,N=137,M=64,D=64"]
    for first in ("", "mask(causal)", "mask(same_column(width = 5))", "mask(causal and not window(left = 20))"):
        for second in ("", "align(bottom_right) mask(causal)", "mask(stride(size = 7) and causal)", soft + " mask(window(left = 3))"):
            spec = (f"func.func @f(%q: {t}, %k: {t}, %v: {t}, %km: {t}, %vm: {t}) -> ({t}, {z}) {{\n"
                    f"  %m, %y = attn.attention %q, %km, %vm {first} : {t}, {t}, {t} -> {t}, {z}\n"
                    f"  %out, %lse = attn.attention %q, %k, %v join(%m, %y : {t}, {z}) {second} : {t}, {t}, {t} -> {t}, {z}\n"
                    f"  return %out, %lse : {t}, {z}\n}}\n")
            s.check(f"'{first}' then '{second}'", spec, sizes)
            s.check(f"'{first}' then '{second}', split keys", spec, "B=1,H=1,N=3,M=900,D=32", "--split=64")
    given = attention("causal", lse=True, join=f"%o0, %z0 : {t}, {z}", args=f"%o0: {t}, %z0: {z}")
    s.check("given", given, sizes[1:])
    rows = 2 * 3
    files = {"o0": write_npy(s.path("o0.npy"), "f", [1, 2, 3, 8], [float("nan")] * rows * 8),
             "z0": write_npy(s.path("z0.npy"), "f", [1, 2, 3], [-INF] * rows)}
    s.check("nothing joined", given, "M=5", files=files)
    files = {"o0": write_npy(s.path("o1.npy"), "f", [1, 2, 3, 8], [2.5] * rows * 8),
             "z0": write_npy(s.path("z1.npy"), "f", [1, 2, 3], [-3e38, 3e38, INF, 1e30, -200.0, 90.0])}
    s.check("log-sum-exps far away", given, "M=5", files=files)
    values = s.results("no keys", given, ("out",), "--random=M=0", *(f"--input={key}={path}" for key, path in files.items()))
    s.expect(values and all(x == 2.5 for x in values["out"]), "without keys the output is what is joined")
    for mask in ("causal and (window(left = 40) or stride(size = 64))", "causal and (stride(size = 96) or window(left = 10) or prefix(length = 3))",
                 "causal and (window(left = 40) or stride(size = 64)) and key_length(%n : tensor<?xi32>)"):
        more = dict(args="%n: tensor<?xi32>") if "%n" in mask else {}
        s.check(f"union: {mask}", attention(mask, lse=True, **more), ["H=2,N=700,D=32", "N=1,D=8", "N=97,M=300,D=16"])


def normalizers(s, *options):
    """Sinks (far away, -inf, counted once over parts, with what is joined and in unions) and weights without a softmax."""
    soft = index_region(["%c = arith.constant 2.0 : f32", "%x = arith.mulf %s, %c : f32", "attn.yield %x : f32"])
    z = "tensor<?xf32>"
    late = "causal and not window(left = 20)"
    for element in ("f32", "f16"):
        for score in ("", soft):
            for mask in ("", "causal", late, "same_column(width = 5)") if element == "f32" else ("causal",):
                sink = attention(mask, score, lse=True, element=element, sink=f"%z : {z}", args=f"%z: {z}", dim=40)
                s.check(f"{element}, '{mask}'", sink, ["B=2,H=4,Hkv=2,N=65,M=130", "N=1,M=3", "N=5,M=0"], *options)
                s.check(f"{element}, '{mask}', split keys", sink, ["N=3,M=900", "N=40,M=300"], "--split=64", *options)
                for name in ("sigmoid", "none"):
                    s.check(f"{element}, {name}, '{mask}'", attention(mask, score, element=element, normalizer=name, dim=40), ["B=2,H=4,Hkv=2,N=65,M=130", "N=1,M=3"], *options)
    t = "tensor<?x?x?x40xf32>"
    for mask in ("causal", late):
        both = attention(mask, lse=True, dim=40, sink=f"%z : {z}", join=f"%o0, %z0 : {t}, tensor<?x?x?xf32>",
                         args=f"%z: {z}, %o0: {t}, %z0: tensor<?x?x?xf32>")
        s.check(f"joined, '{mask}'", both, ["B=2,H=2,N=65,M=130", "N=3,M=0"], *options)
        s.check(f"joined, '{mask}', split keys", both, "N=3,M=900", "--split=64", *options)
    given = attention("causal", lse=True, dim=8, sink=f"%z : {z}", args=f"%z: {z}")
    for number, logits in enumerate(([-INF, INF], [3e38, -3e38], [-100.0, 100.0])):
        files = {"z": write_npy(s.path(f"s{number}.npy"), "f", [2], logits)}
        s.check(f"logits {logits}", given, ["B=1,H=2,N=33,M=70", "B=1,H=2,N=4,M=700"], *options, files=files)
    s.check("union", attention("causal and (window(left = 40) or stride(size = 64))", lse=True, dim=32, sink=f"%z : {z}", args=f"%z: {z}"), "H=2,N=700", *options)


def large_scores(s):
    """C19: biases of -3.4e38, -1e4, -inf and +inf, scores far from 0; the running maximum loses no row."""
    add = index_region(["%x = tensor.extract %bias[%i, %j] : tensor<?x?xf32>", "%y = arith.addf %s, %x : f32", "attn.yield %y : f32"])
    n, m = 70, 200
    rows = {"-FLT_MAX everywhere": lambda i, j: -3.4028234e38, "-1e4 on half": lambda i, j: -1e4 * (j % 2),
            "-inf on half": lambda i, j: -INF if (i + j) % 2 else 0.0, "-inf everywhere": lambda i, j: -INF,
            "+inf on some": lambda i, j: INF if j % 50 == i % 50 else 0.0, "rising": lambda i, j: 2.0 * j, "falling": lambda i, j: -2.0 * j,
            "a peak at the end": lambda i, j: 300.0 if j == m - 1 else -300.0, "a peak at the start": lambda i, j: 300.0 if j == 0 else -300.0,
            "steps of 90": lambda i, j: 90.0 * (j // 50) * (-1) ** i, "-1e30": lambda i, j: -1e30, "1e30 on one": lambda i, j: 1e30 if j == 77 else 0.0}
    for name, bias in rows.items():
        path = write_npy(s.path("bias.npy"), "f", [n, m], [bias(i, j) for i in range(n) for j in range(m)])
        for mask in ("", "causal", "not window(left = 0, right = 0)"):
            s.check(f"{name}, {mask}", attention(mask, add, args="%bias: tensor<?x?xf32>", lse=True), f"H=2,N={n},M={m},D=16", files={"bias": path})
    for scale in ("1.0", "5.0", "50.0", "1000.0", "-20.0", "0.0"):
        for mask in ("", "causal and not window(left = 0, right = 0)", "window(left = 40)"):
            s.check(f"scale {scale}, {mask}", attention(mask, scale=scale, lse=True), ["H=2,N=150,D=64", "H=2,N=64,D=8"])


def far_reference(s):
    """Scores far from that of a query's own key, where sums start, are as precise as any other."""
    n, d = 200, 256
    random.seed(1)
    files = {name: write_npy(s.path("x.npy"), "f", [1, 1, n, d], [random.gauss(0, 1) for _ in range(n * d)]) for name in ("k",)}
    files["q"] = files["k"]
    beyond = {"u": write_npy(s.path("u.npy"), "f", [2], [250.0, 1000.0])}
    away = index_region(["%x = arith.constant -9.0 : f32", "%y = arith.addf %s, %x : f32", "%z = arith.cmpi eq, %i, %j : index",
                         "%w = arith.select %z, %s, %y : f32", "attn.yield %w : f32"])
    for cpu in ("native", "x86-64-v3", "x86-64"):
        for mask, score in (("not window(left = 0, right = 0)", ""), ("not window(left = 0, right = 0)", away), ("", away)):
            s.check(f"{cpu}, {mask}, {score}", attention(mask, score, lse=True), f"H=1,N={n},D={d}", f"--cpu={cpu}", files=files)
        s.check(f"{cpu}, negative", attention(scale="-0.0625", lse=True), f"H=1,N={n},D={d}", f"--cpu={cpu}", files=files)
        for score in ("", away):  # a sink far above both: what is kept weighs nothing
            sink = attention("not window(left = 0, right = 0)", score, scale="6.0", dim=16, lse=True, sink="%u : tensor<?xf32>", args="%u: tensor<?xf32>")
            s.check(f"{cpu}, sink, {score}", sink, ["H=2,N=200", "H=2,N=3,M=200"], f"--cpu={cpu}", files=beyond)


def overflow_keys(m, d):
    """Keys and values by head whose products leave f32, or only just do not, and which of their keys count as masked."""
    big, nan = 3e38, float("nan")
    one, every = lambda x: [x] + [0.0] * (d - 1), lambda x: [x] * d
    heads = [  # keys of a head; the others are ordinary
        {7: every(big), 90: every(big)}, {150: one(big)}, {j: every(-big) for j in range(0, m, 3)}, {j: every(-big) for j in range(m)},
        {j: every(big if j % 2 else -big) for j in range(0, m, 5)}, {11: one(INF), 190: one(INF)}, {j: one(-INF) for j in range(0, m, 2)},
        {j: one(-INF) for j in range(m)}, {3: one(INF), 4: one(-INF), 5: one(big)}, {60: one(nan)},
        {j: one(-3e38 + 1e36 * (j % 7)) for j in range(m)}, {j: one(2.5e38 + 1e37 * (j % 7)) for j in range(m)},  # finite, not in powers of 2
        {j: one(4e37 + 1e36 * (j % 7)) for j in range(m)},  # times 10 infinite, but not in quarters of an exponent
        {j: one(1e10 + 1e8 * (j % 7)) for j in range(m)}]  # a rounded reference is further from the largest score than any weight reaches
    random.seed(5)
    normal = [[random.gauss(0, 1) for _ in range(d)] for _ in range(m)]
    keys = [head.get(j, normal[j]) for head in heads for j in range(m)]
    lost = lambda key: d > 1 and key == every(-big) or key == one(-INF)
    values = [every(INF) if lost(key) else normal[k % m] for k, key in enumerate(keys)]
    return len(heads), keys, values


def overflow_files(s, n, m, d, factor):
    """The files of `overflow_keys` with queries of `factor`, and the number of heads."""
    heads, keys, values = overflow_keys(m, d)
    shape, flat = [1, heads, m, d], lambda rows: [x for row in rows for x in row]
    files = {"q": write_npy(s.path("q.npy"), "f", [1, heads, n, d], [factor] * (heads * n * d))}
    return heads, files | {name: write_npy(s.path(f"{name}.npy"), "f", shape, flat(rows)) for name, rows in (("k", keys), ("v", values))}


TWICE = index_region(["%x = arith.addf %s, %s : f32", "attn.yield %x : f32"])


def overflow(s):
    """Scores beyond f32: +inf counts as the largest finite number, -inf as masked, also where its value is infinite."""
    n, m, d = 40, 200, 8
    masks = ("", "causal", "not window(left = 0, right = 0)", "window(left = 2, right = 170) and not window(left = 0, right = 12)")
    for factor in (1.0, 10.0):
        heads, files = overflow_files(s, n, m, d, factor)
        for mask, score, split, cpu in [(mask, score, "", "native") for mask in masks for score in ("", TWICE)] + [
                ("", "", 48, "native"), ("causal", TWICE, 48, "native"), ("", "", "", "x86-64-v3"), (masks[3], "", 48, "x86-64-v3"), ("", TWICE, "", "x86-64"), ("causal", "", "", "x86-64")]:
            spec = attention(mask, score, scale="1.0", lse=True)
            if split:
                spec = spec.replace(" : tensor", f" schedule(#attn.schedule<split = {split}>) : tensor", 1)
            s.check(f"queries of {factor}, {mask}, {'twice' if score else ''}, split {split}, {cpu}", spec, f"H={heads},N={n},M={m},D={d}",
                    f"--cpu={cpu}", files=files)


def arbitrary_masks(s):
    """U6, U7: any mask or bias as a tensor, in each broadcast form."""
    forms = {"[i, j]": ("?x?", "%i, %j"), "[b, i, j]": ("?x?x?", "%b, %i, %j"), "[b, j]": ("?x?", "%b, %j"),
             "[h, i, j]": ("?x?x?", "%h, %i, %j"), "[b, h, i, j]": ("?x?x?x?", "%b, %h, %i, %j")}
    for name, (dims, at) in forms.items():
        kind = f"tensor<{dims}xi1>"
        keep = index_region([f"%x = tensor.extract %m[{at}] : {kind}", "attn.yield %x : i1"])
        s.check(f"mask {name}", attention(keep, args=f"%m: {kind}", lse=True), ["B=2,H=2,N=65,M=130", "B=1,H=3,N=3,M=2"])
        kind = f"tensor<{dims}xf32>"
        add = index_region([f"%x = tensor.extract %m[{at}] : {kind}", "%y = arith.addf %s, %x : f32", "attn.yield %y : f32"])
        s.check(f"bias {name}", attention("causal", add, args=f"%m: {kind}", lse=True), ["B=2,H=2,N=65,M=130", "B=1,H=3,N=3,M=2"])
    dense_tiles(s)


def dense_tiles(s):
    """Tiles of a dense mask that are all zero, or all one, are not looked at pair by pair."""
    n, kind = 512, "tensor<?x?xi1>"
    keep = index_region([f"%x = tensor.extract %m[%i, %j] : {kind}", "attn.yield %x : i1"])
    spec = s.write_spec(attention(keep, args=f"%m: {kind}"))
    mask = write_npy(s.path("half.npy"), "?", [n, n], [j < n // 2 for _ in range(n) for j in range(n)])
    done = subprocess.run(["attn-compile", spec, "--emit=report", "--json", f"--shape=H=1,N={n}", f"--input=m={mask}"], capture_output=True, text=True)
    s.expect(done.returncode == 0, done.stderr)
    if done.returncode == 0:
        tiles = json.loads(done.stdout)["attentions"][0]["tiles"]
        s.expect(tiles["partial"] == 0 and tiles["empty"] == tiles["full"] > 0, f"a mask that keeps the first half of the keys has the tiles {tiles}")


def regions(s):
    """What arithmetic in a region may be: nothing traps, nothing is cut off, all extents are known."""
    lengths = write_npy(s.path("divisors.npy"), "q", [90], [(i % 7) - 3 for i in range(90)])
    kind = "tensor<?xi64>"
    read = [f"%d = tensor.extract %n[%j] : {kind}", "%x = arith.index_cast %i : index to i64"]
    for op in ("floordivsi", "divsi", "ceildivsi", "remsi", "divui", "ceildivui", "remui"):
        mask = index_region([*read, f"%y = arith.{op} %x, %d : i64", "%o = arith.constant 5 : i64", "%z = arith.cmpi slt, %y, %o : i64",
                             "attn.yield %z : i1"])
        s.check(f"{op} by any number", attention(mask, args=f"%n: {kind}", lse=True, align="bottom_right"), "N=90,M=90,H=2,D=8",
                files={"n": lengths})
    for op in ("floordivs", "divs", "ceildivs", "rems", "divu", "ceildivu", "remu"):
        mask = index_region([f"%d = tensor.extract %n[%h] : {kind}", "%e = index.casts %d : i64 to index", f"%y = index.{op} %i, %e",
                             "%z = index.cmp slt(%y, %c5)", "attn.yield %z : i1"], (5,))
        s.check(f"index.{op} by any number", attention(mask, args=f"%n: {kind}", lse=True), "N=90,M=70,H=6,D=8", files={"n": lengths})
    for tensor in ("q", "k", "v"):
        for dim in range(4):
            lines = [f"%x = tensor.dim %{tensor}, %c{dim} : tensor<?x?x?x?xf32>", "%d = index.casts %x : index to i32",
                     "%f = arith.sitofp %d : i32 to f32", "%y = arith.divf %s, %f : f32", "attn.yield %y : f32"]
            s.check(f"extent {dim} of {tensor} in a score", attention("causal", index_region(lines, (dim,)), lse=True), "N=20,M=33,H=2,D=8,Dv=5")
    for cast in ("arith.index_castui", "index.castu", "arith.index_cast"):
        for narrow in ("i8", "i16", "i32", "i64"):
            mask = index_region([f"%x = {cast} %i : index to {narrow}", f"%y = arith.constant 100 : {narrow}",
                                 f"%z = arith.cmpi ult, %x, %y : {narrow}", "attn.yield %z : i1"])
            s.check(f"{cast} to {narrow}", attention(mask, lse=True, align="bottom_right"), ["N=300,M=40,H=1,D=8", "N=40,M=600,H=1,D=8"])
    exp2 = index_region(["%x = math.exp2 %s : f32", "attn.yield %x : f32"])
    for scale in ("0.1", "1.0", "30.0"):
        s.check(f"exp2, scale {scale}", attention("causal", exp2, scale=scale, lse=True), "N=66,H=2,D=16")
    for value in (-3.4028234e38, 3.4028234e38, -3e38, 3e38):
        bias = write_npy(s.path("ends.npy"), "f", [5000], [value * (1 - 1e-3 * (i // 1500)) for i in range(5000)])
        add = index_region(["%x = tensor.extract %bias[%j] : tensor<?xf32>", "%y = arith.addf %s, %x : f32", "attn.yield %y : f32"])
        s.check(f"{value} on split keys", attention("", add, args="%bias: tensor<?xf32>", lse=True), "H=1,N=2,M=5000,D=8", files={"bias": bias})


def threads(s):
    """Any number of threads gives the same bits, also where keys are split because there is little else."""
    for extents in ("B=1,H=1,N=1,M=9000,D=64", "B=2,H=3,N=150,D=40", "B=1,H=1,N=17,M=5000,D=128"):
        for name in ("causal", "window", "lengths"):
            spec = mask_spec(name, align="bottom_right")
            runs = [s.results(name, spec, ("out", "lse"), f"--random={extents}", f"--threads={t}") for t in (1, 2, 3)]
            s.expect(all(runs) and all(r == runs[0] for r in runs), f"{name}, {extents}: threads change the result")
            s.check(name, spec, extents, "--threads=3")


def long_plans(s):
    """P1: neither compiling nor planning grows with the square of the tokens; the result at 262144 tokens is right."""
    n = 262144
    documents = [i // 300 for i in range(n)]
    for name, mask, args in (("window", "causal and window(left = 256)", ""), ("longformer", "window(left = 256, right = 256) or global(count = 1)", ""),
                             ("documents", "causal and same_document(%d : tensor<?x?xi32>)", "%d: tensor<?x?xi32>")):
        files = {"d": write_npy(s.path("d.npy"), "i", [1, n], documents)} if args else {}
        if name != "longformer":  # whose first row and column are 262144 tokens wide
            s.check(name, attention(mask, args=args), f"H=1,N={n},D=8", files=files)
        f, shape = Library(attention(mask, args=args), s.path(name)), (1, 1, n, 8)
        q, captured = View(Memory(size=n * 8), shape), [View(Memory(documents, code="i"), (1, n), code=INT)] if args else []
        growth = peak_growth(lambda: f.plan(q, q, q, *captured))
        s.expect(growth < 16 << 20, f"{name}: planning {n} tokens took {growth >> 20} MiB")
    compiles(s, n)


def compiles(s, n):
    """A spec whose lengths are fixed costs the same to compile whatever they are: memory, and bytes of code."""
    for name in ("window", "dilated", "global", "neighbourhood", "bigbird"):
        costs = []
        for tokens in (4096, n):
            path = s.path(f"{tokens}")
            pathlib.Path(path + ".mlir").write_text(mask_spec(name).replace("?x?x?x?xf32", f"1x2x{tokens}x64xf32").replace("?x?x?xf32", f"1x2x{tokens}xf32"))
            child = os.posix_spawnp("attn-compile", ["attn-compile", path + ".mlir", "--emit=object", "-o", path + ".o"], os.environ)
            _, status, usage = os.wait4(child, 0)
            s.expect(status == 0, f"{name} of {tokens} tokens does not compile")
            costs.append((usage.ru_maxrss, os.path.getsize(path + ".o")))
        (memory, size), (long_memory, long_size) = costs
        s.expect(long_memory < 1.1 * memory, f"{name}: compiling takes {memory} KiB for 4096 tokens, {long_memory} KiB for {n}")
        s.expect(long_size < 1.01 * size, f"{name}: the object has {size} bytes for 4096 tokens, {long_size} for {n}")


def peak_growth(function):
    """Bytes by which the resident memory of this process grew at most while the function ran."""
    def status(field):
        lines = pathlib.Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    before = status("VmRSS")
    function()
    return status("VmHWM") - before


def form(s, cpu):
    """A vector form of code, as a CPU that has no better one gets it."""
    for name in MASKS:
        s.check(f"{cpu}, {name}", mask_spec(name), ["B=2,H=2,N=65,M=137,D=31,Dv=24", "B=1,H=1,N=129,D=64"], f"--cpu={cpu}", "--guard=after")
    s.check(f"{cpu}, head_dims", attention("causal", lse=True), [f"N=66,H=1,D={d}" for d in DIMS], f"--cpu={cpu}", "--strides=padded")


def form_avx512(s):
    form(s, "x86-64-v4")


def form_avx2(s):
    form(s, "x86-64-v3")


def form_portable(s):
    form(s, "x86-64")


def main(name, folder):
    run = Sweep(folder)
    globals()[name](run)
    run.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
