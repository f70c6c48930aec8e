!t = tensor<?x?x?x64xf32>
func.func private @keep(index, index) -> i1

func.func @illegal(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = func.call @keep(%i, %j) : (index, index) -> i1
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  return %out : !t
}
