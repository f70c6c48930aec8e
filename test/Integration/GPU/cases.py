"""GPU kernels, run by the emulator with all its checks, against the reference; `cases.py NAME FOLDER` runs one case."""

import itertools
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "CPU"), os.path.join(HERE, "..", "..", "..", "benchmarks")]
from cases import MASKS, INF, TWICE, overflow_files, counted as counted_on, distances as distances_on, rows as rows_on, scores as scores_on
from gpu import sass, static
from sweep import Sweep, grid, write_npy
from specs import attention, index_region

EMULATED = "--target=cuda-emulated"
PTXAS = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
SCORES = {
    "soft cap": ["%c = arith.constant 30.0 : f32", "%x = arith.divf %s, %c : f32", "%t = math.tanh %x : f32",
                 "%y = arith.mulf %t, %c : f32", "attn.yield %y : f32"],
    "distance": ["%d = index.sub %j, %i", "%e = index.casts %d : index to i32", "%f = arith.sitofp %e : i32 to f32",
                 "%c = arith.constant 0.06 : f32", "%x = arith.mulf %f, %c : f32", "%y = arith.addf %s, %x : f32", "attn.yield %y : f32"],
    "functions": ["%a = math.exp %s : f32", "%l = math.log1p %a : f32", "%x = math.sin %l : f32", "%e = math.erf %s : f32",
                  "%y = arith.addf %x, %e : f32", "attn.yield %y : f32"],
}


def spec(name, element="bf16", dim=64, **more):
    mask, args = MASKS[name]
    return attention(mask, args=args, lse=True, element=element, dim=dim, **more)


def masks(s):
    """Every mask, in f32 and in one of the 16-bit types; lengths that are multiples of nothing, heads that share keys."""
    sizes = [*grid([1, 63, 137], [2, 130], ",B=2,H=2,Hkv=1"), "B=1,H=2,N=300", "B=1,H=1,N=65,M=420"]
    for number, name in enumerate(MASKS):
        for element in (("bf16", "f16")[number % 2], "f32"):
            s.check(f"{element}, {name}", spec(name, element, align="bottom_right"), sizes, EMULATED)


def normalizers(s):
    """Sinks (of parts, of what is joined, far away, of heads that share a tile) and weights without a softmax."""
    t, z, late = "tensor<?x?x?x40xf16>", "tensor<?xf32>", "causal and not window(left = 20)"
    sink = dict(sink=f"%z : {z}", args=f"%z: {z}", lse=True)
    for element, mask, score in (("f32", late, ""), ("f16", "causal", SLOPES.replace("%p", "%z"))):
        text = attention(mask, score, element=element, dim=40, **sink)
        s.check(f"{element}, '{mask}'", text, ["B=2,H=4,Hkv=2,N=65,M=130", "N=5,M=0"], EMULATED)
        s.check(f"{element}, '{mask}', split keys", text, "N=3,M=700", EMULATED, "--split=64")
        for name in ("sigmoid", "none"):
            s.check(f"{element}, {name}", attention(mask, element=element, normalizer=name, dim=40), "B=1,H=4,Hkv=2,N=65,M=130", EMULATED)
    both = attention("causal", lse=True, dim=40, element="f16", sink=f"%z : {z}", join=f"%o0, %z0 : {t}, tensor<?x?x?xf32>",
                     args=f"%z: {z}, %o0: {t}, %z0: tensor<?x?x?xf32>")
    s.check("joined", both, ["B=2,H=2,N=35,M=70", "N=3,M=0"], EMULATED)
    for number, logits in enumerate(([-INF, INF], [-100.0, 100.0])):
        files = {"z": write_npy(s.path(f"z{number}.npy"), "f", [2], logits)}
        s.check(f"logits {logits}", attention("causal", dim=8, **sink), "B=1,H=2,N=33,M=70", EMULATED, files=files)
    packed = attention("causal", align="bottom_right", lse=True, element="f16", dim=64, heads=8, key_heads=2, queries=1,
                       sink="%z : tensor<8xf32>", args="%z: tensor<8xf32>")
    s.check("heads of one tile", packed, ["B=2,M=70", "B=1,M=600"], EMULATED)


def distances(s):
    """Products with distances, as on a CPU, also in heads of one tile."""
    distances_on(s, EMULATED)
    r, w = "tensor<8x?x40xf16>", "tensor<8x40xf16>"
    packed = attention("causal", align="bottom_right", lse=True, element="f16", dim=40, heads=8, key_heads=2, queries=3, relative=f"%r, %w : {r}, {w}", args=f"%r: {r}, %w: {w}")
    s.check("heads of one tile", packed, ["B=1,M=70,L=50"], EMULATED)


def counted(s):
    """Keys that weigh as often as they are named, as on a CPU, also in heads of one tile."""
    counted_on(s, EMULATED)
    packed = attention("causal or prefix(length = 30)", align="bottom_right", lse=True, element="bf16", dim=40, heads=8, key_heads=2, queries=3)
    s.check("heads of one tile", packed.replace("mask(", "mask counted("), ["B=1,M=70"], EMULATED)


def rows(s):
    """Queries and keys by number."""
    rows_on(s, EMULATED)


def scores(s):
    """Scores in place of products, as on a CPU, also in heads of one tile."""
    scores_on(s, EMULATED)
    for form in ("tensor<?x8x3x?xf16>", "tensor<8x3x?xf32>"):
        packed = attention("causal", align="bottom_right", lse=True, element="f16", dim=40, heads=8, key_heads=2, queries=3, scores=form)
        s.check(f"heads of one tile, {form}", packed, ["B=1,M=70"], EMULATED)


def head_dims(s):
    """Any head_dim to 256, value dimensions of their own; tiles shrink as they grow."""
    for element in ("bf16", "f16", "f32"):
        for dim, value_dim in ((1, 1), (8, 40), (17, 33), (31, 24), (40, 64), (64, 31), (72, 72), (80, 128), (96, 96), (128, 128), (192, 128), (256, 256)):
            text = attention("causal", lse=True, element=element, dim=dim, value_dim=value_dim)
            s.check(f"{element}, {dim}, {value_dim}", text, "B=1,H=2,N=90,M=131", EMULATED)
    s.refuse("unknown head_dim", attention("", element="bf16"), "write them in place of '?'", EMULATED, "--random=N=16")


def wide_values(s):
    """Values wider than the registers of a warp: several share them, as far as shared memory goes."""
    wide = [("bf16", dim, value_dim, chip) for dim, value_dim in ((512, 512), (576, 512)) for chip in ("sm_80", "sm_86", "sm_90")]
    wide += [("bf16", 512, 256, "sm_80"), ("f16", 64, 300, "sm_80"), ("bf16", 40, 576, "sm_80"), ("f16", 320, 320, "sm_80"), ("bf16", 129, 263, "sm_90"), ("f16", 64, 512, "sm_80"),
             ("f32", 512, 512, "sm_80"), ("f32", 576, 512, "sm_90"), ("f32", 64, 257, "sm_80"), ("f32", 64, 576, "sm_80"), ("f32", 576, 576, "sm_80"), ("f32", 512, 512, "sm_86"), ("f16", 256, 256, "sm_75"), ("f32", 256, 256, "sm_75")]
    for element, dim, value_dim, chip in wide:
        s.check(f"{element}, {dim}, {value_dim}, {chip}", attention("causal", lse=True, element=element, dim=dim, value_dim=value_dim), ["H=2,N=40,M=60", "H=1,N=3,M=600"], EMULATED, f"--chip={chip}")
    refused = "need 110592 bytes of shared memory for the smallest tiles, but a block of sm_86 has 101376; use a smaller head_dim or another chip"
    s.refuse("no room", attention("", element="f32", dim=576), refused, EMULATED, "--chip=sm_86", "--random=N=16")
    s.refuse("no room, sm_75", attention("", element="f32", dim=576, value_dim=64), "bytes of shared memory for the smallest tiles, but a block of sm_75 has", EMULATED, "--chip=sm_75", "--random=N=16")


def chips(s):
    """Chips with and without tensor cores of this form, with little and much shared memory."""
    for chip in ("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90"):
        for element in ("f16", "bf16", "f32"):
            s.check(f"{chip}, {element}", spec("window", element, dim=128), "B=1,H=2,N=150", EMULATED, f"--chip={chip}")
    s.refuse("no such chip", spec("causal"), "unknown chip 'sm_1'; known are sm_70", EMULATED, "--chip=sm_1", "--random=N=16")


def regions(s):
    """Score regions and captured tensors."""
    for name, lines in SCORES.items():
        for element, mask in (("bf16", ""), ("f16", "causal"), ("f32", "causal")):
            s.check(f"{element}, {name}, {mask}", attention(mask, index_region(lines), lse=True, element=element, dim=40), "B=1,H=2,N=100,M=77", EMULATED)
    bias = index_region(["%x = tensor.extract %p[%h, %i, %j] : tensor<?x?x?xf32>", "%y = arith.addf %s, %x : f32", "attn.yield %y : f32"])
    s.check("bias", attention("causal", bias, args="%p: tensor<?x?x?xf32>", lse=True, element="f16", dim=64), "B=2,H=2,N=100", EMULATED)


def expect_split(s, name, reports):
    """A merge behind the attention, or behind both of a union."""
    s.expect(all(report["emulation"]["launches"] in (2, 4) for report in reports), f"{name}: no merge was launched: keys were not split")


def captured_elements(s):
    """Captured tensors of every element type."""
    lines, types = [], ("i1", "i8", "i16", "i32", "i64", "index")
    for number, element in enumerate(types):
        lines.append(f"%t{number} = tensor.extract %{element}t[%h, %j] : tensor<?x?x{element}>")
        if element not in ("i1", "index"):
            lines.append(f"%c{number} = arith.index_cast %t{number} : {element} to index")
    lines += ["%zero = arith.constant 0 : index", "%a = arith.addi %c1, %c2 : index", "%b0 = arith.addi %c3, %c4 : index", "%c = arith.xori %a, %b0 : index",
              "%d = arith.addi %c, %t5 : index", "%e = arith.cmpi sgt, %d, %zero : index", "%f = arith.xori %e, %t0 : i1", "attn.yield %f : i1"]
    floats = ("f16", "bf16", "f32", "f64")
    score = [f"%t{number} = tensor.extract %{element}t[%i, %h] : tensor<?x?x{element}>" for number, element in enumerate(floats)]
    score += ["%x0 = arith.extf %t0 : f16 to f32", "%x1 = arith.extf %t1 : bf16 to f32", "%x3 = arith.truncf %t3 : f64 to f32", "%y0 = arith.addf %x0, %x1 : f32",
              "%y1 = arith.addf %t2, %x3 : f32", "%y2 = arith.mulf %y0, %y1 : f32", "%y = arith.addf %s, %y2 : f32", "attn.yield %y : f32"]
    args = ", ".join(f"%{element}t: tensor<?x?x{element}>" for element in (*types, *floats))
    for element in ("bf16", "f32"):
        s.check(f"mask, {element}", attention(index_region(lines), index_region(score), args=args, lse=True, element=element, dim=24), "B=1,H=2,N=40,M=50", EMULATED)


def split_keys(s):
    """Few queries: keys are split and the parts merged."""
    for element in ("bf16", "f16", "f32"):
        for name in ("window", "lengths", "strided"):
            expect_split(s, name, s.check(f"{element}, {name}", spec(name, element, align="bottom_right"), ["B=1,H=2,N=1,M=3000", "B=1,H=1,N=5,M=2500"], EMULATED))
        score = attention("", index_region(SCORES["distance"]), lse=True, element=element, dim=32)
        expect_split(s, "score", s.check(f"{element}, score", score, "H=1,N=2,M=3000", EMULATED))


def joined(element, dims, first, second):
    """Two attentions of the same queries in one softmax, or (`first` is None) one that joins what the caller gives; `dims`: key and value."""
    q, v = (f"tensor<?x?x?x{dim}x{element}>" for dim in dims)
    z, types = "tensor<?x?x?xf32>", f"{q}, {q}, {v} -> {v}"
    given = f"%m: {v}, %ml: {z}" if first is None else f"%km: {q}, %vm: {v}"
    return (f"func.func @f(%q: {q}, %k: {q}, %v: {v}, {given}) -> ({v}, {z}) {{\n" +
            ("" if first is None else f"  %m, %ml = attn.attention %q, %km, %vm {first} : {types}, {z}\n") +
            f"  %out, %lse = attn.attention %q, %k, %v join(%m, %ml : {v}, {z}) {second} : {types}, {z}\n"
            f"  return %out, %lse : {v}, {z}\n}}\n")


def join(s):
    """Segments in one softmax: every element type, split keys, packed heads, rows that keep nothing, what the caller gives."""
    soft = "score {\n^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):\n" + index_region(SCORES["soft cap"]) + "\n}"
    sizes = ["B=2,H=4,Hkv=2,N=1,M=3", "B=1,H=2,N=65,M=130", "B=1,H=1,N=137,M=64"]
    masks = ("", "mask(causal)", "mask(same_column(width = 5))", "mask(causal and not window(left = 20))"), \
            ("", "align(bottom_right) mask(causal)", "mask(stride(size = 7) and causal)", soft + " mask(window(left = 3))")
    for number, (first, second) in enumerate(itertools.product(*masks)):
        element = ("f32", "bf16", "f16")[number % 3]
        first = first if element == "f32" else None  # other types would round the first result
        text = joined(element, ((24, 40), (64, 64), (33, 17), (40, 24))[number // 3 % 4], first, second)
        s.check(f"{element}, '{first}' then '{second}'", text, sizes, EMULATED)
        if number % 2:
            s.check(f"{element}, '{first}' then '{second}', split keys", text, "B=1,H=1,N=3,M=900", EMULATED, "--split=64")
    for element, group in (("f32", 2), ("bf16", 4), ("f16", 5)):
        t, z = f"tensor<?x?x?x40x{element}>", "tensor<?x?x?xf32>"
        given = dict(join=f"%o0, %z0 : {t}, {z}", args=f"%o0: {t}, %z0: {z}", element=element, dim=40)
        for layout in ("bshd", "padded", "broadcast"):
            s.check(f"{element}, {layout}", attention("causal", lse=True, **given), "B=2,H=2,N=70,M=90", EMULATED, f"--strides={layout}", "--guard=after")
        s.check(f"{element}, no lse", attention("causal", **given), sizes, EMULATED)
        s.check(f"{element}, never split", attention("causal", schedule="query_tile = 16, key_tile = 32, warps = 1", **given), sizes, EMULATED)
        schedule = f"query_tile = 16, key_tile = 32, split = 64, warps = 1, pack = {group}"
        heads = [f"N={n},M=150,B=2,H={2 * group},Hkv=2" for n in (1, 3, 30)] + [f"N=3,M=700,B=1,H={group},Hkv=1"]
        s.check(f"{element}, {group} heads", attention("causal", lse=True, align="bottom_right", schedule=schedule, **given), heads, EMULATED)
    for chip in ("sm_70", "sm_90"):
        s.check(chip, joined("f16", (64, 64), None, "mask(window(left = 9))"), sizes, EMULATED, f"--chip={chip}")
    far(s, soft)


def far(s, soft):
    """Log-sum-exps of any size, given in f32; -inf joins nothing, whatever its output holds."""
    rows, dim, t, z = 2 * 5, 8, "tensor<?x?x?x8xf32>", "tensor<?x?x?xf32>"
    nothing = {"o0": write_npy(s.path("o0.npy"), "f", [1, 2, 5, dim], [float("nan")] * rows * dim), "z0": write_npy(s.path("z0.npy"), "f", [1, 2, 5], [-INF] * rows)}
    sums = [-3e38, 3e38, INF, 1e30, -200.0, 90.0, 3.1, -0.7, 12345.678, 1e8]
    files = {"o0": write_npy(s.path("o1.npy"), "f", [1, 2, 5, dim], [2.5] * rows * dim), "z0": write_npy(s.path("z1.npy"), "f", [1, 2, 5], sums)}
    for score in ("", soft):
        given = attention("causal", lse=True, dim=dim, join=f"%o0, %z0 : {t}, {z}", args=f"%o0: {t}, %z0: {z}").replace(" mask(", f" {score} mask(")
        for split in ("", "--split=16"):
            options = [EMULATED, split] if split else [EMULATED]
            s.check(f"nothing joined {split}", given, ["M=5", "M=70"], *options, files=nothing)
            s.check(f"log-sum-exps far away {split}", given, ["M=5", "M=70"], *options, files=files)
        values = s.results("no keys", given, ("out",), EMULATED, "--random=M=0", *(f"--input={key}={path}" for key, path in files.items()))
        s.expect(values and all(x == 2.5 for x in values["out"]), "without keys the output is what is joined")


def strides(s):
    """Any strides of batches, heads and tokens; rows at multiples of 16 bytes or not; nothing beside a tensor is touched."""
    for layout in ("bshd", "padded", "broadcast"):
        for element, dim in (("bf16", 64), ("f16", 33), ("f32", 40), ("bf16", 128)):
            for guard in ("after", "before"):
                s.check(f"{layout}, {element}, {dim}", spec("causal", element, dim=dim), "B=2,H=2,N=70,M=90", EMULATED, f"--strides={layout}", f"--guard={guard}")
    for guard in ("after", "before"):  # rows at multiples of 16 bytes of each other, the first of them not
        s.check(f"padded, {guard}", spec("causal", "f32", dim=11), "B=2,H=2,N=40,M=50", EMULATED, "--strides=padded", f"--guard={guard}")


def counts(s, name, text, *options):
    """What the emulator counts in a run that agrees with the reference."""
    done, command = s.execute(text, EMULATED, "--check", "--json", *options)
    s.runs += 1
    if done.returncode:
        s.fail(f"{name}: {done.stderr.strip()} (status {done.returncode})", command)
        return None
    return json.loads(done.stdout)["emulation"]


def memory(s):
    """Aligned rows: no request takes a sector more than its bytes need, no access to shared memory waits for a bank."""
    for element, dims, chips in (("bf16", (64, 80, 128, 256), ("sm_80",)), ("f16", (64, 96), ("sm_80", "sm_75")), ("f32", (64, 128), ("sm_80", "sm_75"))):
        for dim in dims:
            for chip in chips:
                for extents in ("B=1,H=2,N=256", "B=1,H=1,N=8,M=2048"):
                    name = f"{element}, {dim}, {chip}, {extents}"
                    seen = counts(s, name, attention("", lse=True, element=element, dim=dim), f"--random={extents}", f"--chip={chip}")
                    if seen:
                        s.expect(seen["sectors"] == seen["ideal_sectors"], f"{name}: {seen['sectors']} sectors, {seen['ideal_sectors']} would do")
                        s.expect(seen["shared_passes"] == seen["ideal_shared_passes"], f"{name}: {seen['shared_passes']} passes over the banks, {seen['ideal_shared_passes']} would do")


BY_HEAD = index_region(["%x = arith.muli %h, %c9 : index", "%d = arith.subi %i, %j : index", "%y = arith.cmpi sle, %d, %x : index", "attn.yield %y : i1"], (9,))
SLOPES = index_region(["%m = tensor.extract %p[%h] : tensor<?xf32>", "%far = index.sub %j, %i", "%e = index.casts %far : index to i32", "%f = arith.sitofp %e : i32 to f32",
                       "%x = arith.mulf %f, %m : f32", "%y = arith.addf %s, %x : f32", "attn.yield %y : f32"])


def packed_heads(s):
    """Query heads that share keys in one tile: masks, scores, captured tensors and results stay those of each head."""
    masks = {"causal": MASKS["causal"], "window": MASKS["window"], "lengths": MASKS["lengths"], "documents": MASKS["documents"], "strided": MASKS["stride alone"],
             "by head": (BY_HEAD, ""), "table by head": ("block_mask(%t : tensor<?x?x?xi8>, size = 16)", "%t: tensor<?x?x?xi8>")}
    for place, group in enumerate((2, 4, 5, 8)):
        for number, (name, (mask, args)) in enumerate(masks.items()):
            element = ("bf16", "f32", "f16")[(place + number) % 3]
            schedule = f"query_tile = {(16, 64)[number % 2]}, key_tile = 32, split = 64, warps = {(1, 4)[number % 2]}, pack = {group}"
            text = attention(mask, SLOPES if number % 2 else "", args=f"{args}{', ' if args and number % 2 else ''}{'%p: tensor<?xf32>' if number % 2 else ''}",
                             lse=True, element=element, dim=40, align="bottom_right", schedule=schedule)
            sizes = [f"N={n},M=150,B=2,H={2 * group},Hkv=2" for n in (1, 2, 3, 7, 30)] + [f"N=3,M=700,B=1,H={2 * group},Hkv=1"]
            s.check(f"{element}, {group} heads, {name}", text, sizes, EMULATED)
    for layout in ("bshd", "padded"):
        s.check(layout, attention("causal", lse=True, element="bf16", dim=64, heads=8, key_heads=2, queries=5), "B=2,M=90", EMULATED, f"--strides={layout}", "--guard=after")
    text = attention("causal", element="bf16", dim=64, schedule="query_tile = 64, key_tile = 64, warps = 4, pack = 4")
    s.refuse("no divisor", text, "6 heads share a head of 'k', no multiple of the 4 that the schedule packs", EMULATED, "--random=N=3,H=6,Hkv=1")


def decode(s):
    """Few queries: the heads of a group are packed, and keys and values read once, however many they are."""
    keys, dim = 2048, 64
    for element, queries, size in (("bf16", 1, 2), ("f16", 7, 2), ("f32", 3, 4)):
        once = 2 * keys * dim * size // 32
        for group in (1, 2, 5, 8):
            name = f"{element}, {queries} queries, {group} heads"
            text = attention("causal", lse=True, element=element, dim=dim, heads=group, key_heads=1, queries=queries, align="bottom_right")
            seen = counts(s, name, text, f"--random=B=1,M={keys}")
            if seen:
                s.expect(once <= seen["sectors"] < 2 * once, f"{name}: {seen['sectors']} sectors, keys and values alone are {once}")


def schedules(s):
    """Schedules written by hand: any tiles, warps and stages that S4 and S5 allow; nothing to do at all."""
    for element in ("bf16", "f32"):
        for queries, warps, keys, stages in ((16, 1, 16, 2), (64, 2, 32, 3), (32, 2, 128, 2), (128, 4, 16, 4), (16, 4, 32, 2), (32, 4, 16, 2), (64, 4, 32, 1)):
            text = f"query_tile = {queries}, key_tile = {keys}, granule = 16, split = 64, warps = {warps}, stages = {stages}"
            for name in ("causal", "window"):
                s.check(f"{element}, {text}, {name}", spec(name, element, dim=32, schedule=text), ["B=1,H=2,N=150", "N=3,M=700"], EMULATED)
        several = "query_tile = 16, key_tile = 16, warps = 1, group = 4, tasks = 4"  # a block has one tile for all that
        s.check(f"{element}, {several}", spec("causal", element, dim=32, schedule=several), "H=2,N=300", EMULATED)
        text = "query_tile = 16, key_tile = 16, tasks = 2, warps = 1"
        s.check(f"{element}, many tiles", spec("causal", element, dim=16, schedule=text), "H=4,N=300", EMULATED)
        s.check(f"{element}, empty", spec("causal", element, dim=32), ["N=0,M=5", "N=5,M=0", "B=0,N=5,M=7"], EMULATED)


def odd_numbers(s):
    """NaN and infinity: those of masked keys reach no row, those of kept keys as the reference says."""
    rows, dim = 150, 16
    for bad in (float("nan"), INF):
        draw = random.Random(5)
        for name in ("k", "v"):
            values = [bad if (index // dim) % rows >= 140 else draw.gauss(0, 1) for index in range(2 * rows * dim)]
            files = {name: write_npy(s.path(f"{name}.{bad}.npy"), "f", [1, 2, rows, dim], values)}
            for element in ("bf16", "f32"):
                for mask in ("prefix(length = 140)", "causal and prefix(length = 140)"):
                    s.check(f"{bad} in masked {name}, {element}, {mask}", attention(mask, lse=True, element=element, dim=dim), f"N={rows}", EMULATED, files=files)
    draw = random.Random(6)
    for name in ("k", "v"):
        values = [float("nan") if (index // dim) % rows in (77, 149) else draw.gauss(0, 1) for index in range(2 * rows * dim)]
        files = {name: write_npy(s.path(f"{name}.npy"), "f", [1, 2, rows, dim], values)}
        for mask in ("causal", "window(left = 20, right = 0)", "same_block(size = 40)"):
            s.check(f"NaN in two {name}, {mask}", attention(mask, lse=True, element="bf16", dim=dim), f"N={rows}", EMULATED, files=files)
    values = [INF if index % (7 * dim) == 0 else draw.gauss(0, 1) for index in range(2 * rows * dim)]
    files = {"k": write_npy(s.path("k.infinite.npy"), "f", [1, 2, rows, dim], values)}
    for scale in ("", "0.125", "3.0", "-1.0"):
        for element in ("bf16", "f32"):
            s.check(f"infinite scores, {scale}, {element}", attention("causal", lse=True, element=element, dim=dim, scale=scale), f"N={rows}", EMULATED, files=files)
    for mask in ("causal and not window(left = 0, right = 0)", "causal and last_columns(block = 40, count = 3)"):
        s.check(f"empty rows, {mask}", attention(mask, lse=True, element="bf16", dim=dim), "N=100", EMULATED)


def scales(s):
    """Scores far apart, of either sign; a reference that lags."""
    for scale in ("4.0", "-0.3", "0.0", "60.0"):
        for element in ("bf16", "f32"):
            s.check(f"scale {scale}, {element}", attention("causal", lse=True, element=element, dim=64, scale=scale), "H=2,N=200", EMULATED)


def overflow(s):
    """Scores beyond f32, or near it: +inf counts as the largest finite number, -inf as masked; with and without split keys."""
    n, m = 5, 150
    some = "window(left = 2, right = 120) and not window(left = 0, right = 12)"
    cases = (("", "", 0), ("", "", 48), ("causal", TWICE, 0), (some, "", 48), (some, TWICE, 48))
    for dim, factor, scale, elements in ((8, 1.0, "1.0", ("f32", "bf16")), (8, 10.0, "1.0", ("f32",)), (1, 1.0, "10.0", ("f32", "bf16")), (8, 10.0, "-1.0", ("f32", "bf16"))):
        heads, files = overflow_files(s, n, m, dim, factor)
        for element in elements:
            for mask, score, split in cases:
                schedule = f"query_tile = 16, key_tile = 32, granule = 16, split = {split}, warps = 1, stages = 2"
                spec = attention(mask, score, scale=scale, lse=True, element=element, dim=dim, schedule=schedule)
                name = f"{element}, {dim}, queries of {factor}, scale {scale}, {mask}, {'twice' if score else ''}, split {split}"
                reports = s.check(name, spec, f"H={heads},N={n},M={m}", EMULATED, files=files)
                if split:
                    expect_split(s, name, reports)


def each_ptx(s, check):
    """Calls `check(name, chip, file, text of the spec)` for the PTX of every mask and form."""
    forms = (("bf16", 64, "sm_80"), ("f16", 128, "sm_90"), ("f32", 64, "sm_86"), ("f16", 64, "sm_75"))
    def forms_of(number, name):  # masks that read tensors need the most registers
        return forms if name == "causal" else (forms[0], forms[1 + number % 3]) if MASKS[name][1] else (forms[number % 4], forms[(number + 1) % 4])

    specs = [(f"{element}, {name}", spec(name, element, dim=dim), chip) for number, name in enumerate(MASKS)
             for element, dim, chip in forms_of(number, name)]
    specs += [(f"{name}, {element}", attention("causal", index_region(lines), lse=True, element=element, dim=128), "sm_80")
              for name, lines in SCORES.items() for element in ("bf16", "f32")]
    specs += [(f"bf16, {dim}, {value_dim}", attention("causal", lse=True, element="bf16", dim=dim, value_dim=value_dim), chip)
              for dim, value_dim in ((512, 512), (576, 512)) for chip in ("sm_80", "sm_86", "sm_90")]
    specs += [(f"{element}, {heads} heads", attention("causal", lse=True, element=element, dim=128, heads=heads, key_heads=1, queries=2, align="bottom_right"), "sm_80")
              for element in ("bf16", "f32") for heads in (5, 8)]
    specs += [(f"{element}, joined", joined(element, (128, 128), "mask(causal)", "mask(window(left = 100))"), "sm_80") for element in ("bf16", "f32")]
    for name, text, chip in specs:
        source, out = s.write_spec(text), s.path(f"{s.specs}.ptx")
        done = subprocess.run(["attn-compile", source, "--target=cuda", f"--chip={chip}", "--emit=ptx", "-o", out], capture_output=True, text=True)
        s.runs += 1
        if done.returncode:
            s.fail(f"{name}, {chip}: {done.stderr}", "")
            continue
        check(name, chip, out, text)


def ptx(s):
    """PTX needs nothing but a driver: no unresolved function."""
    each_ptx(s, lambda name, chip, file, _:
             s.expect(".extern .func" not in pathlib.Path(file).read_text(), f"{name}, {chip}: calls a function that is not there"))


def ptxas(s):
    """ptxas takes the PTX, for its chip, and spills next to nothing: in the loop over tiles, of heads to 128, nothing."""
    nvdisasm = static.find("nvdisasm")

    def check(name, chip, file, text):
        cubin = f"{file}.cubin"
        said = subprocess.run([PTXAS, "-v", f"-arch={chip}", file, "-o", cubin], capture_output=True, text=True)
        if "is not defined for option" in said.stderr:  # this ptxas knows the chip no longer
            return
        s.expect(said.returncode == 0, f"{name}, {chip}: {said.stderr[:400]}")
        spilled = max([int(number) for number in re.findall(r"(\d+) bytes spill stores", said.stderr)] or [0])
        limit = 96 if "x512x" in text else 16  # places in wide rows
        s.expect(spilled <= limit, f"{name}, {chip}: spills {spilled} bytes")
        if nvdisasm and "x512x" not in text:
            check_loops(f"{name}, {chip}", cubin, "HMMA" if chip != "sm_75" and "xf32>" not in text.split(",")[0] else "FFMA")

    def check_loops(name, cubin, product):
        for kernel, lines in sass.disassemble(nvdisasm, cubin).items():
            if kernel.endswith("task"):
                loop = sass.loop_of_tiles(lines, product)
                s.expect(loop, f"{name}: no loop of {kernel} has products and copies")
                s.expect(not loop or not sass.spills(loop), f"{name}: {kernel} spills in its loop over tiles")
    each_ptx(s, check)


def main(name, folder):
    run = Sweep(folder)
    globals()[name](run)
    run.finish()


main(*sys.argv[1:])
