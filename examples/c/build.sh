#!/bin/sh
# From a spec to a running C program: build.sh [FOLDER], default the current one. attn-compile is taken from PATH.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:-.}" && cd "${1:-.}"

attn-compile "$here/../window.mlir" --emit=object -o window.o
attn-compile "$here/../window.mlir" --emit=header -o window.h

# The kernel runs on all cores through OpenMP, its only dependency (--threads=off would do without).
omp=$("${LLVM_CONFIG:-llvm-config-22}" --libdir)
${CC:-cc} -std=c11 -O1 -Wall -Wextra -Werror -I. "$here/main.c" window.o -L"$omp" -Wl,-rpath,"$omp" -lomp -lm -o window
./window
