"""Compiled specs as functions of this process, and the probe that they are measured with."""

import ctypes
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


def find_clang(name):
    for candidate in (f"{name}-22", name):
        if path := shutil.which(candidate):
            return path
    raise SystemExit(f"{name} not found; install it (Debian: clang-22)")


def build_probe(folder, ceiling):
    library = folder / "probe.so"
    command = [find_clang("clang++"), "-O3", "-std=c++20", "-shared", "-fPIC", HERE / "probe.cpp", "-o", library]
    if ceiling:  # written for one machine
        command += ["-DCEILING", f"-I{ceiling}", "-march=sapphirerapids"]
    subprocess.run(command, check=True)
    probe = ctypes.CDLL(library)
    probe.peak_avx512.restype = probe.peak_avx2.restype = probe.largest_difference.restype = ctypes.c_double
    probe.has_avx512.restype = ctypes.c_bool
    probe.tensor.restype = ctypes.c_void_p
    probe.tensor.argtypes = [ctypes.c_int64, ctypes.c_uint64]
    probe.largest_difference.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    if ceiling:
        i, p = ctypes.c_int, ctypes.c_void_p
        probe.ceiling_f32.argtypes = [i, i, ctypes.c_bool, i, p, p, p, p]
    return probe


def open_openmp():
    library = ctypes.CDLL("libomp.so.5")
    library.omp_get_max_threads()
    return library


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


def dl_tensor(data, shape, code):
    FLOAT, INT = 2, 0
    assert code in (FLOAT, INT)
    return DLTensor(ctypes.cast(data, ctypes.c_void_p), 1, 0, len(shape), code, 32, 1, (ctypes.c_int64 * len(shape))(*shape), None, 0)


class Tensors:
    """q, k, v, out and another result [1, 1, n, d]: addresses, and DLPack tensors of the first four."""

    def __init__(self, probe, n, d):
        self.q, self.k, self.v, self.out, self.other = (probe.tensor(n * d, seed) for seed in range(1, 6))
        *self.inputs, self.output = (dl_tensor(x, (1, 1, n, d), 2) for x in (self.q, self.k, self.v, self.out))


class Kernel:
    def __init__(self, library):
        self.library = library
        library.attn_last_error.restype = ctypes.c_char_p

    def _check(self, status):
        if status:
            raise SystemExit(f"{self.library._name}: {self.library.attn_last_error().decode()}")

    @staticmethod
    def _inputs(tensors, captured):
        return [ctypes.byref(x) for x in tensors.inputs + [dl_tensor(*c, 0) for c in captured]]

    def run(self, tensors, captured=()):
        self._check(self.library.f(*self._inputs(tensors, captured), ctypes.byref(tensors.output)))

    def plan(self, tensors, captured=(), keep=False):
        made = ctypes.c_void_p()
        self._check(self.library.f_plan(ctypes.byref(made), *self._inputs(tensors, captured)))
        return made if keep else self.free(made)

    def run_planned(self, made, tensors, captured=()):
        self._check(self.library.f_run(made, *self._inputs(tensors, captured), ctypes.byref(tensors.output)))

    def free(self, made):
        self.library.attn_plan_free(made)


class Compiler:
    def __init__(self, program, folder):
        self.program, self.folder, self.kernels = program, folder, {}

    def spec(self, mask, d):
        path = self.folder / f"{mask.name.replace(' ', '_')}_{d}.mlir"
        path.write_text(mask.spec(d))
        return path

    def kernel(self, mask, d, *flags):
        key = (mask.name, d, *flags)
        if key not in self.kernels:
            source, stem = self.spec(mask, d), self.folder / f"k{len(self.kernels)}"
            subprocess.run([self.program, source, "--emit=object", "-o", f"{stem}.o", *flags], check=True)
            subprocess.run([find_clang("clang"), "-shared", f"{stem}.o", "-o", f"{stem}.so", "-l:libomp.so.5"], check=True)
            self.kernels[key] = Kernel(ctypes.CDLL(f"{stem}.so"))
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
