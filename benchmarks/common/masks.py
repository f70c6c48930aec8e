"""The masks that are measured: how they are written, how many pairs they keep, and the data they capture."""

import array
import dataclasses
from typing import Callable

CODES = {"i8": "b", "i32": "i"}  # of the array module


@dataclasses.dataclass
class Mask:
    name: str
    text: str  # of mask(...)
    kept: Callable[[int], int] = lambda n: n * n  # pairs among n queries and n keys
    argument: str = ""  # "%doc: type" of a captured tensor
    data: Callable[[int], tuple] = None  # its element type, shape and entries
    score: str = ""

    def spec(self, d, element="f32", name="f", value_dim=None):
        t, v = (f"tensor<?x?x?x{dim}x{element}>" for dim in (d, value_dim or d))
        extra = ", " + self.argument if self.argument else ""
        parts = (f"score {{\n{self.score}\n  }} " if self.score else "") + (f"mask({self.text})" if self.text else "")
        return (f"func.func @{name}(%q: {t}, %k: {t}, %v: {v}{extra}) -> {v} {{\n"
                f"  %o = attn.attention %q, %k, %v {parts} : {t}, {t}, {v} -> {v}\n  return %o : {v}\n}}\n")

    def captured(self, n):
        """(element type, shape, array) of each captured tensor."""
        if not self.data:
            return []
        element, shape, values = self.data(n)
        return [(element, shape, array.array(CODES[element], values))]


def window(left, right, n):
    return sum(min(i + right, n - 1) - max(i - left, 0) + 1 for i in range(n))


def longformer(width, n):  # the first token sees all and is seen by all
    beyond = sum(max(i - width, 0) > 0 for i in range(1, n))  # rows whose window does not reach key 0
    return n + window(width, width, n) - (min(width, n - 1) + 1) + beyond


def documents(n, longest):
    """Lengths of documents packed into n tokens, 64 to `longest` each."""
    lengths, state = [], 12345
    while sum(lengths) < n:
        state = (state * 1664525 + 1013904223) % 2**32
        lengths.append(min(64 + (state >> 8) % (longest - 64), n - sum(lengths)))
    return lengths


def triangle(n):
    return n * (n + 1) // 2


def strided(size, n):  # the last `size` keys, and every size-th before them
    return sum(min(i + 1, size) + (i // size if i >= size else 0) for i in range(n))


SOFT_CAP = """  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %cap = arith.constant 50.0 : f32
    %x = arith.divf %s, %cap : f32
    %y = math.tanh %x : f32
    %z = arith.mulf %y, %cap : f32
    attn.yield %z : f32"""

DENSE = Mask("dense", "")
CAUSAL = Mask("causal", "causal", triangle)


def window_mask(width):
    """The last `width` keys."""
    return Mask("window", f"causal and window(left = {width - 1})", lambda n: window(width - 1, 0, n))


WINDOW = window_mask(256)
LONGFORMER = Mask("longformer", "window(left = 256, right = 256) or global(count = 1)", lambda n: longformer(256, n))


def document_mask(name, longest):
    def ids(n):
        return "i32", (1, n), [number for number, length in enumerate(documents(n, longest)) for _ in range(length)]

    return Mask(name, "causal and same_document(%doc : tensor<?x?xi32>)",
                lambda n: sum(map(triangle, documents(n, longest))), "%doc: tensor<?x?xi32>", ids)


def table_mask(size):
    """Causal, and every third block of keys before a query's own."""
    def table(n):
        blocks = -(-n // size)
        return "i8", (blocks, blocks), [int((i - j) % 3 == 0) for i in range(blocks) for j in range(blocks)]

    def kept(n):
        blocks = [min(size, n - start) for start in range(0, n, size)]
        return sum(triangle(a) + a * sum(blocks[i % 3:i:3]) for i, a in enumerate(blocks))

    return Mask("table", f"causal and block_mask(%t : tensor<?x?xi8>, size = {size})", kept, "%t: tensor<?x?xi8>", table)


DOCUMENTS = document_mask("documents to 1300", 1300)
TABLE = table_mask(64)
SPARSE = [
    CAUSAL,
    WINDOW,
    LONGFORMER,
    DOCUMENTS,
    Mask("blocks", "causal and same_block(size = 256)", lambda n: n // 256 * triangle(256)),
    Mask("strided", "causal and (window(left = 127) or stride(size = 128))", lambda n: strided(128, n)),
    Mask("axial row", "same_row(width = 64)", lambda n: n * 64),
    Mask("axial column", "same_column(width = 64) and causal", lambda n: 64 * triangle(n // 64)),
    Mask("neighborhood 1-D", "neighborhood(size = 257)", lambda n: n * 257),
    Mask("neighborhood 2-D", "neighborhood_2d(width = 64, size = [7, 7])", lambda n: n * 49),
]
SETS = Mask("index sets", "window(left = 4, right = 4) or column_in(%g : tensor<?x?xi32>) or row_in(%g : tensor<?x?xi32>)",
            argument="%g: tensor<?x?xi32>")
BIGBIRD = Mask("bigbird", "blocked(16, window(left = 1, right = 1) or global(count = 1) or in_table(%r : tensor<?x?xi64>))",
               argument="%r: tensor<?x?xi64>")
LONG = [WINDOW, document_mask("documents to 8000", 8000), DOCUMENTS, LONGFORMER]
SOFTCAP = Mask("soft cap", "causal and window(left = 1023)", score=SOFT_CAP)
COMPILED = [WINDOW, LONGFORMER, DOCUMENTS, SOFTCAP]
