"""Lists [1, 4, 512] of the first 512 rows, in order."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Integration", "CPU"))
from sweep import write_npy

write_npy(sys.argv[1], "i", [1, 4, 512], [k % 512 for k in range(4 * 512)])
