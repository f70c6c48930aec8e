"""The systems of the survey with settings that follow the number of tokens, and how their work has to grow."""

import math


def root(n):
    """sqrt(n) for the powers of 4 that are measured."""
    return math.isqrt(n)


class System:
    """One preset. `settings` and `shape` are functions of the tokens; `exponent` is that of the survey's Table 1, once the sizes
    that it names beside N are constant, or follow sqrt(N) where its formula says so."""

    def __init__(self, name, survey, exponent, preset, settings=None, shape=None, function=None, random=None, most=65536):
        self.name, self.survey, self.exponent, self.preset = name, survey, exponent, preset
        self.settings, self.shape, self.function = settings or (lambda n: {}), shape or (lambda n: {"N": n}), function
        self.most = most  # tokens at which a call still takes seconds

    def arguments(self, n, shape_option):
        shape = {"H": 1, **self.shape(n)}
        return ([f"--preset={self.preset}", f"{shape_option}=" + ",".join(f"{k}={v}" for k, v in shape.items())]
                + [f"--set={k}={v}" for k, v in self.settings(n).items()]
                + ([f"--function={self.function}"] if self.function else []))


MILLION = 1 << 20
SYSTEMS = [
    System("Memory Compressed, local", "O(N)", 1, "memory-compressed-local", most=MILLION),
    System("Memory Compressed", "O(N^2 / c)", 2, "memory-compressed", function="memory_compressed", most=16384),
    System("Image Transformer, 1-D", "O(N m)", 1, "image-1d", most=MILLION),
    System("Image Transformer, 2-D", "O(N m)", 1, "image-2d", most=MILLION),
    System("Set Transformer", "O(N k)", 1, "set", shape=lambda n: {"N": 16, "M": n}, most=MILLION),
    System("Sparse Transformer, strided", "O(N sqrt N)", 1.5, "sparse-strided", lambda n: {"stride": root(n)}),
    System("Sparse Transformer, fixed", "O(N sqrt N)", 1.5, "sparse-fixed",
           lambda n: {"stride": root(n), "columns": max(root(n) // 16, 1)}),
    System("Axial", "O(N sqrt N)", 1.5, "axial", lambda n: {"inner": root(n)}),
    System("Longformer", "O(N (k + m))", 1, "longformer", most=MILLION),
    System("ETC", "O(G^2 + N G)", 1, "etc", shape=lambda n: {"N": n, "M": 64, "M2": n}, function="etc_long", most=MILLION),
    System("BigBird", "O(N)", 1, "bigbird", lambda n: {"tokens": n}),
    System("Routing Transformer", "O(N sqrt N)", 1.5, "routing", lambda n: {"clusters": root(n), "window": root(n)}),
    System("Reformer", "O(N log N)", 1, "reformer", lambda n: {"buckets": 64}),
    System("Sinkhorn", "O(B^2 + (N / B)^2), B = sqrt N", 1.5, "sinkhorn", lambda n: {"block": root(n)}),
    System("Linformer", "O(N)", 1, "linformer", most=MILLION),
    System("Linear Transformer", "O(N)", 1, "linear", most=MILLION),
    System("Performer", "O(N)", 1, "performer", shape=lambda n: {"N": n, "F": 128}, most=MILLION),
    System("Synthesizer", "O(N^2)", 2, "synthesizer", most=16384),
    System("Transformer-XL", "O(N^2)", 2, "transformer-xl", shape=lambda n: {"N": n, "M": 2 * n}, most=8192),
    System("Compressive", "O(N^2)", 2, "compressive", shape=lambda n: {"N": n, "M": 2 * n}, function="compressive", most=8192),
]
