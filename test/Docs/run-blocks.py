#!/usr/bin/env python3
"""Executes what a document shows: run-blocks.py DOCUMENT SOURCE_TREE WORK_FOLDER

Of the fenced blocks of a Markdown file these are taken, in order:

    ```sh test      is run by bash (errors end it) in WORK_FOLDER, which looks like the source tree
    ```text test    is what the block before printed: its lines occur there in this order, whatever the numbers
    ```mlir test    is parsed and verified by attn-opt

Exits 1 at the first block that fails and says where it stands.
"""

import os
import re
import subprocess
import sys

FENCE = re.compile(r"^```(\S*)(?:\s+(\S+))?\s*$")


def blocks(path):
    """(line number, language, text) of each block marked for test."""
    with open(path, encoding="utf-8") as lines:
        language, mark, start, text = None, None, 0, []
        for number, line in enumerate(lines, 1):
            fence = FENCE.match(line)
            if fence and language is None:
                language, mark, start, text = fence.group(1), fence.group(2), number, []
            elif line.rstrip() == "```" and language is not None:
                if mark == "test":
                    yield start, language, "".join(text)
                language = None
            elif language is not None:
                text.append(line)


def make_tree(source, work):
    """Links to everything a document's commands may read, so that what they write stays in the work folder."""
    os.makedirs(work, exist_ok=True)
    for name in ("examples", "docs", "test", "benchmarks", "README.md"):
        link, target = os.path.join(work, name), os.path.join(source, name)
        if os.path.exists(target) and not os.path.lexists(link):
            os.symlink(target, link)


def run(command, work, text=None):
    result = subprocess.run(command, cwd=work, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return result.returncode, result.stdout


def shape(line):
    """A line without what differs from run to run: numbers and the width of columns."""
    return " ".join(re.sub(r"\d[\d,.]*(e[-+]?\d+)?", "#", line).split())


def missing_line(wanted, printed):
    """The first line of `wanted` that does not follow in `printed`, or None."""
    rest = iter([shape(line) for line in printed.splitlines()])
    for line in wanted.splitlines():
        if shape(line) not in ("", "...") and not any(shape(line) == found for found in rest):
            return line
    return None


def main():
    document, source, work = sys.argv[1:]
    make_tree(source, work)
    printed, count = "", 0
    for number, language, text in blocks(document):
        count += 1
        problem = None
        if language == "sh":
            status, printed = run(["bash", "-euo", "pipefail", "-c", text], work)
            problem = status and f"exit status {status}:\n{printed}"
        elif language == "text":
            line = missing_line(text, printed)
            problem = line and f"this line was not printed: {line}\nprinted was:\n{printed}"
        elif language == "mlir":
            status, output = run(["attn-opt", "--split-input-file", "-o", os.devnull, "-"], work, text)
            problem = status and output
        else:
            problem = f"no way to test a block of '{language}'"
        if problem:
            sys.exit(f"{document}:{number}: {problem}")
    print(f"{document}: {count} blocks hold")


if __name__ == "__main__":
    main()
