"""all-pictures.py EXAMPLES FOLDER: every function of every example has a picture and a report that can be parsed."""

import json
import pathlib
import re
import subprocess
import sys
import xml.dom.minidom

examples, folder = map(pathlib.Path, sys.argv[1:])
count = 0
for spec in sorted(examples.glob("*.mlir")):
    for function in re.findall(r"^func\.func @(\w+)", spec.read_text(), re.M):
        command = ["attn-compile", str(spec), f"--function={function}", "--shape=N=512"]
        subprocess.check_call([*command, "--emit=svg", "-o", str(folder / "picture.svg")])
        xml.dom.minidom.parse(str(folder / "picture.svg"))
        report = json.loads(subprocess.check_output([*command, "--emit=report", "--json"]))
        for attention in report["attentions"]:
            kept, computed, pairs = (attention[key] for key in ("kept", "computed", "pairs"))
            assert 0 < kept <= computed <= pairs, (spec, function, kept, computed, pairs)
            assert attention["mask"] or kept == pairs, (spec, function)
        count += 1
print(f"{count} functions")
