#!/usr/bin/env python3
"""Says whether the table of cases in test/README.md is true: coverage.py SOURCE_TREE

Every row's tests exist and name the case; every case that a test names at the beginning of a line has a row.
"""

import glob
import os
import re
import sys

ROW = re.compile(r"^\| ([CPU]\d+) \|.*\| ([^|]*) \|$", re.MULTILINE)
NAMED = re.compile(r"^(?:// )?((?:[CPU]\d+, )*[CPU]\d+)[:,] ", re.MULTILINE)
# Constraints of the dialect have numbers of the same kind (P1 ...).
CASES = [path for suffix in ("test", "mlir") for path in glob.glob("**/*." + suffix, root_dir=os.path.join(sys.argv[1], "test"), recursive=True)
         if not path.startswith("Dialect")]


def read(path):
    with open(os.path.join(sys.argv[1], "test", path), encoding="utf-8") as file:
        return file.read()


def main():
    listed = {case: re.findall(r"`([^`]+)`", tests) for case, tests in ROW.findall(read("README.md"))}
    named = {path: {case for group in NAMED.findall(read(path)) for case in group.split(", ")} for path in CASES}
    wrong = [f"{case}: {path} does not name it" for case, paths in listed.items() for path in paths or ["no test"] if case not in named.get(path, ())]
    wrong += [f"{path} names {case}, which has no such row" for path, cases in named.items() for case in cases if path not in listed.get(case, ())]
    print("\n".join(sorted(wrong)) or f"{len(listed)} cases have their tests")
    sys.exit(bool(wrong) or not listed)


main()
