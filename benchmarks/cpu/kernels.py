"""Kernels for the CPU, and the probe that they are measured with."""

import ctypes
import pathlib
import subprocess

from common.kernels import Kernel, build_library, dl_tensor, find_clang

HERE = pathlib.Path(__file__).resolve().parent


def build_probe(folder, ceiling):
    library, object_file = folder / "probe.so", folder / "probe.o"
    command = [find_clang("clang++"), "-O3", "-std=c++20", "-fPIC", "-fopenmp", "-c", HERE / "probe.cpp", "-o", object_file]
    if ceiling:  # written for one machine
        command += ["-DCEILING", f"-I{ceiling}", "-march=sapphirerapids"]
    subprocess.run(command, check=True)
    subprocess.run([find_clang("clang++"), "-shared", object_file, "-o", library, "-l:libomp.so.5"], check=True)
    probe = ctypes.CDLL(library)
    probe.peak_avx512.restype = probe.peak_avx2.restype = probe.largest_difference.restype = ctypes.c_double
    probe.has_avx512.restype = probe.has_amx.restype = ctypes.c_bool
    probe.peak_amx.restype = ctypes.c_double
    probe.read_all.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    probe.narrow.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    probe.tensor.restype = ctypes.c_void_p
    probe.tensor.argtypes = [ctypes.c_int64, ctypes.c_uint64]
    probe.largest_difference.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    if ceiling:
        i, p = ctypes.c_int, ctypes.c_void_p
        probe.ceiling_f32.argtypes = probe.ceiling_bf16.argtypes = [i, i, ctypes.c_bool, i, p, p, p, p]
        if hasattr(probe, "ceiling_linear"):
            probe.ceiling_linear.argtypes = [i, ctypes.c_bool, p, p, p, p]
    return probe


def open_openmp():
    library = ctypes.CDLL("libomp.so.5")
    library.omp_get_max_threads()
    return library


class Tensors:
    """q, k, v, out and another result [1, 1, n, d]: addresses, and DLPack tensors of the first four."""

    def __init__(self, probe, n, d):
        self.q, self.k, self.v, self.out, self.other = (probe.tensor(n * d, seed) for seed in range(1, 6))
        *self.inputs, self.output = (dl_tensor(x, (1, 1, n, d)) for x in (self.q, self.k, self.v, self.out))


class NarrowTensors:
    """The same as bf16; the other result is f32."""

    def __init__(self, probe, tensors, n, d):
        self.q, self.k, self.v, self.out = (probe.tensor((n * d + 1) // 2, 1) for _ in range(4))
        self.other = tensors.other
        for wide, narrow in ((tensors.q, self.q), (tensors.k, self.k), (tensors.v, self.v)):
            probe.narrow(wide, narrow, n * d)
        *self.inputs, self.output = (dl_tensor(x, (1, 1, n, d), "bf16") for x in (self.q, self.k, self.v, self.out))


class Linear:
    """Linear attention with features elu(x) + 1, as a mask's spec."""

    def __init__(self, causal):
        self.causal = causal
        self.name = "linear causal" if causal else "linear"

    def spec(self, d, element="f32"):
        t, s, z = f"tensor<?x?x?x{d}x{element}>", f"tensor<?x?x{d}x{d}xf32>", f"tensor<?x?x{d}xf32>"
        return (f"func.func @f(%q: {t}, %k: {t}, %v: {t}) -> {t} {{\n  %o, %s, %z = attn.linear_attention %q, %k, %v feature(elu_plus_one) normalize "
                f"{'causal' if self.causal else ''} : {t}, {t}, {t} -> {t}, {s}, {z}\n  return %o : {t}\n}}\n")


class Compiler:
    def __init__(self, program, folder):
        self.program, self.folder, self.kernels = program, folder, {}

    def spec(self, mask, d, element="f32"):
        path = self.folder / f"{mask.name.replace(' ', '_')}_{d}_{element}.mlir"
        path.write_text(mask.spec(d, element))
        return path

    def kernel(self, mask, d, *flags, element="f32"):
        key = (mask.name, d, element, *flags)
        if key not in self.kernels:
            stem = self.folder / f"k{len(self.kernels)}"
            library = build_library(self.program, self.spec(mask, d, element), stem, flags, ["-l:libomp.so.5"])
            self.kernels[key] = Kernel(ctypes.CDLL(library))
        return self.kernels[key]


def peak_growth(function):
    """Bytes by which the resident memory of this process grew at most while the function ran."""
    def status(field):
        for line in pathlib.Path("/proc/self/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    ctypes.CDLL(None).malloc_trim(0)  # or memory freed before would be used again unseen
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    before = status("VmRSS")
    function()
    return status("VmHWM") - before
