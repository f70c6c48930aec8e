// Which tiles are chosen for which head_dim, element type and mask on which GPU.

// RUN: attn-opt %s --attn-select-schedule=chip=sm_80 | FileCheck %s --check-prefix=AMPERE
// RUN: attn-opt %s --attn-select-schedule=chip=sm_70 | FileCheck %s --check-prefix=VOLTA
// RUN: attn-opt %s --attn-select-schedule="chip=sm_80 query-tile=32 key-tile=16 split=64 reindex=false" | FileCheck %s --check-prefix=OPTIONS
// RUN: not attn-opt %s --attn-select-schedule=chip=sm_1 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not attn-opt %s --attn-select-schedule="chip=sm_80 query-tile=24" 2>&1 | FileCheck %s --check-prefix=ODD
// RUN: not attn-opt %s --attn-select-schedule="chip=sm_80 query-tile=1024" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not attn-opt %s --attn-select-schedule="chip=sm_80 key-tile=65536" 2>&1 | FileCheck %s --check-prefix=LARGE

// LARGE: error: tiles of the given query-tile or key-tile do not fit the 166912 bytes of shared memory that a block of sm_80 has; use smaller ones
// UNKNOWN: error: unknown chip 'sm_1'; known are sm_70
// ODD: error: for 1 warps query_tile must be a multiple of 16 or divide it by a multiple of 16 rows, and key_tile be a multiple of 16, not 24 and 64 (S5)
// MANY: error: its schedule has warps = 64, but a block of GPU threads has 1 to 32

!narrow = tensor<?x?x?x64xbf16>
!wide = tensor<?x?x?x256xbf16>
!usual = tensor<?x?x?x128xbf16>
!floats = tensor<?x?x?x64xf32>
!small = tensor<?x?x?x8xbf16>

// AMPERE-LABEL: @narrow
// AMPERE: #attn.schedule<query_tile = 128, key_tile = 64,{{.*}} warps = 4>
// VOLTA-LABEL: @narrow
// VOLTA: #attn.schedule<query_tile = 64, key_tile = 32,{{.*}} warps = 4, stages = 1>
// OPTIONS-LABEL: @narrow
// OPTIONS: #attn.schedule<query_tile = 32, key_tile = 16,{{.*}} split = 64,{{.*}} warps = 2>
func.func @narrow(%q: !narrow) -> !narrow {
  %o = attn.attention %q, %q, %q : !narrow, !narrow, !narrow -> !narrow
  return %o : !narrow
}

// Tiles shrink with the room that rows take.
// AMPERE-LABEL: @wide
// AMPERE: #attn.schedule<query_tile = 128, key_tile = 32,{{.*}} warps = 8>
func.func @wide(%q: !wide) -> !wide {
  %o = attn.attention %q, %q, %q : !wide, !wide, !wide -> !wide
  return %o : !wide
}

// A warp has 32 rows as far as its registers go; a mask that reads tensors needs some of them.
// AMPERE-LABEL: @usual
// AMPERE: #attn.schedule<query_tile = 128, key_tile = 32,{{.*}} warps = 4>
func.func @usual(%q: !usual) -> !usual {
  %o = attn.attention %q, %q, %q : !usual, !usual, !usual -> !usual
  return %o : !usual
}
// AMPERE-LABEL: @reads
// AMPERE: #attn.schedule<query_tile = 128, key_tile = 64,{{.*}} warps = 8>
func.func @reads(%q: !usual, %ids: tensor<?x?xi32>) -> !usual {
  %o = attn.attention %q, %q, %q mask(same_document(%ids : tensor<?x?xi32>)) : !usual, !usual, !usual -> !usual
  return %o : !usual
}

// AMPERE-LABEL: @floats
// AMPERE: #attn.schedule<query_tile = 64, key_tile = 32,{{.*}} warps = 4>
func.func @floats(%q: !floats) -> !floats {
  %o = attn.attention %q, %q, %q : !floats, !floats, !floats -> !floats
  return %o : !floats
}

// So little is a tile of narrow rows that one under way does not keep memory busy.
// AMPERE-LABEL: @small
// AMPERE: #attn.schedule<query_tile = 128, key_tile = 64,{{.*}} warps = 4, stages = 3>
func.func @small(%q: !small) -> !small {
  %o = attn.attention %q, %q, %q : !small, !small, !small -> !small
  return %o : !small
}

// A strided mask is the same smaller problems as on a CPU.
// AMPERE-LABEL: @strided
// AMPERE: reindex = residue, reindex_size = 16
// OPTIONS-LABEL: @strided
// OPTIONS-NOT: reindex
func.func @strided(%q: !narrow) -> !narrow {
  %o = attn.attention %q, %q, %q mask(stride(16) and causal) : !narrow, !narrow, !narrow -> !narrow
  return %o : !narrow
}
