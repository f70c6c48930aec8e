// A mask of one's own: what `documents.mlir` says by name, spelt out over positions and the captured ids.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]
!i = tensor<?x?xi32>      // [batch, tokens]

func.func @region(%q: !t, %k: !t, %v: !t, %doc: !i) -> !t {
  %out = attn.attention %q, %k, %v mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %di = tensor.extract %doc[%b, %i] : !i
    %dj = tensor.extract %doc[%b, %j] : !i
    %same = arith.cmpi eq, %di, %dj : i32
    %past = arith.cmpi sle, %j, %i : index
    %keep = arith.andi %same, %past : i1
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  return %out : !t
}
