"""Runs specs through `attn-run --check` over tables of extents, and collects what was wrong."""

import array
import json
import os
import shlex
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


class Sweep:
    """One folder of specs and files; `finish` ends the test."""

    def __init__(self, folder):
        self.folder, self.specs, self.runs, self.wrong = folder, 0, 0, []
        os.makedirs(folder, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write_spec(self, text):
        self.specs += 1
        path = self.path(f"{self.specs}.mlir")
        with open(path, "w") as file:
            file.write(text)
        return path

    def execute(self, spec, *options):
        """One attn-run; `spec` is text. Answers the finished process and the command."""
        command = ["attn-run", self.write_spec(spec), *options]
        return subprocess.run(command, capture_output=True, text=True), shlex.join(command)

    def check(self, name, spec, extents, *options, files=None):
        """Every set of extents ("B=1,N=5") must agree with the reference; `files` are inputs by argument. Answers the reports."""
        extents = [extents] if isinstance(extents, str) else list(extents)
        options = [*options, *(f"--input={key}={path}" for key, path in (files or {}).items())]
        done, command = self.execute(spec, "--check", "--json", *(f"--random={e}" for e in extents), *options)
        reports = [json.loads(line) for line in done.stdout.splitlines()]
        self.runs += len(reports)
        for report, extent in zip(reports, extents):
            for check in report["check"]:
                if not check["passed"]:
                    self.fail(f"{name}, {extent}: {check['result']} is off by {check['max_error']} at {check['worst']}, "
                              f"allowed {check['bound']:.2g}", command)
        if len(reports) != len(extents) or (done.returncode != 0) != any(not r["passed"] for r in reports):
            self.fail(f"{name}: stopped after {len(reports)} of {len(extents)} runs: {done.stderr.strip()} "
                      f"(status {done.returncode})", command)
        return reports

    def refuse(self, name, spec, message, *options):
        """attn-run must fail and say `message`."""
        done, command = self.execute(spec, *options)
        self.runs += 1
        if done.returncode == 0 or message not in done.stderr:
            self.fail(f"{name}: should fail with '{message}', said: {done.stderr.strip()} (status {done.returncode})", command)

    def results(self, name, spec, outputs, *options):
        """The bytes of result files, by name; None where the run failed."""
        paths = {key: self.path(f"{self.specs + 1}.{key}.npy") for key in outputs}
        done, command = self.execute(spec, *options, *(f"--output={key}={path}" for key, path in paths.items()))
        self.runs += 1
        if done.returncode:
            self.fail(f"{name}: {done.stderr.strip()} (status {done.returncode})", command)
            return None
        return {key: read_npy(path) for key, path in paths.items()}

    def compare(self, name, got, wanted):
        """The same bits."""
        self.runs += 1
        if got.tobytes() != wanted.tobytes():
            worst = max((abs(a - b), i) for i, (a, b) in enumerate(zip(got, wanted)))
            self.fail(f"{name}: differs by {worst[0]} at element {worst[1]}", "")

    def expect(self, condition, message):
        if not condition:
            self.fail(message, "")

    def fail(self, message, command):
        self.wrong.append(message + (f"\n    {command}" if command else ""))

    def finish(self):
        print(f"{self.specs} specs, {self.runs} runs, {len(self.wrong)} wrong")
        sys.exit("\n".join(self.wrong[:20]) if self.wrong else 0)


CODES = {"f": "<f4", "d": "<f8", "b": "|i1", "h": "<i2", "i": "<i4", "q": "<i8", "?": "|b1", "e": "<f2"}


def write_npy(path, code, shape, values):
    """A .npy file without NumPy; `code` as in the struct module."""
    shape = "".join(f"{extent}, " for extent in shape)
    header = f"{{'descr': '{CODES[code]}', 'fortran_order': False, 'shape': ({shape}), }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    data = struct.pack(f"<{len(values)}{code}", *values)
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
    return path


def read_npy(path):
    """The elements of a float32 .npy file."""
    with open(path, "rb") as file:
        text = file.read()
    start = 10 + struct.unpack("<H", text[8:10])[0]
    assert b"'<f4'" in text[:start], text[:start]
    values = array.array("f")
    values.frombytes(text[start:])
    return values


def grid(ns, ms, extra=""):
    """Extents of every N with every M."""
    return [f"N={n},M={m}{extra}" for n in ns for m in ms]
