"""Ops that older CPUs have no instruction for, on special values, against exact arithmetic; `missing_instructions.py FOLDER`.

A mask keeps (i, j) where the results on x[i] (in vectors) and on x[j] (a scalar) are as expected; the log-sum-exp then tells of
how many keys the result was right. The reference evaluates the same mask."""

import math
import random
import sys
from fractions import Fraction

from sweep import Sweep, read_npy, write_npy
from specs import attention, index_region

CPUS = ("x86-64", "native")
NAN, INF = float("nan"), float("inf")
DIGITS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}
CODES = {"f16": "e", "bf16": "f", "f32": "f", "f64": "d", "i16": "h", "i32": "i", "i64": "q"}


def rounded(value, kind, zero=0.0):
    """A Fraction to the nearest float of a kind, ties to even; `zero` is what 0 becomes. None where kernels may flush it."""
    if not isinstance(value, Fraction):
        return value
    digits, least, most = DIGITS[kind]
    if value == 0:
        return zero
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    exponent -= abs(value) < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, least) - digits + 1)
    result = round(value / unit) * unit
    if abs(result) >= Fraction(2) ** (most + 1):
        return INF if value > 0 else -INF
    if kind != "f16" and abs(result) < Fraction(2) ** least:
        return None
    return math.copysign(float(result), value)


def exact(function):
    """On finite operands in exact arithmetic, else in double, where only infinities, NaN and signs of 0 matter."""
    def evaluate(kind, *operands):
        with_floats = function(*operands)
        if not all(map(math.isfinite, operands)):
            return with_floats
        value = function(*map(Fraction, operands))
        return rounded(value, kind, with_floats if with_floats == 0 else 0.0)
    return evaluate


def divide(a, b):
    if b != 0:
        return a / b
    return NAN if a == 0 or a != a else math.copysign(1, a) * math.copysign(INF, b)


def whole(function):
    return lambda kind, x: x if not math.isfinite(x) else math.copysign(float(function(x)), x)


def remainder(kind, x, y):
    return NAN if math.isinf(x) or y == 0 or x != x or y != y else math.fmod(x, y)


def fma(kind, x, y, z):
    """None where the reference, which rounds to double first, gets another result."""
    result = exact(lambda a, b, c: a * b + c)(kind, x, y, z)
    if kind == "f64" or not all(map(math.isfinite, (x, y, z))) or not result:
        return result
    return result if rounded(Fraction(float(Fraction(x) * Fraction(y) + Fraction(z))), kind) == result else None


OPS = {"math.floor": whole(math.floor), "math.ceil": whole(math.ceil), "math.trunc": whole(math.trunc), "math.roundeven": whole(round),
       "arith.remf": remainder, "math.fma": fma}
NARROW = {"arith.addf": exact(lambda a, b: a + b), "arith.subf": exact(lambda a, b: a - b), "arith.mulf": exact(lambda a, b: a * b),
          "arith.divf": lambda kind, a, b: divide(a, b) if not (math.isfinite(a) and math.isfinite(b) and b) else exact(lambda x, y: x / y)(kind, a, b)}
ARITY = {"arith.remf": 2, "math.fma": 3, **dict.fromkeys(NARROW, 2)}


def representable(values, kind):
    """The values rounded to a kind, none of them a flushed denormal."""
    return list(dict.fromkeys(rounded(Fraction(v), kind, v) if math.isfinite(v) else v for v in values))


def specials(kind):
    digits, least, most = DIGITS[kind]
    top, one = 2.0 ** (digits - 1), 1 + 2.0 ** (1 - digits)
    sizes = [0.0, 2.0 ** least, 0.3, 0.5, 0.5 * one, 0.75, 1.0, one, 1.5, 2.5, 3.0, 7.25, 255.5, top / 2 - 0.5, top / 2 + 0.5, top - 1, top,
             top + 1, 2 * top, 2.0 ** most, (2 - 2.0 ** (1 - digits)) * 2.0 ** most]
    sizes += [2.0 ** -24, 5 * 2.0 ** -20, 2.0 ** -14 - 2.0 ** -24] if kind == "f16" else [1e-30, 3.1e-9, 7.7e20]
    return representable([sign * v for v in sizes for sign in (1, -1)], kind) + [INF, -INF, NAN]


def tuples(kind, arity):
    """All values, or so many tuples of them, drawn, that each meets each kind of other."""
    values, draw = specials(kind), random.Random(arity)
    if arity == 1:
        return [(v,) for v in values]
    drawn = [tuple(draw.choice(values) for _ in range(arity)) for _ in range(240)]
    return drawn + (cancelling(kind) if arity == 3 else [(v, w) for v in values[:4] + values[-3:] for w in values[:4] + values[-3:]])


def cancelling(kind):
    """a b - round(a b), and sums that are a tie but for what a second rounding would not see."""
    unit = 2.0 ** (1 - DIGITS[kind][0])
    pairs = [(1 + 3 * unit, 1 - 5 * unit / 2), (1 + unit, 1 + unit), (3 - 2 * unit, 5 + 4 * unit)]
    found = [(a, b, -rounded(Fraction(a) * Fraction(b), kind)) for a, b in pairs]
    small = 2.0 ** (-60 if kind != "f16" else -12)
    return found + [(sign * small, other * small, v) for v in (1 + unit, 1.0, -1.0, -1 - unit) for sign in (1, -1) for other in (1, -1)]


def same(kind, got, wanted):
    """Lines that make %GOT_ok true where two floats are the same, NaN and the sign of 0 included."""
    return [f"%{got}_1 = arith.constant 1.0 : {kind}", f"%{got}_e = arith.cmpf oeq, %{got}, %{wanted} : {kind}",
            f"%{got}_s = math.copysign %{got}_1, %{got} : {kind}", f"%{got}_t = math.copysign %{got}_1, %{wanted} : {kind}",
            f"%{got}_u = arith.cmpf oeq, %{got}_s, %{got}_t : {kind}", f"%{got}_v = arith.andi %{got}_e, %{got}_u : i1",
            f"%{got}_n = arith.cmpf uno, %{got}, %{got} : {kind}", f"%{got}_m = arith.cmpf uno, %{wanted}, %{wanted} : {kind}",
            f"%{got}_w = arith.andi %{got}_n, %{got}_m : i1", f"%{got}_ok = arith.ori %{got}_v, %{got}_w : i1"]


class Table:
    """One op on a table of operands."""

    def __init__(self, name, source, kind, operands, wanted, line):
        self.name, self.source, self.kind, self.line = name, source, kind, line
        self.operands, self.wanted = zip(*((o, w) for o, w in zip(operands, wanted) if w is not None))

    def spec(self):
        types = [f"tensor<?x{self.source}>"] * len(self.operands[0]) + [f"tensor<?x{self.kind}>"]
        names = ["x", "y", "z"][:len(self.operands[0])] + ["w"]
        lines = []
        for at in ("i", "j"):
            lines += [f"%{n}{at} = tensor.extract %{n}[%{at}] : {t}" for n, t in zip(names, types)]
            lines += [f"%r{at} = {self.line(*(f'%{n}{at}' for n in names[:-1]))}", *same(self.kind, f"r{at}", f"w{at}")]
        lines += ["%keep = arith.andi %ri_ok, %rj_ok : i1", "attn.yield %keep : i1"]
        return attention(index_region(lines), args=", ".join(f"%{n}: {t}" for n, t in zip(names, types)), lse=True, dim=1)

    def run(self, s):
        n = len(self.wanted)
        files = {name: write_npy(s.path(f"{name}.npy"), CODES[self.source], [n], list(column))
                 for name, column in zip("xyz", zip(*self.operands))}
        files["w"] = write_npy(s.path("w.npy"), CODES[self.kind], [n], list(self.wanted))
        zeros = write_npy(s.path("q.npy"), "f", [1, 1, n, 1], [0.0] * n)
        options = [f"--input={key}={path}" for key, path in {**files, "q": zeros, "k": zeros, "v": zeros}.items()]
        for cpu in CPUS:
            title = f"{self.name}, {self.source} to {self.kind}, {cpu}"
            done, command = s.execute(self.spec(), f"--cpu={cpu}", *options, "--check", f"--output=lse={s.path('lse.npy')}")
            s.runs += 1
            if "cannot run it" in done.stderr:
                print(f"{cpu} left out: {done.stderr.strip()}")
            elif done.returncode:
                s.fail(f"{title}: {done.stderr.strip()} {done.stdout}", command)
            else:
                self.compare(s, title, command)

    def compare(self, s, title, command):
        """A row has no key where it is wrong itself, and fewer where another is wrong as a scalar."""
        rows = list(zip(read_npy(s.path("lse.npy")), self.operands, self.wanted))
        for lse, operands, wanted in sorted(rows, key=lambda row: row[0])[:1]:
            if not abs(lse - math.log(len(rows))) < 1e-5:
                s.fail(f"{title}: wrong on {operands if lse == -INF else 'scalars'}, expected {wanted}", command)


def arithmetic():
    for kind in DIGITS:
        for name, function in {**OPS, **(NARROW if "16" in kind else {})}.items():
            operands = tuples(kind, ARITY.get(name, 1))
            yield Table(name, kind, kind, operands, [function(kind, *o) for o in operands],
                        lambda *o, name=name, kind=kind: f"{name} {', '.join(o)} : {kind}")


def conversions():
    for source, kind in (("f32", "f16"), ("f64", "f16"), ("f32", "bf16"), ("f64", "bf16"), ("f16", "f32"), ("f16", "f64"), ("bf16", "f32")):
        values = specials(source) + specials(kind if DIGITS[kind][0] < DIGITS[source][0] else source)
        if DIGITS[kind][0] < DIGITS[source][0]:  # ties, and what is next to them
            tie, unit = 1 + 2.0 ** -DIGITS[kind][0], 2.0 ** (1 - DIGITS[source][0])
            values += representable([scale * (tie + n * unit) for n in (-1, 0, 1) for scale in (1, -3, 1024, 2.0 ** -14)], source)
            values += [65519.0, 65520.0, -65520.0, 65536.0]
        values = [v for v in values if not math.isfinite(v) or v == 0 or abs(v) >= 2.0 ** -126]
        op = "extf" if DIGITS[kind][0] > DIGITS[source][0] else "truncf"
        yield Table(op, source, kind, [(v,) for v in values],
                    [rounded(Fraction(v), kind, v) if math.isfinite(v) else v for v in values],
                    lambda x, op=op, source=source, kind=kind: f"arith.{op} {x} : {source} to {kind}")
    for source, kind in (("i32", "f16"), ("i64", "f16"), ("i32", "bf16"), ("i64", "bf16"), ("i16", "bf16")):
        most = 2 ** (int(source[1:]) - 1) - 1
        values = sorted({sign * min(v, most) for v in (0, 1, 255, 257, 2049, 65519, 65520, 0x1010001, 0x40400001, 0x40400000, most) for sign in (1, -1)})
        yield Table("sitofp", source, kind, [(v,) for v in values], [rounded(Fraction(v), kind) for v in values],
                    lambda x, source=source, kind=kind: f"arith.sitofp {x} : {source} to {kind}")


def main(folder):
    s = Sweep(folder)
    for table in [*arithmetic(), *conversions()]:
        table.run(s)
    s.finish()


if __name__ == "__main__":
    main(sys.argv[1])
