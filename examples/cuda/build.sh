#!/bin/sh
# From a spec to a C program that runs on a GPU: build.sh [FOLDER [CHIP]], default the current one and sm_80. attn-compile
# is taken from PATH. No CUDA toolkit takes part; the program finds the CUDA driver when it runs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:-.}" && cd "${1:-.}"

attn-compile "$here/attention.mlir" --target=cuda --chip="${2:-sm_80}" --emit=object -o attention.o
attn-compile "$here/attention.mlir" --target=cuda --chip="${2:-sm_80}" --emit=header -o attention.h

${CC:-cc} -std=c11 -O1 -Wall -Wextra -Werror -I. -I"$here" "$here/main.c" "$here/device.c" attention.o -ldl -lm -o attention
./attention
