"""missing.py SPEC OUTPUT: prints what both tools say to every option without code; stops at one that is not refused."""

import subprocess
import sys

spec, output = sys.argv[1:]
OPTIONS = ["--preset=bigbird", "--set=window=64", "--list-presets", "--dtype=bf16", "--head-dim=64"]

for option in OPTIONS:
    for tool, rest in (("attn-compile", ["-o", output]), ("attn-run", ["--random=N=5"])):
        if tool == "attn-run" and option.startswith("--emit"):
            continue  # attn-run emits nothing
        # The same with a space for the sign of equality, and with one dash.
        said = set()
        for words in ([option], option.split("=", 1), [option[1:]]):
            done = subprocess.run([tool, spec, *words, *rest], capture_output=True, text=True)
            if done.returncode != 1 or done.stdout:
                sys.exit(f"{tool} {words}: status {done.returncode}, output {done.stdout!r}")
            said.add(done.stderr)
        if len(said) != 1:
            sys.exit(f"{tool} {option}: says different things: {said}")
        print(said.pop(), end="")
