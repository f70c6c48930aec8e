"""Every op that a mask or score region may contain and that has code on a CPU, on every type it may have."""

import re

FLOATS = ("f32", "f16", "bf16", "f64")
INTEGERS = ("i1", "i8", "i16", "i32", "i64")

EVERY_FLOAT_UNARY = "arith.negf math.absf math.floor math.ceil math.trunc math.roundeven math.sqrt".split()
EVERY_FLOAT_BINARY = ("arith.addf arith.subf arith.mulf arith.divf arith.remf arith.maximumf arith.minimumf arith.maxnumf "
                      "arith.minnumf math.copysign").split()
# By polynomials of f32.
F32_UNARY = ("math.acos math.asin math.atan math.cbrt math.cos math.erf math.erfc math.exp math.exp2 math.expm1 math.log "
             "math.log2 math.log1p math.sin math.tanh").split()
INTEGER_BINARY = ("addi subi muli divsi divui floordivsi ceildivsi ceildivui remsi remui andi ori xori shli shrui shrsi maxsi "
                  "minsi maxui minui").split()
INTEGER_UNARY = "math.absi math.ctlz math.cttz math.ctpop".split()
INDEX_BINARY = ("add sub mul divs divu floordivs ceildivs ceildivu rems remu and or xor shl shru shrs maxs mins maxu "
                "minu").split()


def float_ops(kind):
    """Lines by op, each of %a and %b of a float type into %r of the type."""
    ops = {name: [f"%r = {name} %a : {kind}"] for name in EVERY_FLOAT_UNARY + (F32_UNARY if kind == "f32" else [])}
    ops.update({name: [f"%r = {name} %a, %b : {kind}"]
                for name in EVERY_FLOAT_BINARY + (["math.atan2"] if kind == "f32" else [])})
    ops["math.fma"] = [f"%r = math.fma %a, %b, %b : {kind}"]
    ops["arith.cmpf"] = [f"%x = arith.cmpf olt, %a, %b : {kind}", f"%r = arith.select %x, %a, %b : {kind}"]
    for integer in INTEGERS:
        for sign in ("si", "ui"):
            ops[f"arith.fpto{sign} {integer}"] = [f"%x = arith.fpto{sign} %a : {kind} to {integer}",
                                                  f"%r = arith.{sign}tofp %x : {integer} to {kind}"]
    for other in FLOATS:
        if bits(other) != bits(kind):
            there, back = ("extf", "truncf") if bits(other) > bits(kind) else ("truncf", "extf")
            ops[f"arith.{there} to {other}"] = [f"%x = arith.{there} %a : {kind} to {other}",
                                                f"%r = arith.{back} %x : {other} to {kind}"]
    return ops


def bits(kind):
    return int(kind.lstrip("bfi"))


def integer_ops(kind):
    ops = {f"arith.{name}": [f"%r = arith.{name} %a, %b : {kind}"] for name in INTEGER_BINARY}
    ops.update({name: [f"%r = {name} %a : {kind}"] for name in INTEGER_UNARY})
    ops["arith.cmpi"] = [f"%x = arith.cmpi ult, %a, %b : {kind}", f"%r = arith.select %x, %a, %b : {kind}"]
    for other in INTEGERS:
        if bits(other) > bits(kind):
            ops[f"arith.extsi {other}"] = [f"%x = arith.extsi %a : {kind} to {other}", f"%y = arith.extui %b : {kind} to {other}",
                                           f"%z = arith.muli %x, %y : {other}", f"%r = arith.trunci %z : {other} to {kind}"]
    return ops


def index_ops():
    ops = {f"index.{name}": [f"%r = index.{name} %a, %b"] for name in INDEX_BINARY}
    ops["index.cmp"] = ["%x = index.cmp slt(%a, %b)", "%r = arith.select %x, %a, %b : index"]
    ops["arith.index_cast"] = ["%x = arith.index_cast %a : index to i32", "%r = arith.index_castui %x : i32 to index"]
    return ops


def convert(name, source, kind):
    """Lines that make %name of `kind` from the f32 %source."""
    if kind == "f32":
        return [f"%{name} = arith.negf %{source} : f32"]
    if kind == "index":
        return [f"%{name}i = arith.fptosi %{source} : f32 to i64", f"%{name} = arith.index_cast %{name}i : i64 to index"]
    op = "fptosi" if kind.startswith("i") else "extf" if bits(kind) > 32 else "truncf"
    return [f"%{name} = arith.{op} %{source} : f32 to {kind}"]


def convert_back(name, source, kind):
    if kind == "index":
        return [f"%{name}i = arith.index_cast %{source} : index to i64", f"%{name} = arith.sitofp %{name}i : i64 to f32"]
    if kind == "f32":
        return [f"%{name} = arith.negf %{source} : f32"]
    op = "sitofp" if kind.startswith("i") else "truncf" if bits(kind) > 32 else "extf"
    return [f"%{name} = arith.{op} %{source} : {kind} to f32"]


def rename(lines, suffix):
    """The lines with names of their own: %r becomes %rSUFFIX, but for the operands %a and %b, named as `suffix` says."""
    return [re.sub(r"%([abrxyz])\b", rf"%\1{suffix}", line) for line in lines]


def score_region(cases):
    """A score region with every (type, lines) twice: on vectors, from the score, and on scalars, from the key; and with captured
    tensors of narrow floats, CAPTURED."""
    lines = ["%j32 = arith.index_cast %j : index to i32", "%jf = arith.sitofp %j32 : i32 to f32",
             "%h32 = arith.index_cast %h : index to i32", "%hf = arith.sitofp %h32 : i32 to f32", "%sj = arith.addf %s, %jf : f32"]
    for kind in ("f16", "bf16"):  # read here, used behind everything
        lines += [f"%{kind}{at} = tensor.extract %{kind}[%{at}] : tensor<?x{kind}>" for at in ("i", "j")]
    lines.append("%sum = arith.addf %s, %sj : f32")
    for number, (kind, op) in enumerate(cases):
        for form, first, second in (("v", "s", "sj"), ("s", "jf", "hf")):
            suffix, before = f"{form}{number}", lines[-1].split()[0]
            lines += convert(f"a{suffix}", first, kind) + convert(f"b{suffix}", second, kind)
            lines += rename(op, suffix) + convert_back(f"o{suffix}", f"r{suffix}", kind)
            lines.append(f"%sum{suffix} = arith.addf {before}, %o{suffix} : f32")
    for name in ("f16i", "f16j", "bf16i", "bf16j"):
        before = lines[-1].split()[0]
        lines += [f"%{name}x = arith.extf %{name} : {name[:-1]} to f32", f"%{name}y = arith.addf {before}, %{name}x : f32"]
    return "\n".join("    " + line for line in [*lines, f"attn.yield {lines[-1].split()[0]} : f32"])


CAPTURED = "%f16: tensor<?xf16>, %bf16: tensor<?xbf16>"
TABLES = {**{kind: float_ops(kind) for kind in FLOATS}, **{kind: integer_ops(kind) for kind in INTEGERS}, "index": index_ops()}
