"""make-documents.py FILE.npy: int32 [1, 128], two documents of 64 tokens, written without NumPy."""

import struct
import sys

header = "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 128), }"
header += " " * (-(len(header) + 11) % 64) + "\n"
with open(sys.argv[1], "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    file.write(struct.pack("<128i", *[token // 64 for token in range(128)]))
