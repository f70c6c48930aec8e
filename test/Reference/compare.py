"""Compares `attn-run --reference` with reference.py and NumPy: the masks, scores, heads and alignments one by one."""

import os
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import reference as ref
from specs import attention, index_region

RNG = np.random.default_rng(7)
B, H, N, D = 2, 4, 24, 8
I, J = ref.ij(N)
CASES = []


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def case(name, spec, mask=None, bias=0.0, scale=None, shapes=None, post=None, give_bias=None, meaning=None, **captured):
    """`mask` and `bias` broadcast to [B, H, N, M]; `post` maps scaled scores to scores; `meaning` are the numbers that the
    elements of `shapes` stand for, where these are not numbers. A case may hold (output, log-sum-exp) in their place."""
    q, k, v = shapes or (normal(B, H, N, D), normal(B, H, N, D), normal(B, H, N, D))
    if give_bias is not None:
        captured["bias"] = give_bias
    CASES.append((name, spec, dict(q=q, k=k, v=v, **captured), meaning or (q, k, v), mask, bias, scale, post))


def expected(q, k, v, mask, bias, scale, post):
    q, k, v = (t.astype(np.float64) for t in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = scale * np.einsum("bhid,bhjd->bhij", q, k) + bias
    if post is not None:
        s = post(s)
    if mask is not None:
        s = np.where(mask, s, ref.NEG)
    if k.shape[2] == 0:
        return np.zeros(q.shape[:3] + v.shape[3:]), np.full(q.shape[:3], ref.NEG)
    return softmax(s) @ v, ref.lse(s)[..., 0]


def softmax(s):
    """reference.py's, but for scores so large that log-sum-exp cannot hold their number."""
    m = s.max(-1, keepdims=True)
    w = np.exp(s - np.where(np.isfinite(m), m, 0.0))
    return w / np.maximum(w.sum(-1, keepdims=True), 1e-300)


def masks():
    case("dense", attention(lse=True))
    case("causal", attention("causal", lse=True), ref.causal(N))
    case("not causal", attention("not causal", lse=True), ~ref.causal(N))
    case("local blocks", attention("causal and same_block(size = 8)"), ref.local_block_mask(N, 8))
    case("block diagonal", attention("same_block(size = 7)"), ref.local_block_mask(N, 7, False))
    case("image 1-D", attention("causal and local_blocks(size = 8, before = 5)"), ref.image_1d_mask(N, 8, 5))
    case("image 1-D, both sides", attention("local_blocks(size = 5, before = 3, after = 2)"), ref.image_1d_mask(N, 5, 3, False, 2))
    for inclusive in (False, True):
        a1, a2 = ref.sparse_strided(N, 6, inclusive)
        left = 6 if inclusive else 5
        case("sparse strided", attention(f"causal and (window(left = {left}) or stride(size = 6))"), a1 | a2)
    a1, a2 = ref.sparse_fixed(N, 6, 2)
    case("sparse fixed", attention("causal and (same_block(size = 6) or last_columns(block = 6, count = 2))"), a1 | a2)
    case("sparse fixed, columns only: empty rows", attention("causal and last_columns(block = 6, count = 2)", lse=True), a2)
    for axis, name in ((1, "same_row"), (0, "same_column")):
        for causal in (False, True):
            text = f"{name}(width = 6)" + (" and causal" if causal else "")
            case(f"axial {text}", attention(text), ref.axial_mask((4, 6), axis, causal))
    case("neighbourhood", attention("neighborhood(size = 5)"), ref.natten_1d_mask(N, 5))
    case("neighbourhood larger than the sequence", attention("neighborhood(size = 31)"), ref.natten_1d_mask(N, 31))
    case("neighbourhood 2-D", attention("neighborhood_2d(width = 6, size = [3, 3])"), natten_2d(4, 6, 3, 3))
    case("dilated window", attention("dilated_window(left = 2, right = 1, dilation = 3)"), band(2, 1, 3))
    case("window, one side open", attention("window(right = 3)"), J <= I + 3)
    case("prefix LM", attention("causal or prefix(length = 7)"), ref.causal(N) | (J < 7))
    case("chunks with look-back", attention("chunk_lookback(size = 5, before = 1)"), (I // 5 - J // 5 >= 0) & (I // 5 - J // 5 <= 1))
    case("blocked", attention("blocked(4, window(left = 1, right = 0) or global(count = 1))"), blocked_window())
    case("global by list", attention("window(left = 2, right = 2) or global(tokens = [3, 17])"),
         (np.abs(I - J) <= 2) | np.isin(I, (3, 17)) | np.isin(J, (3, 17)))


def band(left, right, dilation):
    return ((I - J) % dilation == 0) & (J >= I - left * dilation) & (J <= I + right * dilation)


def natten_2d(height, width, rows, columns):
    r, c = ref.natten_1d_mask(height, rows), ref.natten_1d_mask(width, columns)
    return np.kron(r, np.ones((width, width), bool)) & np.tile(c, (height, height))


def blocked_window():
    b = np.arange(N // 4)
    m = (b[None, :] <= b[:, None]) & (b[None, :] >= b[:, None] - 1) | (b[:, None] == 0) | (b[None, :] == 0)
    return np.kron(m, np.ones((4, 4), bool))


def captured():
    glob = np.array([[0, 9, -1], [5, -1, 23]], np.int32)
    on = np.stack([np.isin(np.arange(N), g) for g in glob])[:, None]
    window = (np.abs(I - J) <= 2) & ((I - J) % 1 == 0)
    text = "window(left = 2, right = 2) or column_in(%g : tensor<?x?xi32>) or row_in(%g : tensor<?x?xi32>)"
    case("longformer: window and captured globals", attention(text, args="%g: tensor<?x?xi32>"),
         window | on[:, :, None, :] | on[:, :, :, None], g=glob)
    length = np.array([0, 13], np.int64)
    case("key lengths, one of them 0", attention("key_length(%n : tensor<?xi64>)", args="%n: tensor<?xi64>", lse=True),
         np.broadcast_to(J, (B, 1, 1, N)) < length[:, None, None, None], n=length)
    case("one length", attention("key_length(%n : tensor<i32>)", args="%n: tensor<i32>"), J < 5, n=np.array(5, np.int32))
    doc = np.sort(RNG.integers(0, 4, (B, N)), 1).astype(np.int32)
    same = (doc[:, None, :, None] == doc[:, None, None, :])
    case("documents", attention("causal and same_document(%doc : tensor<?x?xi32>)", args="%doc: tensor<?x?xi32>"),
         same & ref.causal(N), doc=doc)
    for rank, shape, kind in ((2, (6, 6), np.int8), (3, (H, 6, 6), np.bool_), (4, (B, H, 6, 6), np.int64)):
        table = RNG.integers(0, 2, shape).astype(kind)
        dims, element = "?x" * rank, {np.int8: "i8", np.bool_: "i1", np.int64: "i64"}[kind]
        full = np.kron(table, np.ones((4, 4))).astype(bool)
        case(f"block table of rank {rank}", attention(f"block_mask(%t : tensor<{dims}{element}>, size = 4)", lse=True,
             args=f"%t: tensor<{dims}{element}>"), full.reshape((1,) * (4 - rank) + full.shape), t=table)
    bigbird()


def bigbird():
    rand = np.stack([[RNG.choice([x for x in range(1, 11) if abs(x - b) > 1], 2, False) for b in range(1, 11)] for _ in range(H)])
    lists = np.full((H, 12, 2), -1, np.int32)
    lists[:, 1:-1] = rand
    count = np.stack([ref.bigbird_block_support(12, rand[h]) for h in range(H)])
    text = ("blocked(2, window(left = 1, right = 1) or global(tokens = [0, 11]) or in_table(%r : tensor<?x?x?xi32>))")
    case("bigbird", attention(text, args="%r: tensor<?x?x?xi32>"), np.kron(count, np.ones((2, 2)))[None] > 0, r=lists)


def lists():
    """Queries and keys by number: of each group, of each batch, of all; twice, or no row. Masks speak of the numbers, and of N keys."""
    keys = RNG.integers(-2, N + 2, (B, 17))
    for shape in ((B, 2 * H, 9), (B, 9), (9,)):
        q, k, v, rq = normal(B, H, N, D), normal(B, H, N, D), normal(B, H, N, D), RNG.integers(-1, N + 1, shape)
        heads = shape[1] if len(shape) == 3 else H
        i = np.broadcast_to(rq if len(shape) == 3 else rq[..., None, :], (B, heads, 9))
        j = np.broadcast_to(keys[:, None], (B, heads, 17))
        def gathered(x, rows):
            x = np.repeat(x, heads // H, 1)
            return np.take_along_axis(x, np.clip(rows, 0, N - 1)[..., None], 2)
        i, j, inside = i[..., None], j[..., None, :], (i >= 0)[..., None] & (i < N)[..., None] & (j >= 0)[..., None, :] & (j < N)[..., None, :]
        near = ref.natten_1d_mask(N, 5)[np.clip(i, 0, N - 1), np.clip(j, 0, N - 1)]
        rows = {"rq": rq.astype(np.int32), "rk": keys.astype(np.int64)}
        types = dict(query_rows="tensor<" + "?x" * len(shape) + "i32>", key_rows="tensor<?x?xi64>", lse=True)
        meaning = gathered(q, i[..., 0]), gathered(k, j[..., 0, :]), gathered(v, j[..., 0, :])
        for mask, keep in (("", inside), ("causal", inside & (j <= i)), ("neighborhood(size = 5)", inside & near)):
            case(f"rows {shape}, '{mask}'", attention(mask, **types), keep, shapes=(q, k, v), meaning=meaning, **rows)


def joined():
    """An output and a log-sum-exp over other keys, also one that joins nothing; and a sink, which is an output of 0."""
    t, z = "tensor<?x?x?x?xf32>", "tensor<?x?x?xf32>"
    spec = attention("not causal", lse=True, join=f"%o0, %z0 : {t}, {z}", args=f"%o0: {t}, %z0: {z}")
    q, k, v, o0, z0 = normal(B, H, N, D), normal(B, H, N, D), normal(B, H, N, D), normal(B, H, N, D), normal(B, H, N)
    o0[:, :, 3], z0[:, :, 3] = np.nan, ref.NEG
    s = np.where(~ref.causal(N), D ** -0.5 * np.einsum("bhid,bhjd->bhij", *(x.astype(np.float64) for x in (q, k))), ref.NEG)
    s = np.concatenate([s, z0[..., None]], -1).astype(np.float64)
    weight = softmax(s)
    want = weight[..., :-1] @ v + weight[..., -1:] * np.nan_to_num(o0)
    CASES.append(("join", spec, dict(q=q, k=k, v=v, o0=o0, z0=z0), (want, ref.lse(s)[..., 0]), *[None] * 4))
    sink = RNG.standard_normal(H).astype(np.float32)
    want = ref.sdpa_sink(*(x.astype(np.float64) for x in (q, k, v)), ~ref.causal(N), sink)
    logits = np.ascontiguousarray(np.broadcast_to(sink[None, :, None], (B, H, N)))
    CASES.append(("sink", spec, dict(q=q, k=k, v=v, o0=0 * q, z0=logits), (want, None), *[None] * 4))


def regions():
    image = index_region([
        "%iy = arith.floordivsi %i, %c6 : index", "%ix = arith.remsi %i, %c6 : index",
        "%jy = arith.divui %j, %c6 : index", "%jx = index.remu %j, %c6",
        "%py = arith.divsi %iy, %c2 : index", "%by = arith.muli %py, %c2 : index",
        "%px = index.floordivs %ix, %c3", "%bx = index.mul %px, %c3",
        "%top0 = arith.subi %by, %c2 : index", "%t0 = arith.cmpi sge, %jy, %top0 : index",
        "%t1 = arith.cmpi slt, %jy, %by : index", "%l0 = arith.subi %bx, %c2 : index",
        "%t2 = arith.cmpi sge, %jx, %l0 : index", "%r0 = arith.addi %bx, %c3 : index",
        "%r1 = arith.addi %r0, %c2 : index", "%t3 = index.cmp slt(%jx, %r1)",
        "%t01 = arith.andi %t0, %t1 : i1", "%t23 = arith.andi %t2, %t3 : i1", "%top = arith.andi %t01, %t23 : i1",
        "%bottom = arith.addi %by, %c2 : index", "%a0 = arith.cmpi sge, %jy, %by : index",
        "%a1 = arith.cmpi slt, %jy, %bottom : index", "%rows = arith.andi %a0, %a1 : i1",
        "%b0 = arith.cmpi slt, %jx, %bx : index", "%b1 = arith.andi %rows, %b0 : i1", "%left = arith.andi %b1, %t2 : i1",
        "%o0 = arith.cmpi sge, %jx, %bx : index", "%o1 = arith.cmpi slt, %jx, %r0 : index",
        "%o2 = arith.andi %o0, %o1 : i1", "%own = arith.andi %o2, %rows : i1",
        "%dyi = arith.subi %iy, %by : index", "%dyj = arith.subi %jy, %by : index",
        "%ri = arith.muli %dyi, %c3 : index", "%rj = arith.muli %dyj, %c3 : index",
        "%si = arith.addi %ri, %ix : index", "%sj = arith.addi %rj, %jx : index",
        "%past = arith.cmpi sle, %sj, %si : index", "%before = arith.andi %own, %past : i1",
        "%u = arith.ori %top, %left : i1", "%keep = arith.ori %u, %before : i1", "attn.yield %keep : i1"], (2, 3, 6))
    case("image 2-D in generation order, a region", attention(image), ref.image_2d_mask(4, 6, 2, 3, 2, 2))
    dilated = index_region([
        "%d = arith.subi %i, %j : index", "%m = arith.remui %d, %c2 : index", "%even = arith.cmpi eq, %m, %c0 : index",
        "%past = arith.cmpi ule, %j, %i : index", "%near = arith.cmpi slt, %d, %c10 : index",
        "%x = arith.andi %past, %near : i1", "%keep = arith.select %x, %even, %x : i1", "attn.yield %keep : i1"], (0, 2, 10))
    case("neighbourhood, dilated and causal, a region", attention(dilated), ref.natten_1d_mask(N, 5, 2, True))
    compressed = index_region([
        "%next = arith.addi %j, %c1 : index", "%end = arith.muli %next, %c3 : index", "%last = arith.subi %end, %c1 : index",
        "%keep = arith.cmpi sle, %last, %i : index", "attn.yield %keep : i1"], (1, 3))
    i, m = ref.ij(N, 8)
    case("memory compressed: keys are slots of 3 tokens", attention(compressed, lse=True), m * 3 + 2 <= i,
         shapes=(normal(B, H, N, D), normal(B, H, 8, D), normal(B, H, 8, 5)))
    perhead = index_region([
        "%w = tensor.extract %width[%h] : tensor<?xi16>", "%wi = arith.index_cast %w : i16 to index",
        "%d = arith.subi %i, %j : index", "%a = math.absi %d : index", "%keep = arith.cmpi sle, %a, %wi : index",
        "attn.yield %keep : i1"])
    width = np.array([0, 1, 5, 30], np.int16)
    case("a window per head", attention(perhead, args="%width: tensor<?xi16>"),
         (np.abs(I - J)[None] <= width[:, None, None])[None], width=width)


def scores():
    soft = index_region(["%c = arith.constant 3.0 : f32", "%x = arith.divf %s, %c : f32", "%t = math.tanh %x : f32",
                         "%y = arith.mulf %t, %c : f32", "attn.yield %y : f32"])
    case("soft cap under causal", attention("causal", soft, lse=True), ref.causal(N), post=lambda s: 3 * np.tanh(s / 3))
    slope = (2.0 ** (-8 * (np.arange(H) + 1) / H)).astype(np.float32)
    alibi = index_region(["%m = tensor.extract %slope[%h] : tensor<?xf32>", "%d = arith.subi %j, %i : index",
                          "%di = arith.index_cast %d : index to i32", "%df = arith.sitofp %di : i32 to f32",
                          "%y = math.fma %m, %df, %s : f32", "attn.yield %y : f32"])
    case("alibi", attention("causal", alibi, args="%slope: tensor<?xf32>"), ref.causal(N),
         bias=(slope[:, None, None].astype(float) * (J - I))[None], slope=slope)
    bucket, table = ref.t5_bucket(J - I).astype(np.int32), normal(H, 32)
    t5 = index_region(["%k0 = tensor.extract %bucket[%i, %j] : tensor<?x?xi32>", "%k1 = arith.index_cast %k0 : i32 to index",
                       "%x = tensor.extract %table[%h, %k1] : tensor<?x?xf32>", "%y = arith.addf %s, %x : f32",
                       "attn.yield %y : f32"])
    case("t5 bias, scale 1", attention("", t5, scale="1.0", args="%bucket: tensor<?x?xi32>, %table: tensor<?x?xf32>"),
         bias=table[:, bucket].astype(float)[None], scale=1.0, bucket=bucket, table=table)
    pair = normal(B, H, N, N)
    add = index_region(["%x = tensor.extract %bias[%b, %h, %i, %j] : tensor<?x?x?x?xf32>", "%y = arith.addf %s, %x : f32",
                        "attn.yield %y : f32"])
    arg = "%bias: tensor<?x?x?x?xf32>"
    case("full bias", attention("", add, args=arg, lse=True), bias=pair.astype(float), give_bias=pair)
    hard = pair.copy()
    hard[0, 0, 3] = -np.inf
    hard[0, 1, :, 5] = -np.inf
    hard[1, 2, 4] = np.float32(-3.4028235e38)
    case("bias with -inf: masked; a row of -FLT_MAX: the average", attention("", add, args=arg, lse=True),
         bias=hard.astype(float), give_bias=hard)


def shapes():
    for n, m in ((2, 5), (5, 2), (3, 128), (1, 7), (7, 1), (24, 0), (0, 4)):
        i, j = ref.ij(n, m)
        shape = lambda: (normal(B, H, n, D), normal(B, H, m, D), normal(B, H, m, D))
        case(f"top-left {n} x {m}", attention("causal", lse=True), j <= i, shapes=shape())
        case(f"bottom-right {n} x {m}", attention("causal", align="bottom_right", lse=True), j <= i + m - n, shapes=shape())
        case(f"bottom-right blocks {n} x {m}", attention("same_block(size = 4)", align="bottom_right"),
             (i + m - n) // 4 == j // 4, shapes=shape())
    for heads, kv in ((6, 2), (5, 1), (7, 7), (12, 2)):
        head = index_region(["%m = arith.remsi %h, %c3 : index", "%x = arith.cmpi sle, %j, %m : index", "attn.yield %x : i1"], (3,))
        mask = (J[None] <= (np.arange(heads) % 3)[:, None, None])[None]
        case(f"{heads} query heads on {kv}: %h is the query head", attention(head, lse=True), mask,
             shapes=(normal(1, heads, N, D), normal(1, kv, N, D), normal(1, kv, N, 3)))
    case("scale", attention(scale="0.75", lse=True), scale=0.75)


def bf16_bits(x):
    """The bits of f32 numbers rounded to bf16, ties to even."""
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def types():
    single = [normal(B, H, N, D) for _ in range(3)]
    half, bits = [x.astype(np.float16) for x in single], [bf16_bits(x) for x in single]
    brain = [(x.astype(np.uint32) << 16).view(np.float32) for x in bits]
    case("f16", attention("causal", lse=True, element="f16"), ref.causal(N), shapes=half)
    for name, files in (("f32 files", single), ("bits", bits), ("signed bits", [x.view(np.int16) for x in bits]),
                        ("raw bytes", [x.view("V2") for x in bits])):
        case(f"bf16 from {name}", attention("causal", lse=True, element="bf16"), ref.causal(N), shapes=files, meaning=brain)


def run(number, folder, name, spec, tensors):
    stem = os.path.join(folder, str(number))
    with open(stem + ".mlir", "w") as file:
        file.write(spec)
    command = ["attn-run", stem + ".mlir", "--reference", f"--output=out={stem}.out.npy"]
    has_lse = "%lse" in spec
    if has_lse:
        command.append(f"--output=lse={stem}.lse.npy")
    for key, tensor in tensors.items():
        np.save(f"{stem}.{key}.npy", tensor)
        command.append(f"--input={key}={stem}.{key}.npy")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}\n{spec}")
    return np.load(f"{stem}.out.npy"), np.load(f"{stem}.lse.npy") if has_lse else None


def same(got, want):
    """Equal up to double rounding, infinities and shapes included."""
    return got.shape == want.shape and got.dtype == np.float64 and np.allclose(got, want, rtol=1e-11, atol=1e-12)


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for add in (masks, captured, lists, joined, regions, scores, shapes, types):
        add()
    wrong = []
    for number, (name, spec, tensors, qkv, mask, bias, scale, post) in enumerate(CASES):
        out, lse = run(number, folder, name, spec, tensors)
        with np.errstate(invalid="ignore"):
            want_out, want_lse = qkv if len(qkv) == 2 else expected(*qkv, mask, bias, scale, post)
        if not same(out, want_out) or (lse is not None and want_lse is not None and not same(lse, want_lse)):
            wrong.append(f"{name}: off by {np.abs(out - want_out).max() if out.size else 0}")
    print(f"{len(CASES)} cases, {len(wrong)} wrong")
    sys.exit("\n".join(wrong) if wrong else 0)


main(sys.argv[1])
