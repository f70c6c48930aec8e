"""What is checked and what is timed on a GPU."""

import dataclasses

from common import masks
from common.masks import Mask


@dataclasses.dataclass(frozen=True)
class Function:
    """A compiled function; its name says which."""
    mask: Mask = dataclasses.field(compare=False)
    element: str
    dim: int
    value_dim: int
    name: str = ""

    @staticmethod
    def of(mask, element, dim, value_dim=None):
        name = f"{mask.name}_{element}_{dim}" + (f"_{value_dim}" if value_dim else "")
        return Function(mask, element, dim, value_dim or dim, name.replace(" ", "_").replace("-", "_"))

    def spec(self):
        return self.mask.spec(self.dim, self.element, self.name, self.value_dim)


@dataclasses.dataclass
class Case:
    """A function and its extents."""
    function: Function
    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int

    def shapes(self):
        """Of q, k, v and the result."""
        q = (self.batch, self.heads, self.queries, self.function.dim)
        k = (self.batch, self.key_heads, self.keys, self.function.dim)
        return q, k, (*k[:3], self.function.value_dim), (*q[:3], self.function.value_dim)

    def extents(self):
        return {"mask": self.function.mask.name, "type": self.function.element, "B": self.batch, "H": self.heads,
                "Hkv": self.key_heads, "N": self.queries, "M": self.keys, "D": self.function.dim, "Dv": self.function.value_dim}

    def published(self):
        return PUBLISHED.get((self.function.mask.name, self.function.dim, self.queries, self.keys))

    def flops(self):
        kept = self.function.mask.kept(self.keys) if self.queries == self.keys else self.queries * self.keys
        return 2.0 * self.batch * self.heads * (self.function.dim + self.function.value_dim) * kept

    def small(self):
        """The same for the emulator."""
        queries = min(self.queries, 200)
        return dataclasses.replace(self, batch=1, heads=2, key_heads=1, queries=queries, keys=700 if queries == 1 else queries)


# What projects publish for a setting, by mask, head_dim, queries, keys: TFLOP/s, for one query GB/s.
PUBLISHED = {
    ("dense", 128, 16384, 16384): "cuDNN, H200: 702", ("dense", 128, 2048, 2048): "cuDNN, H200: 633",
    ("causal", 128, 8192, 8192): "cuDNN, H200: 644", ("causal", 128, 4096, 4096): "cuDNN, H200: 591",
    ("causal", 128, 2048, 2048): "cuDNN, H200: 484", ("causal", 192, 8192, 8192): "cuDNN, H200, values of 128: 643",
    ("dense", 64, 16384, 16384): "FlashAttention-3, H100: 501; FlexAttention: 346",
    ("causal", 64, 16384, 16384): "FlashAttention-3, H100: 474; FlexAttention: 340",
    ("window of 1024", 128, 32768, 32768): "FlashAttention-3, H100: 523", ("window of 1024", 64, 32768, 32768): "cuDNN, H200: 358",
    ("dense", 256, 16384, 16384): "FlashAttention-3, H100: 756",
    ("dense", 128, 1, 4000): "FlashAttention-3, H100: 1849",
}
ELEMENTS = ("bf16", "f16", "f32")
SMALL_WINDOW = dataclasses.replace(masks.window_mask(100), name="window of 100")
SMALL_DOCUMENTS = masks.document_mask("documents to 100", 100)
LONG_WINDOW = dataclasses.replace(masks.window_mask(1024), name="window of 1024")
CHECKED = [masks.DENSE, masks.CAUSAL, SMALL_WINDOW, SMALL_DOCUMENTS, masks.TABLE, masks.LONGFORMER, masks.SOFTCAP,
           *(mask for mask in masks.SPARSE if mask.name in ("blocks", "strided"))]


def checks(quick):
    """Every mask in every type; wider heads; few queries, whose keys are split."""
    if quick:
        return [Case(Function.of(masks.CAUSAL, "bf16", 64), 1, 2, 1, 150, 150),
                Case(Function.of(masks.TABLE, "f32", 64), 1, 1, 1, 130, 130)]
    all_masks = [Case(Function.of(mask, element, 64), 1, 4, 2, 300, 300) for mask in CHECKED for element in ELEMENTS]
    wide = [Case(Function.of(mask, element, dim), 2, 2, 1, 200, 200)
            for mask in (masks.DENSE, masks.CAUSAL) for element in ELEMENTS for dim in (128, 256)]
    wide += [Case(Function.of(masks.CAUSAL, element, 192, 128), 1, 2, 1, 200, 200) for element in ELEMENTS]
    few = [Case(Function.of(masks.DENSE, element, 128), 1, 4, 1, 1, 1500) for element in ELEMENTS]
    return all_masks + wide + few


def timed(quick):
    """The settings in which other projects publish their figures; bf16. What matters most comes first."""
    def prefill(mask, dim, lengths, batch, heads, key_heads, value_dim=None):
        return [Case(Function.of(mask, "bf16", dim, value_dim), batch(n), heads, key_heads, n, n) for n in lengths]

    def decode(batch, heads, key_heads, keys):
        return Case(Function.of(masks.DENSE, "bf16", 128), batch, heads, key_heads, 1, keys)

    if quick:
        return [*prefill(masks.CAUSAL, 64, [4096], lambda n: 4, 16, 16), decode(16, 32, 8, 4096)]
    one, same_tokens = lambda n: 1, lambda n: 16384 // n
    return [
        *prefill(masks.CAUSAL, 128, [8192, 1024, 2048, 4096, 16384], one, 64, 8),
        *prefill(LONG_WINDOW, 128, [32768], one, 64, 8),
        *prefill(masks.DOCUMENTS, 128, [8192, 2048, 32768], one, 64, 8),
        *prefill(masks.CAUSAL, 64, [16384, 1024, 4096], same_tokens, 16, 16),
        decode(16, 32, 8, 4096), decode(16, 32, 32, 4000), decode(1, 32, 8, 131072),
        *prefill(masks.DENSE, 128, [16384, 1024, 2048, 4096, 8192], one, 64, 8),
        *prefill(masks.DENSE, 64, [16384, 1024, 4096], same_tokens, 16, 16),
        *prefill(LONG_WINDOW, 64, [32768], lambda n: 2, 64, 8),
        *prefill(masks.DENSE, 256, [16384], one, 8, 8),
        *prefill(masks.CAUSAL, 192, [8192], one, 128, 128, value_dim=128),
    ]
