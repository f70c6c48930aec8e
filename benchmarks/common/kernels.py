"""Compiled specs as functions of this process: DLPack tensors and calls, by ctypes."""

import ctypes
import os
import shutil
import subprocess

TYPES = {"f32": (2, 32), "f16": (2, 16), "bf16": (4, 16), "i32": (0, 32), "i8": (0, 8)}  # DLDataType: code, bits
CPU, CUDA = 1, 2  # DLDeviceType


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


def dl_tensor(data, shape, element="f32", device=CPU):
    """A row-major tensor at an address."""
    return DLTensor(data, device, 0, len(shape), *TYPES[element], 1, (ctypes.c_int64 * len(shape))(*shape), None, 0)


def host_tensor(element, shape, values):
    """A tensor over an array of this process."""
    tensor = dl_tensor(values.buffer_info()[0], shape, element)
    tensor.values = values  # lives as long as the tensor
    return tensor


class Kernel:
    """A function of a compiled object, with its plan; `last` are arguments behind the tensors."""

    def __init__(self, library, name="f", last=()):
        self.loaded, self.last = library, last
        self.function, self.planning, self.running = (getattr(library, name + end) for end in ("", "_plan", "_run"))
        library.attn_last_error.restype = ctypes.c_char_p

    def _call(self, function, first, tensors):
        status = function(*first, *(ctypes.byref(t) for t in tensors), *self.last)
        if status:
            raise SystemExit(f"{self.loaded._name}: {self.loaded.attn_last_error().decode()}")

    def run(self, inputs, output):
        self._call(self.function, (), [*inputs, output])

    def plan(self, inputs):
        made = ctypes.c_void_p()
        self._call(self.planning, (ctypes.byref(made),), inputs)
        return made

    def run_planned(self, plan, inputs, output):
        self._call(self.running, (plan,), [*inputs, output])

    def free(self, plan):
        self.loaded.attn_plan_free(plan)


def find_program(*names, install=""):
    for name in names:
        if path := shutil.which(name):
            return path
    raise SystemExit(f"{names[-1]} not found" + (f"; install it ({install})" if install else ""))


def find_clang(name="clang"):
    return find_program(f"{name}-22", name, install="Debian: clang-22")


def build_library(compiler, spec, stem, flags=(), libraries=()):
    """Compiles a spec to STEM.so."""
    subprocess.run([compiler, spec, "--emit=object", "-o", f"{stem}.o", *flags], check=True)
    subprocess.run([find_clang(), "-shared", f"{stem}.o", "-o", f"{stem}.so", *libraries], check=True)
    os.remove(f"{stem}.o")
    return f"{stem}.so"
