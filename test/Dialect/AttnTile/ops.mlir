// RUN: attn-opt %s --verify-roundtrip | FileCheck %s

// One query tile over one tile of keys, with a score region and a mask.
// CHECK-LABEL: func.func @tile(
// CHECK:         %[[SLOT:.+]] = attn_tile.slot %{{.+}}[%{{.+}}] dims(%{{.+}}, %{{.+}}) key_tile(128) : memref<?xf32> -> <48, 64, 32, natural>
// CHECK:         %[[BEGUN:.+]] = attn_tile.begin %[[SLOT]], %{{.+}}[%{{.+}}], %{{.+}}[%{{.+}}] scale(%{{.+}}) : <48, 64, 32, natural>, memref<?x64xf32>, memref<?x64xf32>
// CHECK:         %[[SCORES:.+]] = attn_tile.score %[[BEGUN]], %{{.+}}[%{{.+}}] rows(%{{.+}}) : <48, 64, 32, natural>, memref<?x64xf32> -> <128 by 48>
// CHECK:         %[[FAR:.+]] = attn_tile.relative %[[SCORES]], %[[BEGUN]], %{{.+}}[%{{.+}}, %{{.+}}] step 1 bias(%{{.+}} : memref<?x?xf32>) scale(%{{.+}}) : <128 by 48>, <48, 64, 32, natural>, memref<?x?x?xf32>
// CHECK:         %[[MODIFIED:.+]] = attn_tile.modify %[[FAR]] at(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}) step 1 of(%{{.+}}, %{{.+}}) captured(%{{.+}} : memref<?xf32>) {
// CHECK-NEXT:    ^bb0(%{{.+}}: f32, %{{.+}}: index, {{.*}}: memref<?xf32>):
// CHECK:           attn_tile.yield %{{.+}} : f32
// CHECK:         %[[MASKED:.+]] = attn_tile.mask %[[MODIFIED]] at(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}) step 2 of(%{{.+}}, %{{.+}}) nonnegative {
// CHECK:           attn_tile.yield %{{.+}} : i1
// CHECK:         %[[WEIGHTS:.+]], %[[SUMMED:.+]] = attn_tile.softmax %[[MASKED]], %[[BEGUN]] : <128 by 48>, <48, 64, 32, natural>
// CHECK:         attn_tile.accumulate %[[WEIGHTS]], %{{.+}}[%{{.+}}] rows(%{{.+}}) into %[[SUMMED]] skip_zero : <128 by 48>, memref<?x32xf32>, <48, 64, 32, natural>
func.func @tile(%scratch: memref<?xf32>, %q: memref<?x64xf32>, %k: memref<?x64xf32>, %v: memref<?x32xf32>,
                %bias: memref<?xf32>, %table: memref<?x?x?xf32>, %more: memref<?x?xf32>, %i: index, %n: index, %scale: f32) -> !attn_tile.state<48, 64, 32, natural> {
  %slot = attn_tile.slot %scratch[%i] dims(%n, %n) key_tile(128) : memref<?xf32> -> <48, 64, 32, natural>
  %begun = attn_tile.begin %slot, %q[%i], %k[%i] scale(%scale) : <48, 64, 32, natural>, memref<?x64xf32>, memref<?x64xf32>
  %scores = attn_tile.score %begun, %k[%i] rows(%n) : <48, 64, 32, natural>, memref<?x64xf32> -> <128 by 48>
  %far = attn_tile.relative %scores, %begun, %table[%i, %i] step 1 bias(%more : memref<?x?xf32>) scale(%scale)
    : <128 by 48>, <48, 64, 32, natural>, memref<?x?x?xf32>
  %modified = attn_tile.modify %far at(%i, %i, %i, %i) step 1 of(%n, %n) captured(%bias : memref<?xf32>) {
  ^bb0(%s: f32, %b: index, %h: index, %qi: index, %kj: index, %nq: index, %nk: index, %m: memref<?xf32>):
    %x = memref.load %m[%h] : memref<?xf32>
    %y = arith.addf %s, %x : f32
    attn_tile.yield %y : f32
  } : <128 by 48>
  %masked = attn_tile.mask %modified at(%i, %i, %i, %i) step 2 of(%n, %n) nonnegative {
  ^bb0(%b: index, %h: index, %qi: index, %kj: index, %nq: index, %nk: index):
    %keep = arith.cmpi sle, %kj, %qi : index
    attn_tile.yield %keep : i1
  } : <128 by 48>
  %weights, %summed = attn_tile.softmax %masked, %begun : <128 by 48>, <48, 64, 32, natural>
  %out = attn_tile.accumulate %weights, %v[%i] rows(%n) into %summed skip_zero : <128 by 48>, memref<?x32xf32>, <48, 64, 32, natural>
  return %out : !attn_tile.state<48, 64, 32, natural>
}

// The ends of a tile; extents known at run time.
// CHECK-LABEL: func.func @ends(
// CHECK:         attn_tile.check %{{.+}} : <16, -1, -1, log2>
// CHECK:         attn_tile.restart %{{.+}} : <16, -1, -1, log2>
// CHECK:         attn_tile.softmax exact %{{.+}} : <64 by 16>, <16, -1, -1, log2>
// CHECK:         attn_tile.sink %{{.+}}, %{{.+}}[%{{.+}}] : <16, -1, -1, log2>, memref<?xf32>
// CHECK:         attn_tile.finish %{{.+}}, %{{.+}}[%{{.+}}] lse(%{{.+}} : memref<?xf32>) : <16, -1, -1, log2>, memref<?x?xbf16>
// CHECK:         attn_tile.finish %{{.+}}, %{{.+}}[%{{.+}}] : <16, -1, -1, log2>, memref<?x?xbf16>
// CHECK:         attn_tile.finish_partial %{{.+}}, %{{.+}}[%{{.+}}] rows(%{{.+}}) : <16, -1, -1, log2>, memref<?xf32>
func.func @ends(%state: !attn_tile.state<16, -1, -1, log2>, %second: !attn_tile.state<16, -1, -1, log2>,
                %third: !attn_tile.state<16, -1, -1, log2>, %tile: !attn_tile.tile<64 by 16>, %out: memref<?x?xbf16>,
                %floats: memref<?xf32>, %i: index) -> i1 {
  %lost = attn_tile.check %state : <16, -1, -1, log2>
  %again = attn_tile.restart %state : <16, -1, -1, log2>
  %weights, %summed = attn_tile.softmax exact %tile, %again : <64 by 16>, <16, -1, -1, log2>
  %sunk = attn_tile.sink %summed, %floats[%i] : <16, -1, -1, log2>, memref<?xf32>
  attn_tile.finish %sunk, %out[%i] lse(%floats : memref<?xf32>) : <16, -1, -1, log2>, memref<?x?xbf16>
  attn_tile.finish %second, %out[%i] : <16, -1, -1, log2>, memref<?x?xbf16>
  attn_tile.finish_partial %third, %floats[%i] rows(%i) : <16, -1, -1, log2>, memref<?xf32>
  return %lost : i1
}

// What threads that share memory do: tiles are fetched ahead.
// CHECK-LABEL: func.func @shared(
// CHECK:         %[[K:.+]] = attn_tile.buffer : <2 of 64 by 128, bf16>
// CHECK:         attn_tile.fetch %{{.+}}[%{{.+}}] rows(%{{.+}}) into %[[K]][%{{.+}}] : memref<?x128xbf16>, <2 of 64 by 128, bf16>
// CHECK-NEXT:    attn_tile.commit
// CHECK-NEXT:    attn_tile.await pending(1)
// CHECK-NEXT:    %[[S:.+]] = attn_tile.start queries(%{{.+}} : !attn_tile.buffer<1 of 32 by 128, bf16>) scale(%{{.+}}) -> <32, 128, 128, log2>
// CHECK-NEXT:    %[[T:.+]] = attn_tile.score %[[S]], %[[K]][%{{.+}}] rows(%{{.+}}) : <32, 128, 128, log2>, !attn_tile.buffer<2 of 64 by 128, bf16> -> <64 by 32>
// CHECK-NEXT:    attn_tile.clip %[[T]] rows(%{{.+}}) : <64 by 32>
func.func @shared(%m: memref<?x128xbf16>, %scale: f32, %i: index) -> !attn_tile.tile<64 by 32> {
  %q = attn_tile.buffer : <1 of 32 by 128, bf16>
  %k = attn_tile.buffer : <2 of 64 by 128, bf16>
  attn_tile.fetch %m[%i] rows(%i) into %k[%i] : memref<?x128xbf16>, <2 of 64 by 128, bf16>
  attn_tile.commit
  attn_tile.await pending(1)
  %s = attn_tile.start queries(%q : !attn_tile.buffer<1 of 32 by 128, bf16>) scale(%scale) -> <32, 128, 128, log2>
  %t = attn_tile.score %s, %k[%i] rows(%i) : <32, 128, 128, log2>, !attn_tile.buffer<2 of 64 by 128, bf16> -> <64 by 32>
  %c = attn_tile.clip %t rows(%i) : <64 by 32>
  return %c : !attn_tile.tile<64 by 32>
}

// A kernel with everything: a mask, the log-sum-exp, one captured tensor and the bitmap of its members.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, memref<?x?x?xf32>, memref<?x?xi32>, memref<?x?xi8>, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, memref<?x?x?xf32>, memref<?x?xi32>, memref<?x?xi8>, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @classify(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, i64, i64, i64) -> i32

// CHECK:       attn_tile.kernel @full task(@task) tail(@tail) classify(@classify) tables([1, 0, 1]) scratch([100, 10, 0]) config{
// CHECK-SAME:    has_mask = 1 : i64
attn_tile.kernel @full task(@task) tail(@tail) classify(@classify) tables([1, 0, 1]) scratch([100, 10, 0]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 1 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64}

// CHECK-LABEL: func.func @launch(
// CHECK:         attn_tile.launch @full(%arg0, %arg0, %arg0, %arg1) : (tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?xi32>) -> (tensor<?x?x?x64xf32>, tensor<?x?x?xf32>)
!t = tensor<?x?x?x64xf32>
func.func @launch(%q: !t, %ids: tensor<?x?xi32>) -> (!t, tensor<?x?x?xf32>) {
  %o, %lse = attn_tile.launch @full(%q, %q, %q, %ids) : (!t, !t, !t, tensor<?x?xi32>) -> (!t, tensor<?x?x?xf32>)
  return %o, %lse : !t, tensor<?x?x?xf32>
}

// Scores that lie in memory.
// CHECK-LABEL: func.func @given(
// CHECK:         %[[CLEARED:.+]] = attn_tile.clear %{{.+}} : <48, 0, 32, log2>
// CHECK-NEXT:    attn_tile.read %[[CLEARED]], %{{.+}}[%{{.+}}, %{{.+}}] rows(%{{.+}}) scale(%{{.+}}) : <48, 0, 32, log2>, memref<?x?xf16> -> <128 by 48>
// CHECK-NEXT:    attn_tile.start scale(%{{.+}}) -> <32, 0, 128, log2>
func.func @given(%scratch: memref<?xf32>, %scores: memref<?x?xf16>, %i: index, %n: index, %scale: f32) -> !attn_tile.state<48, 0, 32, log2> {
  %slot = attn_tile.slot %scratch[%i] dims(%n, %n) key_tile(128) : memref<?xf32> -> <48, 0, 32, log2>
  %cleared = attn_tile.clear %slot : <48, 0, 32, log2>
  %tile = attn_tile.read %cleared, %scores[%i, %i] rows(%n) scale(%scale) : <48, 0, 32, log2>, memref<?x?xf16> -> <128 by 48>
  %started = attn_tile.start scale(%scale) -> <32, 0, 128, log2>
  return %cleared : !attn_tile.state<48, 0, 32, log2>
}
