#!/usr/bin/env python3
"""Says whether the numbered constraints agree: constraints.py SOURCE_TREE

A constraint is a line `- A1: text` of a .td file. docs/Spec.md has every one of the attn dialect, in the same words; every one
that the verifiers of a dialect mention in a message, `(A1)`, is shown in an invalid*.mlir test, and is one of those.
"""

import glob
import os
import re
import sys

LINE = re.compile(r"^\s*- ([A-Z]+\d+): (.*)$", re.MULTILINE)
MENTION = re.compile(r"\(([A-Z]+\d+)\)")


def read(source, pattern):
    paths = sorted(glob.glob(os.path.join(source, pattern), recursive=True))
    return "\n".join(open(path, encoding="utf-8").read() for path in paths)


def check_dialect(source, dialect):
    defined = LINE.findall(read(source, f"include/attn/Dialect/{dialect}/**/*.td"))
    raised = set(MENTION.findall(re.sub(r"//.*", "", read(source, f"lib/Dialect/{dialect}/**/*.cpp"))))
    shown = set(MENTION.findall(read(source, f"test/Dialect/{dialect}/**/invalid*.mlir")))
    numbers = {n for n, _ in defined}
    problems = [f"{n}: a message mentions it, no .td defines it" for n in sorted(raised - numbers)]
    problems += [f"{n}: no invalid.mlir shows its message" for n in sorted(raised - shown)]
    problems += [f"{n}: no verifier raises it" for n in sorted(numbers - raised)]
    return defined, problems


def check_document(source, defined):
    described = dict(LINE.findall(read(source, "docs/Spec.md")))
    problems = [f"{n}: docs/Spec.md does not have it" for n, _ in defined if n not in described]
    # One number may stand at several ops ("size at least 1"); its words may name that op's attributes only.
    problems += [f"{n}: the .td says '{text}', docs/Spec.md '{described[n]}'" for n, text in defined if n in described and text not in described[n]]
    numbers = {n for n, _ in defined}
    problems += [f"{n}: docs/Spec.md has it, no .td" for n in described if n not in numbers]
    return problems


def main():
    source = sys.argv[1]
    defined, problems = check_dialect(source, "Attn")
    tiles, more = check_dialect(source, "AttnTile")
    problems += more + check_document(source, defined)
    print("\n".join(problems) or f"{len({n for n, _ in defined + tiles})} constraints agree")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
