"""Compiled specs as functions of this process, called with DLPack tensors that are views of any kind."""

import array
import ctypes
import mmap
import random
import subprocess

FLOAT, INT = 2, 0
NORESERVE = 0x4000  # memory is taken where it is touched


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Memory:
    """32-bit elements in memory of this process."""

    def __init__(self, values=(), size=0, code="f"):
        self.size = size or len(values)
        self.map = mmap.mmap(-1, max(4 * self.size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        if len(values):
            self.write(0, array.array(code, values))

    @staticmethod
    def normal(count, seed):
        draw = random.Random(seed)
        return Memory([draw.gauss(0, 1) for _ in range(count)])

    def write(self, offset, values):
        ctypes.memmove(self.address + 4 * offset, values.tobytes(), 4 * len(values))

    def read(self, offset, count):
        values = array.array("f")
        values.frombytes(ctypes.string_at(self.address + 4 * offset, 4 * count))
        return values


def contiguous(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    return strides


class View:
    """A tensor in a Memory: element (i, j, ...) stands at offset + i * strides[0] + ..."""

    def __init__(self, memory, shape, strides=None, offset=0, code=FLOAT):
        self.memory, self.shape, self.strides, self.offset = memory, shape, strides or contiguous(shape), offset
        n = len(shape)
        self.tensor = DLTensor(memory.address + 4 * offset, 1, 0, n, code, 32, 1, (ctypes.c_int64 * n)(*shape),
                               (ctypes.c_int64 * n)(*self.strides), 0)

    def rows(self):
        """The offset of every row along the last dimension, in order."""
        offsets = [self.offset]
        for extent, stride in zip(self.shape[:-1], self.strides[:-1]):
            offsets = [at + i * stride for at in offsets for i in range(extent)]
        return offsets

    def read(self):
        values = array.array("f")
        for at in self.rows():
            values.extend(self.memory.read(at, self.shape[-1]))
        return values

    def copy(self):
        """The same elements, contiguous in memory of their own."""
        return View(Memory(self.read()), self.shape)


class Library:
    """The function @f of a spec."""

    def __init__(self, spec, path, *options):
        with open(path + ".mlir", "w") as file:
            file.write(spec)
        subprocess.run(["attn-compile", path + ".mlir", "--emit=shared", "-o", path + ".so", "--threads=off", *options], check=True)
        self.loaded = ctypes.CDLL(path + ".so")
        self.loaded.attn_last_error.restype = ctypes.c_char_p

    def try_call(self, *views):
        """The error message, or None."""
        status = self.loaded.f(*(ctypes.byref(view.tensor) for view in views))
        return self.loaded.attn_last_error().decode() if status else None

    def call(self, *views):
        """The elements of the last view, which is the output."""
        error = self.try_call(*views)
        if error:
            raise SystemExit(error)
        return views[-1].read()

    def plan(self, *views):
        made = ctypes.c_void_p()
        if self.loaded.f_plan(ctypes.byref(made), *(ctypes.byref(view.tensor) for view in views)):
            raise SystemExit(self.loaded.attn_last_error().decode())
        self.loaded.attn_plan_free(made)
