"""Prints a spec of `COUNT` attentions, each of tensors of its own: many.py COUNT"""

import sys

count, t = int(sys.argv[1]), "tensor<?x?x?x16xf32>"
arguments = ", ".join(f"%{c}{i}: {t}" for i in range(count) for c in "qkv")
types = ", ".join([t] * count)
print(f"func.func @many({arguments}) -> ({types}) {{")
for i in range(count):
    print(f"  %o{i} = attn.attention %q{i}, %k{i}, %v{i} : {t}, {t}, {t} -> {t}")
print("  return " + ", ".join(f"%o{i}" for i in range(count)) + f" : {types}\n}}")
