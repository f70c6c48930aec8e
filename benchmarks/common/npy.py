"""Tensors as numbers and as .npy files, without NumPy. bf16 lies in files as its bits."""

import array
import struct

FILE_TYPES = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<u2", "i32": "<i4", "i8": "|i1"}
CODES = {"f64": "d", "f32": "f", "i32": "i", "i8": "b"}


def encode(element, values):
    """The bytes of numbers in an element type."""
    if element == "f16":
        return struct.pack(f"<{len(values)}e", *values)
    if element != "bf16":
        return array.array(CODES[element], values).tobytes()
    words = array.array("I", array.array("f", values).tobytes())
    return array.array("H", ((w + 0x7fff + (w >> 16 & 1)) >> 16 for w in words)).tobytes()  # nearest, ties to even


def decode(element, data):
    """The numbers in some bytes."""
    if element == "f16":
        return struct.unpack(f"<{len(data) // 2}e", data)
    if element != "bf16":
        return array.array(CODES[element], data)
    return array.array("f", array.array("I", (w << 16 for w in array.array("H", data))).tobytes())


def write(path, element, shape, data):
    header = f"{{'descr': '{FILE_TYPES[element]}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


def read_bytes(path, element):
    """The elements in a file, which have to be of that type."""
    data = path.read_bytes()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    if f"'{FILE_TYPES[element]}'".encode() not in data[:start]:
        raise SystemExit(f"{path}: not of {element}")
    return data[start:]
