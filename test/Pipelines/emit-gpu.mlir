// Every stage of one spec on the way to a GPU.

// RUN: attn-compile %s --target=cuda --emit=schedule | FileCheck %s --check-prefix=SCHEDULE
// RUN: attn-compile %s --target=cuda --emit=tile | FileCheck %s --check-prefix=TILE
// RUN: attn-compile %s --target=cuda --emit=gpu | FileCheck %s --check-prefix=GPU
// RUN: attn-compile %s --target=cuda --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: attn-opt %s --attn-to-gpu | FileCheck %s --check-prefix=GPU
// RUN: attn-opt %s --attn-to-gpu=chip=sm_75 | FileCheck %s --check-prefix=TURING
// RUN: not attn-opt %s --attn-to-gpu=chip=sm_1 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// SCHEDULE: attn.attention {{.*}} mask(causal) schedule(#attn.schedule<{{.*}} warps = 4>)

// TILE-NOT: attn.attention
// TILE: attn_tile.fetch
// TILE: attn_tile.start
// TILE: scf.while

// GPU: attn_tile.launch
// GPU: gpu.module @attn_device
// GPU: nvvm.cp.async
// GPU: nvvm.mma.sync
// GPU-NOT: attn_tile
// GPU-NOT: math.exp %

// PTX: .target sm_80
// PTX: .entry causal$k0$task(
// PTX: mma.sync.aligned.m16n8k16

// TURING: gpu.module @attn_device
// TURING-NOT: nvvm.mma.sync

// UNKNOWN: error: unknown chip 'sm_1'
!t = tensor<?x?x?x64xbf16>
func.func @causal(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal) : !t, !t, !t -> !t
  return %out : !t
}
