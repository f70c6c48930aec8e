// Every stage of one spec, from the checked text to a shared library.

// RUN: attn-compile %s --emit=attn | FileCheck %s --check-prefix=ATTN
// RUN: attn-compile %s --emit=schedule --cpu=x86-64-v4 | FileCheck %s --check-prefix=SCHEDULE
// RUN: attn-compile %s --emit=tile --cpu=x86-64-v4 | FileCheck %s --check-prefix=TILE
// RUN: attn-compile %s --emit=cpu --cpu=x86-64-v4 | FileCheck %s --check-prefix=CPU
// RUN: attn-compile %s --emit=llvm --cpu=x86-64-v4 | FileCheck %s --check-prefix=LLVM
// RUN: attn-compile %s --emit=asm --cpu=x86-64-v4 | FileCheck %s --check-prefix=V4
// RUN: attn-compile %s --emit=asm --cpu=x86-64-v3 | FileCheck %s --check-prefix=V3

// The mask prints back in the short form, and names of arguments are kept.
// ATTN: func.func @window
// ATTN-SAME: attn.name = "q"
// ATTN: attn.attention {{.*}} mask(causal and window(left = 255))
// ATTN-NOT: schedule

// SCHEDULE: attn.attention {{.*}} mask(causal and window(left = 255)) schedule(#attn.schedule<

// TILE-NOT: attn.attention
// TILE: scf.for
// TILE: attn_tile.

// CPU-NOT: attn.attention
// CPU-NOT: attn_tile.
// CPU: vector<16xf32>

// LLVM-DAG: define{{.*}} i32 @window(
// LLVM-DAG: define{{.*}} i32 @window_plan(
// LLVM-DAG: define{{.*}} i32 @window_run(
// LLVM-DAG: define weak{{.*}} @attn_last_error

// V4-DAG: vfmadd{{.*}}%zmm
// V4-DAG: vscalefps
// V3-NOT: zmm
// V3: vfmadd{{.*}}%ymm
// V3-NOT: zmm

// An object exports its entry points and the two functions of the runtime, and asks for nothing but libc and OpenMP.
// RUN: attn-compile %s --emit=object -o %t.o
// RUN: llvm-nm --extern-only --defined-only %t.o | FileCheck %s --check-prefix=DEFINED --implicit-check-not="{{ [TWD] }}"
// RUN: llvm-nm --undefined-only %t.o | FileCheck %s --check-prefix=NEEDED
// DEFINED-DAG: W attn_last_error
// DEFINED-DAG: W attn_plan_free
// DEFINED-DAG: T window
// DEFINED-DAG: T window_plan
// DEFINED-DAG: T window_run
// NEEDED: __kmpc_

// Without threads OpenMP is not needed.
// RUN: attn-compile %s --threads=off -o %t.serial.o
// RUN: llvm-nm --undefined-only %t.serial.o | FileCheck %s --check-prefix=SERIAL
// SERIAL-NOT: kmpc
// SERIAL: U {{malloc|calloc|aligned_alloc|posix_memalign}}
// SERIAL-NOT: kmpc

// RUN: attn-compile %s --emit=shared -o %t.so --threads=off
// RUN: llvm-nm -D --defined-only %t.so | FileCheck %s --check-prefix=SHARED
// SHARED-DAG: T window
// SHARED-DAG: T window_run

// Another machine.
// RUN: attn-compile %s --triple=aarch64-linux-gnu --cpu=neoverse-n1 --emit=asm | FileCheck %s --check-prefix=ARM
// ARM: fmla v{{[0-9]+}}.4s

// The choices of a schedule can be made on the command line.
// RUN: attn-compile %s --emit=schedule --cpu=x86-64-v4 --query-tile=32 --key-tile=64 --group=3 --split=512 | FileCheck %s --check-prefix=GIVEN
// GIVEN: #attn.schedule<query_tile = 32, key_tile = 64, group = 3,{{.*}} split = 512

!t = tensor<?x?x?x64xf32>
func.func @window(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and window(left = 255)) : !t, !t, !t -> !t
  return %out : !t
}

// Nothing of the machine that the runtime was compiled on is left in a module for another one.
// RUN: attn-compile %s --triple=riscv64-linux-gnu --cpu=generic-rv64 --emit=object -o %t.riscv.o
// RUN: attn-compile %s --triple=aarch64-linux-gnu --cpu=neoverse-n1 --emit=llvm | FileCheck %s --check-prefix=OTHER
// OTHER-NOT: x86-64
