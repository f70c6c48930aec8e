"""The first GPU of this machine, by the CUDA driver's own functions."""

import ctypes

from common.kernels import CUDA, TYPES, dl_tensor

POINTER, SIZE = ctypes.c_uint64, ctypes.c_size_t


class Buffer:
    """A row-major tensor on the device; __cuda_array_interface__ shows it to PyTorch (bf16 as 16-bit integers)."""

    def __init__(self, device, element, shape):
        self.device, self.element, self.shape, self.bytes = device, element, tuple(shape), TYPES[element][1] // 8
        for extent in shape:
            self.bytes *= extent
        self.address = POINTER()
        device.call("cuMemAlloc_v2", ctypes.byref(self.address), SIZE(max(self.bytes, 1)))
        self.tensor = dl_tensor(self.address.value, shape, element, CUDA)
        kind = {"f32": "<f4", "f16": "<f2", "bf16": "<i2", "i32": "<i4", "i8": "|i1"}[element]
        self.__cuda_array_interface__ = {"shape": self.shape, "typestr": kind, "data": (self.address.value, False), "version": 3}

    def write(self, data, offset=0):
        where = POINTER(self.address.value + offset)
        self.device.call("cuMemcpyHtoDAsync_v2", where, ctypes.c_char_p(data), SIZE(len(data)), None)
        self.device.wait()

    def fill(self, data):
        """With copies of `data`, one behind the other."""
        for offset in range(0, self.bytes, len(data)):
            self.write(data[:self.bytes - offset], offset)

    def read(self):
        data = ctypes.create_string_buffer(self.bytes)
        self.device.call("cuMemcpyDtoHAsync_v2", data, self.address, SIZE(self.bytes), None)
        self.device.wait()
        return data.raw

    def free(self):
        self.device.call("cuMemFree_v2", self.address)


class Device:
    def __init__(self, driver="libcuda.so.1"):
        try:
            self.driver = ctypes.CDLL(driver)
        except OSError as error:
            raise SystemExit(f"no CUDA driver: {error}")
        context, number = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(number), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.driver.cuGetErrorString(status, ctypes.byref(text))
            raise SystemExit(f"{name}: {(text.value or b'').decode()}, error {status}")

    def wait(self):
        self.call("cuStreamSynchronize", None)

    def name(self):
        text = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", text, 100, 0)
        return text.value.decode()

    def seconds(self, enqueue):
        """Between two events around what is enqueued."""
        events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in events:
            self.call("cuEventCreate", ctypes.byref(event), 0)
        self.call("cuEventRecord", events[0], None)
        enqueue()
        self.call("cuEventRecord", events[1], None)
        self.call("cuEventSynchronize", events[1])
        took = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(took), *events)
        for event in events:
            self.call("cuEventDestroy_v2", event)
        return took.value * 1e-3
