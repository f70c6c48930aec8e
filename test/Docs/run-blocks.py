#!/usr/bin/env python3
"""Executes what a document shows: run-blocks.py DOCUMENT SOURCE_TREE WORK_FOLDER

Of the fenced blocks of a Markdown file these are taken, in order:

    ```sh test      is run by bash (errors end it) in WORK_FOLDER, which looks like the source tree
    ```sh usage     takes minutes and is not run: the programs are there, and their help has every option and word
    ```text test    is what the block before printed: its lines occur there in this order, whatever the numbers
    ```mlir test    is parsed and verified by attn-opt
    ```c test       stands in a header that a block before wrote

A block of a language without a mark is an error. Exits 1 at the first block that fails and says where it stands.
"""

import glob
import os
import re
import shlex
import shutil
import subprocess
import sys

FENCE = re.compile(r"^```(\S*)(?:\s+(\S+))?\s*$")


def blocks(path):
    """(line number, language, mark, text) of each block that names a language."""
    with open(path, encoding="utf-8") as lines:
        language, mark, start, text = None, None, 0, []
        for number, line in enumerate(lines, 1):
            fence = FENCE.match(line)
            if fence and language is None:
                language, mark, start, text = fence.group(1), fence.group(2), number, []
            elif line.rstrip() == "```" and language is not None:
                if language:
                    yield start, language, mark, "".join(text)
                language = None
            elif language is not None:
                text.append(line)


def make_tree(source, work):
    """Links to everything a document's commands may read, so that what they write stays in the work folder."""
    os.makedirs(work, exist_ok=True)
    for name in ("examples", "docs", "test", "tools", "benchmarks", "README.md"):
        link, target = os.path.join(work, name), os.path.join(source, name)
        if os.path.exists(target) and not os.path.lexists(link):
            os.symlink(target, link)


def run(command, work, text=None):
    result = subprocess.run(command, cwd=work, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return result.returncode, result.stdout


def shape(line):
    """A line without what differs from run to run: numbers, units of time, and the width of columns."""
    return " ".join(re.sub(r"\d[\d,.]*(e[-+]?\d+)?( (s|ms|us)\b)?", "#", line).split())


def missing_line(wanted, printed):
    """The first line of `wanted` that does not follow in `printed`, or None."""
    rest = iter([shape(line) for line in printed.splitlines()])
    for line in wanted.splitlines():
        if shape(line) not in ("", "...") and not any(shape(line) == found for found in rest):
            return line
    return None


def check_usage(text, work):
    """What is wrong with the commands of a block that is not run, or None."""
    for command in re.split(r"&&|\n", re.sub(r"#.*", "", text)):
        program, *words = shlex.split(command) or [None]
        if not program or program == "cmake":
            continue
        path = os.path.join(work, program) if "/" in program else shutil.which(program)
        if not path or not os.access(path, os.X_OK):
            return f"there is no program '{program}'"
        status, usage = run([path, "--help"], work)
        known = set(re.findall(r"[\w-]+", usage))
        unknown = [word for word in words if word.split("=")[0] not in known]
        if status or unknown:
            return f"'{program} --help' ends with status {status} and does not know: {' '.join(unknown)}"
    return None


def check_declarations(text, work):
    """The first line of C that stands in no header, or None."""
    headers = "".join(open(path, encoding="utf-8").read() for path in glob.glob(os.path.join(work, "*.h")))
    return next((f"no header declares: {line}" for line in text.splitlines() if line not in headers), None)


def main():
    document, source, work = sys.argv[1:]
    make_tree(source, work)
    printed, count = "", 0
    for number, language, mark, text in blocks(document):
        count += 1
        problem = None
        if (language, mark) == ("sh", "usage"):
            problem = check_usage(text, work)
        elif mark != "test":
            problem = f"the block of '{language}' has no mark: write ```{language} test"
        elif language == "c":
            problem = check_declarations(text, work)
        elif language == "sh":
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
