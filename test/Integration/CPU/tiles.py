"""bf16 in packed tiles, in AMX registers or by AVX512-BF16: `tiles.py CASE FOLDER [OPTION...]`, the options of attn-run choosing which."""

import random
import sys

from cases import INF, MASKS, mask_spec, overflow_files
from library import Library, Memory, View
from specs import attention, index_region
from sweep import Sweep, write_npy

AMX = "--cpu=native,+amx-tile,+amx-bf16"


def tiles(s, *options):
    """Every mask, head dims, sizes, layouts and guard pages, split keys, what is joined."""
    element = {"element": "bf16"}
    for name in MASKS:
        s.check(name, mask_spec(name, **element), ["B=2,H=4,Hkv=2,N=65,M=130,D=24,Dv=40", "N=1,M=1,D=1", "H=1,N=137,M=333,D=64"], *options)
        s.check(f"{name}, 64", mask_spec(name, **element, dim=64), ["H=2,Hkv=1,N=300,M=290", "H=1,N=33,M=64"], *options)
    for dim in (1, 8, 31, 32, 40, 64, 80, 96, 128, 192, 256, 576):
        for value_dim in (dim, max(1, dim - 8), 64):
            spec = attention("window(left = 150)", **element, dim=dim, value_dim=value_dim)
            s.check(f"head_dim {dim}, {value_dim}", spec, ["H=1,N=50,M=70", "H=1,N=200,M=200"], *options)
    for lse in (False, True):  # sums of rounded weights, and of the weights themselves
        for dim, value_dim in ((64, 64), (128, 128), (128, 16), (64, 192), (256, 256)):
            spec = attention(**element, dim=dim, value_dim=value_dim, lse=lse)
            s.check(f"dense {dim}, {value_dim}", spec, [f"H=1,N={n},M={m}" for n, m in ((40, 64), (32, 128), (70, 447), (33, 1000))], *options)
    for layout in ("bshd", "padded", "broadcast"):
        for guard in ("after", "before"):
            for dim in (64, 40):
                s.check(f"{layout}, guard {guard}, {dim}", attention("causal", lse=True, **element, dim=dim), ["B=2,H=2,N=170", "B=2,N=64", "B=2,N=17"],
                        f"--strides={layout}", f"--guard={guard}", *options)
    s.check("split keys", attention("causal", lse=True, **element, dim=64), "H=1,N=33,M=900", "--split=128", *options)
    s.check("dilated", attention("dilated_window(left = 70, right = 3, dilation = 4)", **element, dim=64), "H=1,N=900", *options)
    for group in ("--group=1", "--group=5"):
        s.check(group, attention("not window(left = 40, right = 40)", lse=True, **element, dim=64), "H=1,N=700", group, *options)
    for tile in ("--query-tile=16", "--query-tile=64", "--key-tile=32", "--key-tile=256", "--key-tile=48"):
        s.check(tile, attention("causal", lse=True, **element, dim=64), "H=1,N=400", tile, *options)
    t, z = "tensor<?x?x?x?xbf16>", "tensor<?x?x?xf32>"
    s.check("joined", attention("causal", lse=True, **element, join=f"%o0, %z0 : {t}, {z}", args=f"%o0: {t}, %z0: {z}"), "H=2,N=137,D=64", *options)


def numbers(s, *options):
    """What the tiles of bf16 cannot do themselves is done again in f32: far references, masked NaN, products beyond f32."""
    soft = index_region(["%c = arith.constant 3.0 : f32", "%x = arith.divf %s, %c : f32", "%z = math.tanh %x : f32",
                         "%y = arith.mulf %z, %c : f32", "attn.yield %y : f32"])
    for mask in ("", "causal", "window(left = 20, right = 7)"):
        s.check(f"score region, {mask}", attention(mask, soft, lse=True, element="bf16", dim=64), ["H=2,N=137,M=200"], *options)
        for scale in ("5.0", "50.0", "1000.0", "-20.0", "0.0"):
            for lse in (False, True):
                s.check(f"scale {scale}, {mask}", attention(mask, scale=scale, lse=lse, element="bf16", dim=64), ["H=2,N=150,M=400"], *options)
    draw, n, d = random.Random(6), 250, 64
    for name in ("k", "v"):
        for bad in (float("nan"), INF):
            values = [bad if index // d % n in (77, 249) else draw.gauss(0, 1) for index in range(n * d)]
            file = write_npy(s.path(f"{name}.npy"), "f", [1, 1, n, d], values)
            for mask in ("causal", "window(left = 20, right = 0)", "prefix(length = 249)"):
                s.check(f"{bad} in two keys of {name}, {mask}", attention(mask, lse=True, element="bf16", dim=d), f"H=1,N={n}", *options, files={name: file})
    n, m, d = 40, 200, 8
    for factor in (1.0, 10.0):
        heads, files = overflow_files(s, n, m, d, factor)
        for mask in ("", "causal", "window(left = 2, right = 170) and not window(left = 0, right = 12)"):
            spec = attention(mask, scale="1.0", lse=True, element="bf16")
            s.check(f"queries of {factor}, {mask}", spec, f"H={heads},N={n},M={m},D={d}", *options, files=files)
    for mask in ("causal and not window(left = 0, right = 0)", "causal and not window(left = 200)"):
        s.check(f"empty rows, {mask}", attention(mask, lse=True, element="bf16", dim=64), "H=1,N=450", *options)


def refused(s):
    """Without AMX neither attn-run nor a compiled function runs into an illegal instruction, and nothing is written."""
    spec = attention("causal", element="bf16", dim=64)
    s.refuse("attn-run", spec, "this machine cannot run it, it lacks amx-tile", "--random=N=70", AMX)
    done, command = s.execute(spec, "--random=N=70", "--check", AMX + ",-amx-tile")
    s.expect(done.returncode == 0, f"without tiles: {done.stderr.strip()}\n    {command}")
    library = Library(spec, s.path("refused"), AMX)
    q, k, v = (View(Memory.normal(70 * 32, seed), [1, 1, 70, 64]) for seed in range(3))
    out = View(Memory([7.0] * 70 * 64), [1, 1, 70, 64])
    error = library.try_call(q, k, v, out)
    s.expect(error == "f: compiled for AMX tiles, which this machine does not have or does not grant; compile it with "
             "--cpu=native here, or with -amx-tile behind the CPU's name", f"a function: {error}")
    s.expect(set(out.read()) == {7.0}, "a function that refused wrote to its output")


if __name__ == "__main__":
    run = Sweep(sys.argv[2])
    globals()[sys.argv[1]](run, *sys.argv[3:])
    run.finish()
