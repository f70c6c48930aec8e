"""What else computes attention on a CPU: PyTorch's SDPA and FlexAttention, ONNX Runtime, IREE, on the same data."""

import dataclasses
import importlib.metadata
import os
import time


@dataclasses.dataclass
class Problem:
    """One batch; `captured` are the tensors that the mask reads, as PyTorch has them."""
    mask: object  # masks.Mask
    element: str
    heads: int
    queries: int
    keys: int
    d: int
    q: object
    k: object
    v: object
    captured: list
    threads: int

    @property
    def rule(self):
        """keep(b, h, i, j), as FlexAttention takes it; None: all pairs."""
        t = self.captured[0] if self.captured else None
        return {
            "dense": None,
            "causal": lambda b, h, i, j: i >= j,
            "window": lambda b, h, i, j: (i >= j) & (i - j < 256),
            "documents to 1300": lambda b, h, i, j: (i >= j) & (t[0, i] == t[0, j]),
            "table": lambda b, h, i, j: (i >= j) & (t[i // 128, j // 128] != 0),
        }[self.mask.name]

    def table(self, torch):
        """The same rule as a [queries, keys] table of booleans."""
        i, j = torch.arange(self.queries)[:, None], torch.arange(self.keys)[None, :]
        return self.rule(0, 0, i, j)


class Missing(Exception):
    """Why a peer takes no part."""


class SDPA:
    """torch.nn.functional.scaled_dot_product_attention; masks other than causal as a table of booleans."""

    def __init__(self):
        import torch
        self.torch, self.version = torch, f"torch {torch.__version__}"
        torch.set_grad_enabled(False)

    def prepare(self, problem):
        table = None if problem.mask.name in ("dense", "causal") else problem.table(self.torch)
        attention, causal = self.torch.nn.functional.scaled_dot_product_attention, problem.mask.name == "causal"
        self.torch.set_num_threads(problem.threads)
        return lambda: attention(problem.q, problem.k, problem.v, attn_mask=table, is_causal=causal)


class Flex(SDPA):
    """torch.nn.attention.flex_attention, compiled, with a block mask made beforehand."""

    def prepare(self, problem):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        self.torch.set_num_threads(problem.threads)
        self.torch._dynamo.reset()  # or the ninth problem would be run uncompiled
        flex, block_mask = self.torch.compile(flex_attention, dynamic=False), None
        if problem.rule:
            block_mask = create_block_mask(problem.rule, None, None, problem.queries, problem.keys, device="cpu")
        return lambda: flex(problem.q, problem.k, problem.v, block_mask=block_mask)


class ONNXRuntime:
    """Attention of ONNX; where it is faster, MultiHeadAttention of com.microsoft, and for windows GroupQueryAttention."""

    def __init__(self):
        import numpy
        import onnx
        import onnxruntime
        import torch
        self.numpy, self.onnx, self.ort, self.torch = numpy, onnx, onnxruntime, torch
        self.version = f"onnxruntime {onnxruntime.__version__}"

    def session(self, node, inputs, output, element, threads, domain):
        onnx, types = self.onnx, {"f32": 1, "f16": 10, "bf16": 16}
        value = lambda name, type, shape: onnx.helper.make_tensor_value_info(name, type, shape)
        graph = onnx.helper.make_graph([node], "attention", [value(n, t, s) for n, t, s in inputs],
                                       [value("out", types[element], output)])
        versions = [onnx.helper.make_opsetid("", 23)] + ([onnx.helper.make_opsetid(domain, 1)] if domain else [])
        model = onnx.helper.make_model(graph, opset_imports=versions, ir_version=10)
        options = self.ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 4
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # or it would slow down the next one
        return self.ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def prepare(self, p):
        if p.element == "bf16":
            raise Missing("has no bf16 on CPUs")
        number, name, node = {"f32": 1, "f16": 10}[p.element], p.mask.name, self.onnx.helper.make_node
        rows = lambda x: x.transpose(1, 2).reshape(1, x.shape[2], -1).contiguous().numpy()  # [1, N, H D]
        wide = p.heads * p.d
        if name in ("dense", "causal") and p.queries > 1:
            feeds = {"q": rows(p.q), "k": rows(p.k), "v": rows(p.v)}
            made = node("MultiHeadAttention", list(feeds), ["out"], domain="com.microsoft", num_heads=p.heads,
                        unidirectional=int(name == "causal"))
            inputs, shape, domain = [(n, number, list(x.shape)) for n, x in feeds.items()], [1, p.queries, wide], "com.microsoft"
        elif name == "window":
            last = self.numpy.array([p.keys - 1], "int32"), self.numpy.array([p.keys], "int32")
            empty = self.numpy.zeros((1, p.heads, 0, p.d), feeds_type(self.numpy, p.element))
            feeds = {"q": rows(p.q), "k": rows(p.k), "v": rows(p.v), "pk": empty, "pv": empty, "last": last[0], "total": last[1]}
            made = node("GroupQueryAttention", list(feeds), ["out", "k2", "v2"], domain="com.microsoft", num_heads=p.heads,
                        kv_num_heads=p.heads, local_window_size=256)
            inputs = [(n, number if n not in ("last", "total") else 6, list(x.shape)) for n, x in feeds.items()]
            shape, domain = [1, p.queries, wide], "com.microsoft"
        else:
            feeds = {"q": p.q.numpy(), "k": p.k.numpy(), "v": p.v.numpy()}
            if p.rule:
                feeds["m"] = p.table(self.torch).numpy()
            made = node("Attention", list(feeds), ["out"])
            inputs = [(n, 9 if n == "m" else number, list(x.shape)) for n, x in feeds.items()]
            shape, domain = list(p.q.shape), None
        session = self.session(made, inputs, shape, p.element, p.threads, domain)

        def run():
            out = self.torch.from_numpy(session.run(["out"], feeds)[0])
            return out if out.dim() == 4 else out.view(1, p.queries, p.heads, p.d).transpose(1, 2)
        return run


def feeds_type(numpy, element):
    return {"f32": numpy.float32, "f16": numpy.float16}[element]


class IREE:
    """iree_linalg_ext.attention, compiled for this CPU; causal as a table of booleans."""

    def __init__(self):
        import iree.compiler
        import iree.runtime
        import torch
        self.compiler, self.runtime, self.torch = iree.compiler, iree.runtime, torch
        self.version = f"iree {importlib.metadata.version('iree-base-compiler')}"

    @staticmethod
    def text(p, masked):
        e, h, n, m, d = p.element, p.heads, p.queries, p.keys, p.d
        q, k, t = f"tensor<{h}x{n}x{d}x{e}>", f"tensor<{h}x{m}x{d}x{e}>", f"tensor<{n}x{m}xi8>"
        dims = "(h, i, d, j, c)"
        return f"""func.func @f(%q: {q}, %k: {k}, %v: {k}{f', %t: {t}' if masked else ''}) -> {q} {{
  %scale = arith.constant {p.d ** -0.5} : {e}
  %empty = tensor.empty() : {q}
  {f'''%bits = tensor.empty() : tensor<{n}x{m}xi1>
  %m = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
    ins(%t : {t}) outs(%bits : tensor<{n}x{m}xi1>) {{
  ^bb0(%x: i8, %y: i1):
    %z = arith.trunci %x : i8 to i1
    linalg.yield %z : i1
  }} -> tensor<{n}x{m}xi1>''' if masked else ''}
  %o = iree_linalg_ext.attention <{{indexing_maps = [affine_map<{dims} -> (h, i, d)>, affine_map<{dims} -> (h, j, d)>,
      affine_map<{dims} -> (h, j, c)>, affine_map<{dims} -> ()>, {f'affine_map<{dims} -> (i, j)>, ' if masked else ''}affine_map<{dims} -> (h, i, c)>]}}>
    ins(%q, %k, %v, %scale{', %m' if masked else ''} : {q}, {k}, {k}, {e}{f', tensor<{n}x{m}xi1>' if masked else ''}) outs(%empty : {q}) {{
  ^bb0(%s: f32):
    iree_linalg_ext.yield %s : f32
  }} -> {q}
  return %o : {q}
}}"""

    def prepare(self, p):
        if p.mask.name not in ("dense", "causal"):
            raise Missing("computes all pairs under any mask: its time is that of dense attention")
        flags = ["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"]
        binary = self.compiler.compile_str(self.text(p, bool(p.rule)), target_backends=["llvm-cpu"], extra_args=flags)
        self.runtime.flags.FUNCTION_INPUT_VALIDATION = False
        if p.threads > 1:
            self.runtime.flags.parse_flags(f"--task_topology_group_count={p.threads}")
        device = self.runtime.get_device("local-sync" if p.threads == 1 else "local-task")
        config = self.runtime.Config(device=device)
        context = self.runtime.SystemContext(config=config)
        context.add_vm_module(self.runtime.VmModule.copy_buffer(context.instance, binary))
        function = context.modules.module.f
        arrays = [self.array(x[0]) for x in (p.q, p.k, p.v)] + ([p.table(self.torch).to(self.torch.int8).numpy()] if p.rule else [])
        inputs = [self.runtime.asdevicearray(device, x) for x in arrays]

        def run():
            out = function(*inputs).to_host()
            if p.element == "bf16":
                return self.torch.from_numpy(out.view("int16")).view(self.torch.bfloat16)[None]
            return self.torch.from_numpy(out)[None]
        return run

    def array(self, x):
        if x.dtype != self.torch.bfloat16:
            return x.numpy()
        import ml_dtypes
        return x.view(self.torch.int16).numpy().view(ml_dtypes.bfloat16)


PEERS = {"sdpa": SDPA, "flex": Flex, "ort": ONNXRuntime, "iree": IREE}


def say(error):
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0][:160] if lines else type(error).__name__


class Peers:
    """Those that could be opened, and why the others are missing."""

    def __init__(self):
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        self.found, self.missing = {}, {}
        for name, make in PEERS.items():
            try:
                self.found[name] = make()
            except Exception as error:  # whatever a peer says, it is no contestant
                self.missing[name] = say(error)
        self.torch = self.found["sdpa"].torch if "sdpa" in self.found else None

    def contestants(self, problem):
        """{name: function}, their results and times of a first call, and why the others are missing."""
        runs, results, firsts, missing = {}, {}, {}, dict(self.missing)
        for name, peer in self.found.items():
            try:
                run = peer.prepare(problem)
                begin = time.perf_counter()
                results[name], runs[name] = run(), run
                firsts[name] = time.perf_counter() - begin
            except Exception as error:
                missing[name] = say(error)
        return runs, results, firsts, missing
