!t = tensor<?x?x?x64xf32>
func.func @region(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %past = arith.cmpi sle, %j, %i : index
    attn.yield %past : i1
  } : !t, !t, !t -> !t
  return %out : !t
}
