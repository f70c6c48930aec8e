"""PyTorch's attention on the same device and data: SDPA with a back end forced by name, and FlexAttention."""

import contextlib


class NoTorch:
    def __init__(self, why):
        self.why = why

    def contestants(self, case, buffers):
        return {}, {"torch": self.why}

    def difference(self, one, other):
        return None


class Torch:
    def __init__(self, torch):
        self.torch = torch
        torch.set_grad_enabled(False)  # or FlexAttention writes what a backward pass needs

    def view(self, buffer):
        tensor = self.torch.as_tensor(buffer, device="cuda")
        return tensor.view(self.torch.bfloat16) if buffer.element == "bf16" else tensor

    def contestants(self, case, buffers):
        """{name: function that enqueues n calls}, each tried once, and why the others are missing."""
        q, k, v = (self.view(b) for b in buffers[:3])
        grouped = case.heads != case.key_heads
        found, missing = {}, {}
        for name, make in (("sdpa_flash", self.sdpa("FLASH_ATTENTION")), ("sdpa_cudnn", self.sdpa("CUDNN_ATTENTION")),
                           ("flex", self.flex_attention)):
            try:
                context, call = make(case, q, k, v, buffers[3:], grouped)
                with context():
                    result = call()
                self.torch.cuda.synchronize()
                found[name] = self.repeat(context, call), result
            except Exception as error:  # whatever a peer says, it is no contestant
                missing[name] = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        return found, missing

    @staticmethod
    def repeat(context, call):
        def enqueue(count):
            with context():
                for _ in range(count):
                    call()
        return enqueue

    def sdpa(self, backend):
        def make(case, q, k, v, captured, grouped):
            from torch.nn.attention import SDPBackend, sdpa_kernel
            causal = case.function.mask.name == "causal"
            if case.function.mask.name not in ("dense", "causal"):
                raise RuntimeError("only with a mask as large as the scores")
            attention = self.torch.nn.functional.scaled_dot_product_attention
            return (lambda: sdpa_kernel([getattr(SDPBackend, backend)]),
                    lambda: attention(q, k, v, is_causal=causal, enable_gqa=grouped))
        return make

    def flex_attention(self, case, q, k, v, captured, grouped):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        name, block_mask = case.function.mask.name, None
        if name in ("dense", "causal") and 1 < case.queries < 8192:
            raise RuntimeError("left out: it is compiled for each case, which takes seconds")
        self.torch._dynamo.reset()  # or the ninth case would be run uncompiled
        flex = self.torch.compile(flex_attention, dynamic=False)
        if name != "dense":
            ids = self.view(captured[0])[0] if captured else None
            rules = {
                "causal": lambda b, h, i, j: i >= j,
                "window of 1024": lambda b, h, i, j: (i >= j) & (i - j < 1024),
                "documents to 1300": lambda b, h, i, j: (i >= j) & (ids[i] == ids[j]),
            }
            block_mask = create_block_mask(rules[name], None, None, case.queries, case.keys, device="cuda",
                                           _compile=case.queries > 8192)
        return contextlib.nullcontext, lambda: flex(q, k, v, block_mask=block_mask, enable_gqa=grouped)

    def difference(self, buffer, result):
        """The largest between our result and a peer's."""
        return (self.view(buffer).float() - result.float()).abs().max().item()


def open_peers():
    try:
        import torch
    except ImportError:
        return NoTorch("not installed")
    return Torch(torch) if torch.cuda.is_available() else NoTorch("has no GPU")
