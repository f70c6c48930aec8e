// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Every numbered constraint of AttnTileDialect.td and AttnTileOps.td.

// T1: a tile without keys.
// expected-error@+1 {{a tile of 0 keys by 48 queries holds nothing; give both at least 1 (T1)}}
func.func private @f(!attn_tile.tile<0 by 48>)

// -----

// T2: a state without queries.
// expected-error@+1 {{a state of 0 queries holds nothing; give it at least 1 (T2)}}
func.func private @f(!attn_tile.state<0, 64, 64, log2>)

// -----

// T2: an extent that is none.
// expected-error@+1 {{valueDim is -2; it must be at least 1, or -1 where it is known at run time (T2)}}
func.func private @f(!attn_tile.state<48, 64, -2, log2>)

// -----

// T3: the task is missing.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
// expected-error@+1 {{its task @task is no function of this module; define it (T3)}}
attn_tile.kernel @k task(@task) tail(@tail) tables([]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 0 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64}

// -----

// T3: the task has another type.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m)
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
// expected-error@+1 {{its task @task has type '(memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>) -> ()'; a task takes the memrefs of query, key, value, output and more tensors, 17 indices (the fields of AttnTask), memref<?xi64>, memref<?x3xi32> and two memref<?xf32>, and returns nothing (T3)}}
attn_tile.kernel @k task(@task) tail(@tail) tables([]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 0 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64}

// -----

// T3: task and tail differ.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, memref<?xf32>, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
// expected-error@+1 {{its tail @tail has type}}
attn_tile.kernel @k task(@task) tail(@tail) tables([]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 0 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64}

// -----

// T4: the interval reading is missing.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
// expected-error@+1 {{its classify @classify is no function of this module; define it (T4)}}
attn_tile.kernel @k task(@task) tail(@tail) classify(@classify) tables([]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 1 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64}

// -----

// T4: the interval reading has another type.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
// expected-error@+1 {{its classify @task has type}}
attn_tile.kernel @k task(@task) tail(@tail) classify(@task) tables([]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 1 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64}

// -----

// T4: a mask without an interval reading.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
// expected-error@+1 {{has_mask is 1, but there is no classify function; a mask and its interval reading belong together (T4)}}
attn_tile.kernel @k task(@task) tail(@tail) tables([]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 1 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64}

// -----

// T4: an interval reading without a mask.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @classify(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, i64, i64, i64) -> i32
// expected-error@+1 {{has_mask is 0, but there is a classify function; a mask and its interval reading belong together (T4)}}
attn_tile.kernel @k task(@task) tail(@tail) classify(@classify) tables([]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 0 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64}

// -----

// T5: a number that nobody knows.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
// expected-error@+1 {{its config has 'query_tiles', which no kernel record knows; the numbers are listed in attn/Runtime/Fields.def (T5)}}
attn_tile.kernel @k task(@task) tail(@tail) tables([]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 0 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64, query_tiles = 48 : i64}

// -----

// T5: a number of another type.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
// expected-error@+1 {{'split_keys' of its config is 1 : i32; write it as an i64 (T5)}}
attn_tile.kernel @k task(@task) tail(@tail) tables([]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 0 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, split_tasks = 1 : i64,
    tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i32}

// -----

// T5: a number too few.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
// expected-error@+1 {{its config lacks 'tail_limit'; the runtime cannot run it without (T5)}}
attn_tile.kernel @k task(@task) tail(@tail) tables([]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 0 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_tile = 16 : i64, warps = 0 : i64}

// -----

// T6: half a table.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
// expected-error@+1 {{its tables must be triples of kind (0 range, 1 members), captured operand and dimension (T6)}}
attn_tile.kernel @k task(@task) tail(@tail) tables([0, 0]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 0 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64}

// -----

// T6: a kind that nobody knows.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
// expected-error@+1 {{its tables must be triples of kind (0 range, 1 members), captured operand and dimension (T6)}}
attn_tile.kernel @k task(@task) tail(@tail) tables([2, 0, 0]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 0 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64}

// -----

// T7: two numbers.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
// expected-error@+1 {{its scratch must be three numbers from 0 up: base, per head_dim and per value dimension (T7)}}
attn_tile.kernel @k task(@task) tail(@tail) tables([]) scratch([1, 2]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 0 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64}

// -----

// T7: less than nothing.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
// expected-error@+1 {{its scratch must be three numbers from 0 up: base, per head_dim and per value dimension (T7)}}
attn_tile.kernel @k task(@task) tail(@tail) tables([]) scratch([1, 2, -3]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 0 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64}

// -----

// T8: no such kernel.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func @f(%a0: tensor<?x?x?x64xf32>, %a1: tensor<?x?x?x64xf32>, %a2: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{@k is no attn_tile.kernel of this module; define it (T8)}}
  %o = attn_tile.launch @k(%a0, %a1, %a2) : (tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32>
  return
}

// -----

// T8: a tensor too few.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
attn_tile.kernel @k task(@task) tail(@tail) tables([]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 0 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64}
func.func @f(%a0: tensor<?x?x?x64xf32>, %a1: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{has 2 inputs and 1 outputs, but the task of @k takes 4 tensors, 0 of them bitmaps; pass query, key, value and what is captured (T8)}}
  %o = attn_tile.launch @k(%a0, %a1) : (tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32>
  return
}

// -----

// T8: another element type.
!m = memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func private @task(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
func.func private @tail(!m, !m, !m, !m, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index, index,
    memref<?xi64>, memref<?x3xi32>, memref<?xf32>, memref<?xf32>)
attn_tile.kernel @k task(@task) tail(@tail) tables([]) config{align = 0 : i64, depends_batch = 0 : i64, depends_head = 0 : i64, group_tiles = 1 : i64,
    has_mask = 0 : i64, key_granule = 1 : i64, key_tile = 128 : i64, natural_partials = 0 : i64, pack = 1 : i64,
    query_tile = 48 : i64, reindex = 0 : i64, reindex_size = 1 : i64, searched = 0 : i64, shared_bytes = 0 : i64, split_keys = 1 : i64,
    split_tasks = 1 : i64, tail_limit = 33 : i64, tail_tile = 16 : i64, warps = 0 : i64}
func.func @f(%a0: tensor<?x?x?x64xf32>, %a1: tensor<?x?x?x64xf32>, %a2: tensor<?x?x?x64xf16>) {
  // expected-error@+1 {{'tensor<?x?x?x64xf16>' cannot be 'memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>', which the task of @k takes in its place; pass query, key, value and what is captured, in this order (T8)}}
  %o = attn_tile.launch @k(%a0, %a1, %a2) : (tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf32>
  return
}

// -----

// T9: a tensor of all heads.
func.func @f(%s: !attn_tile.state<48, 64, 32, log2>, %k: memref<?x?x64xf32>, %i: index) {
  // expected-error@+1 {{key must be a matrix, memref<rows x columns>, not 'memref<?x?x64xf32>'; take a subview of one batch and head (T9)}}
  %t = attn_tile.score %s, %k[%i] rows(%i) : <48, 64, 32, log2>, memref<?x?x64xf32> -> <128 by 48>
  return
}

// -----

// T9: element type.
func.func @f(%s: !attn_tile.state<48, 64, 32, log2>, %q: memref<?x64xf64>, %k: memref<?x64xf32>, %i: index, %x: f32) {
  // expected-error@+1 {{query has elements of type 'f64'; use f32, f16 or bf16 (T9)}}
  %t = attn_tile.begin %s, %q[%i], %k[%i] scale(%x) : <48, 64, 32, log2>, memref<?x64xf64>, memref<?x64xf32>
  return
}

// -----

// T10: head_dim of the key.
func.func @f(%s: !attn_tile.state<48, 64, 32, log2>, %q: memref<?x64xf32>, %k: memref<?x32xf32>, %i: index, %x: f32) {
  // expected-error@+1 {{key 'memref<?x32xf32>' has 32 columns, but the state says 64; make the extents agree (T10)}}
  %t = attn_tile.begin %s, %q[%i], %k[%i] scale(%x) : <48, 64, 32, log2>, memref<?x64xf32>, memref<?x32xf32>
  return
}

// -----

// T10: a value dimension known at run time only.
func.func @f(%s: !attn_tile.state<48, 64, 32, log2>, %w: !attn_tile.tile<128 by 48>, %v: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{value 'memref<?x?xf32>' has columns known at run time, but the state says 32; make the extents agree (T10)}}
  %t = attn_tile.accumulate %w, %v[%i] rows(%i) into %s : <128 by 48>, memref<?x?xf32>, <48, 64, 32, log2>
  return
}

// -----

// T10: a value dimension known already.
func.func @f(%s: !attn_tile.state<48, 64, -1, log2>, %o: memref<?x32xf32>, %i: index) {
  // expected-error@+1 {{output 'memref<?x32xf32>' has 32 columns, but the state says that they are known at run time (-1); make the extents agree (T10)}}
  attn_tile.finish %s, %o[%i] : <48, 64, -1, log2>, memref<?x32xf32>
  return
}

// -----

// T11: a workspace of another type.
func.func @f(%m: memref<?xi8>, %i: index) {
  // expected-error@+1 {{workspace must be a memref of rank 1 of f32, not 'memref<?xi8>' (T11)}}
  %t = attn_tile.slot %m[%i] dims(%i, %i) key_tile(128) : memref<?xi8> -> <48, 64, 32, log2>
  return
}

// -----

// T11: a log-sum-exp of two dimensions.
func.func @f(%s: !attn_tile.state<48, 64, 32, log2>, %o: memref<?x32xf32>, %l: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{lse must be a memref of rank 1 of f32, not 'memref<?x?xf32>' (T11)}}
  attn_tile.finish %s, %o[%i] lse(%l : memref<?x?xf32>) : <48, 64, 32, log2>, memref<?x32xf32>
  return
}

// -----

// T11: partial results in another type.
func.func @f(%s: !attn_tile.state<48, 64, 32, log2>, %p: memref<?xf16>, %i: index) {
  // expected-error@+1 {{partials must be a memref of rank 1 of f32, not 'memref<?xf16>' (T11)}}
  attn_tile.finish_partial %s, %p[%i] rows(%i) : <48, 64, 32, log2>, memref<?xf16>
  return
}

// -----

// T12: scores of another width.
func.func @f(%s: !attn_tile.state<48, 64, 32, log2>, %k: memref<?x64xf32>, %i: index) {
  // expected-error@+1 {{tile and state differ in queries: 16 and 48; use tiles of the state's width (T12)}}
  %t = attn_tile.score %s, %k[%i] rows(%i) : <48, 64, 32, log2>, memref<?x64xf32> -> <128 by 16>
  return
}

// -----

// T12: a softmax of another width.
func.func @f(%s: !attn_tile.state<48, 64, 32, log2>, %t: !attn_tile.tile<128 by 16>) {
  // expected-error@+1 {{tile and state differ in queries: 16 and 48; use tiles of the state's width (T12)}}
  %w, %n = attn_tile.softmax %t, %s : <128 by 16>, <48, 64, 32, log2>
  return
}

// -----

// T12: weights of another width.
func.func @f(%s: !attn_tile.state<48, 64, 32, log2>, %w: !attn_tile.tile<128 by 16>, %v: memref<?x32xf32>, %i: index) {
  // expected-error@+1 {{tile and state differ in queries: 16 and 48; use tiles of the state's width (T12)}}
  %n = attn_tile.accumulate %w, %v[%i] rows(%i) into %s : <128 by 16>, memref<?x32xf32>, <48, 64, 32, log2>
  return
}

// -----

// T13: tiles of no keys.
func.func @f(%m: memref<?xf32>, %i: index) {
  // expected-error@+1 {{key_tile is 0; it must be at least 1 (T13)}}
  %t = attn_tile.slot %m[%i] dims(%i, %i) key_tile(0) : memref<?xf32> -> <48, 64, 32, log2>
  return
}

// -----

// T11: a log-sum-exp of one head for an output of several.
func.func @f(%s: !attn_tile.state<48, 64, 32, log2>, %o: memref<4x?x32xf32>, %l: memref<?xf32>, %i: index) {
  // expected-error@+1 {{lse must be a memref of rank 2 of f32, not 'memref<?xf32>' (T11)}}
  attn_tile.finish %s, %o[%i] lse(%l : memref<?xf32>) : <48, 64, 32, log2>, memref<4x?x32xf32>
  return
}

// -----

// T13: rows on one position.
func.func @f(%t: !attn_tile.tile<128 by 48>, %i: index) {
  // expected-error@+1 {{step is 0; it must be at least 1 (T13)}}
  %r = attn_tile.mask %t at(%i, %i, %i, %i) step 0 of(%i, %i) {
  ^bb0(%b: index, %h: index, %q: index, %k: index, %n: index, %m: index):
    %c = arith.constant true
    attn_tile.yield %c : i1
  } : <128 by 48>
  return
}

// -----

// T14: a mask region with a score.
func.func @f(%t: !attn_tile.tile<128 by 48>, %i: index) {
  // expected-error@+1 {{its region must take ('index', 'index', 'index', 'index', 'index', 'index'), not ('f32', 'index', 'index', 'index', 'index', 'index', 'index') (T14)}}
  %r = attn_tile.mask %t at(%i, %i, %i, %i) step 1 of(%i, %i) {
  ^bb0(%s: f32, %b: index, %h: index, %q: index, %k: index, %n: index, %m: index):
    %c = arith.constant true
    attn_tile.yield %c : i1
  } : <128 by 48>
  return
}

// -----

// T14: a score region without a score.
func.func @f(%t: !attn_tile.tile<128 by 48>, %i: index) {
  // expected-error@+1 {{its region must take ('f32', 'index', 'index', 'index', 'index', 'index', 'index'), not ('index', 'index', 'index', 'index', 'index', 'index') (T14)}}
  %r = attn_tile.modify %t at(%i, %i, %i, %i) step 1 of(%i, %i) {
  ^bb0(%b: index, %h: index, %q: index, %k: index, %n: index, %m: index):
    %c = arith.constant 1.0 : f32
    attn_tile.yield %c : f32
  } : <128 by 48>
  return
}

// -----

// T15: a mask region that yields a number.
func.func @f(%t: !attn_tile.tile<128 by 48>, %i: index) {
  %r = attn_tile.mask %t at(%i, %i, %i, %i) step 1 of(%i, %i) {
  ^bb0(%b: index, %h: index, %q: index, %k: index, %n: index, %m: index):
    // expected-error@+1 {{must yield 'i1' from the region of attn_tile.mask, not 'index' (T15)}}
    attn_tile.yield %k : index
  } : <128 by 48>
  return
}

// -----

// T15: a region that ends otherwise.
func.func @f(%t: !attn_tile.tile<128 by 48>, %i: index) {
  %r = attn_tile.mask %t at(%i, %i, %i, %i) step 1 of(%i, %i) {
  ^bb0(%b: index, %h: index, %q: index, %k: index, %n: index, %m: index):
    // expected-error@+1 {{cannot end the region of attn_tile.mask; end it with attn_tile.yield (T15)}}
    llvm.unreachable
  } : <128 by 48>
  return
}

// -----

// T16: an op that no target has a rule for.
func.func @f(%t: !attn_tile.tile<128 by 48>, %i: index) {
  %r = attn_tile.mask %t at(%i, %i, %i, %i) step 1 of(%i, %i) {
  ^bb0(%b: index, %h: index, %q: index, %k: index, %n: index, %m: index):
    // expected-error@+1 {{cannot stand in the region of attn_tile.mask; allowed are: arith and math ops on scalars, memref.load and memref.dim (T16)}}
    %c = index.cmp sle(%k, %q)
    attn_tile.yield %c : i1
  } : <128 by 48>
  return
}

// -----

// T17: a score region between products that are exponents of a power of two.
func.func @f(%s: !attn_tile.state<48, 64, 32, log2>, %key: memref<?x64xf32>, %i: index) {
  %t = attn_tile.score %s, %key[%i] rows(%i) : <48, 64, 32, log2>, memref<?x64xf32> -> <128 by 48>
  // expected-error@+1 {{its scores are in the unit of '!attn_tile.state<48, 64, 32, log2>', but a score region speaks of natural units; make the states of this task natural, and leave log2 e out of the scale (T17)}}
  %r = attn_tile.modify %t at(%i, %i, %i, %i) step 1 of(%i, %i) {
  ^bb0(%x: f32, %b: index, %h: index, %q: index, %k: index, %n: index, %m: index):
    attn_tile.yield %x : f32
  } : <128 by 48>
  return
}

// -----

// T18: a buffer of nothing.
// expected-error@+1 {{a buffer of 0 slots of 64 by 128 elements holds nothing; give each at least 1 (T18)}}
func.func private @f(!attn_tile.buffer<0 of 64 by 128, bf16>)

// -----

// T18: a buffer of integers.
// expected-error@+1 {{a buffer cannot hold elements of type 'i8'; use f32, f16 or bf16 (T18)}}
func.func private @f(!attn_tile.buffer<2 of 64 by 128, i8>)

// -----

// T19: fewer keys in the slot than in the tile.
func.func @f(%s: !attn_tile.state<64, 128, 128, log2>, %k: !attn_tile.buffer<2 of 32 by 128, bf16>, %i: index) {
  // expected-error@+1 {{key is of type '!attn_tile.buffer<2 of 32 by 128, bf16>', but a slot of 64 by 128 elements is needed here; make the buffer agree with tile and state (T19)}}
  %t = attn_tile.score %s, %k[%i] rows(%i) : <64, 128, 128, log2>, !attn_tile.buffer<2 of 32 by 128, bf16> -> <64 by 64>
  return
}

// -----

// T20: a fetch that would have to convert.
func.func @f(%m: memref<?x128xf32>, %k: !attn_tile.buffer<2 of 32 by 128, bf16>, %i: index) {
  // expected-error@+1 {{source has elements of type 'f32', the buffer of type 'bf16'; use one type (T20)}}
  attn_tile.fetch %m[%i] rows(%i) into %k[%i] : memref<?x128xf32>, <2 of 32 by 128, bf16>
  return
}

// -----

// T21: finished behind an update.
func.func @f(%m: memref<?x64xf32>, %w: memref<?xf32>, %i: index, %scale: f32) {
  %slot = attn_tile.slot %w[%i] dims(%i, %i) key_tile(64) : memref<?xf32> -> <16, 64, 64, log2>
  %begun = attn_tile.begin %slot, %m[%i], %m[%i] scale(%scale) : <16, 64, 64, log2>, memref<?x64xf32>, memref<?x64xf32>
  // expected-note@+1 {{the other op}}
  %again = attn_tile.restart %begun : <16, 64, 64, log2>
  // expected-error@+1 {{uses a state that another op has updated or finished; use the result of that op (T21)}}
  attn_tile.finish %begun, %m[%i] : <16, 64, 64, log2>, memref<?x64xf32>
  return
}

// -----

// T21: read behind an update.
func.func @f(%s: !attn_tile.state<16, 64, 64, log2>, %k: memref<?x64xf32>, %tile: !attn_tile.tile<64 by 16>, %i: index) {
  // expected-note@+1 {{the other op}}
  %weights, %summed = attn_tile.softmax %tile, %s : <64 by 16>, <16, 64, 64, log2>
  // expected-error@+1 {{uses a state that another op has updated or finished; use the result of that op (T21)}}
  %scores = attn_tile.score %s, %k[%i] rows(%i) : <16, 64, 64, log2>, memref<?x64xf32> -> <64 by 16>
  return
}

// -----

// T21: behind a branch that may have updated it.
func.func @f(%s: !attn_tile.state<16, 64, 64, log2>, %out: memref<?x64xf32>, %i: index, %c: i1) {
  %r = scf.if %c -> !attn_tile.state<16, 64, 64, log2> {
    %again = attn_tile.restart %s : <16, 64, 64, log2>
    scf.yield %again : !attn_tile.state<16, 64, 64, log2>
  } else {
    // expected-note@+1 {{the other op}}
    scf.yield %s : !attn_tile.state<16, 64, 64, log2>
  }
  // expected-error@+1 {{uses a state that another op has updated or finished; use the result of that op (T21)}}
  attn_tile.finish %s, %out[%i] : <16, 64, 64, log2>, memref<?x64xf32>
  return
}

// -----

// T21: taken by a loop.
func.func @f(%s: !attn_tile.state<16, 64, 64, log2>, %out: memref<?x64xf32>, %i: index) {
  // expected-note@+1 {{the other op}}
  %r = scf.for %n = %i to %i step %i iter_args(%t = %s) -> !attn_tile.state<16, 64, 64, log2> {
    scf.yield %t : !attn_tile.state<16, 64, 64, log2>
  }
  // expected-error@+1 {{uses a state that another op has updated or finished; use the result of that op (T21)}}
  attn_tile.finish %s, %out[%i] : <16, 64, 64, log2>, memref<?x64xf32>
  return
}

// -----

// T21: once in every pass of a loop.
func.func @f(%s: !attn_tile.state<16, 64, 64, log2>, %out: memref<?x64xf32>, %i: index) {
  scf.for %n = %i to %i step %i {
    // expected-error@+1 {{updates, in a loop, a state from outside it; carry the state through the loop (T21)}}
    attn_tile.finish %s, %out[%n] : <16, 64, 64, log2>, memref<?x64xf32>
  }
  return
}

// -----

// T21 allows: read before the update, and one update on either path.
func.func @f(%s: !attn_tile.state<16, 64, 64, log2>, %out: memref<?x64xf32>, %floats: memref<?xf32>, %i: index) {
  %lost = attn_tile.check %s : <16, 64, 64, log2>
  scf.if %lost {
    attn_tile.finish_partial %s, %floats[%i] rows(%i) : <16, 64, 64, log2>, memref<?xf32>
  } else {
    attn_tile.finish %s, %out[%i] : <16, 64, 64, log2>, memref<?x64xf32>
  }
  return
}

// -----

// T24: a state without a sum.
func.func @f(%s: !attn_tile.state<16, 64, 64, sigmoid>, %logits: memref<?xf32>, %h: index) {
  // expected-error@+1 {{its state '!attn_tile.state<16, 64, 64, sigmoid>' has no sum of weights to add to (T24)}}
  %r = attn_tile.sink %s, %logits[%h] : <16, 64, 64, sigmoid>, memref<?xf32>
  return
}

// -----

// T24: logits.
func.func @f(%s: !attn_tile.state<16, 64, 64, log2>, %logits: memref<?xf16>, %h: index) {
  // expected-error@+1 {{logits must be a memref of rank 1 of f32, not 'memref<?xf16>' (T24)}}
  %r = attn_tile.sink %s, %logits[%h] : <16, 64, 64, log2>, memref<?xf16>
  return
}

// -----

// T25: rank of the table.
func.func @f(%t: !attn_tile.tile<16 by 16>, %s: !attn_tile.state<16, 64, 64, log2>, %table: memref<?x64xf32>, %i: index, %scale: f32) {
  // expected-error@+1 {{table must be a memref of rank 3 of f32, f16 or bf16, not 'memref<?x64xf32>' (T25)}}
  %r = attn_tile.relative %t, %s, %table[%i, %i] step 1 scale(%scale) : <16 by 16>, <16, 64, 64, log2>, memref<?x64xf32>
  return
}

// -----

// T26: heads of scores.
func.func @f(%s: !attn_tile.state<16, 0, 64, log2>, %scores: memref<?x?x?xf32>, %i: index, %scale: f32) {
  // expected-error@+1 {{scores must be a memref of rank 2, or 3 with a static number of heads, of f32, f16 or bf16, not 'memref<?x?x?xf32>' (T26)}}
  %t = attn_tile.read %s, %scores[%i, %i] rows(%i) scale(%scale) : <16, 0, 64, log2>, memref<?x?x?xf32> -> <16 by 16>
  return
}

// -----

// T19: a state of queries without any.
func.func @f(%scale: f32) {
  // expected-error@+1 {{has no queries, but its state has some; make both agree (T19)}}
  %s = attn_tile.start scale(%scale) -> <16, 64, 64, log2>
  return
}
