!t = tensor<?x?x?x64xf32>
func.func @given(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %twice = arith.addf %s, %s : f32
    attn.yield %twice : f32
  } schedule(#attn.schedule<query_tile = 24, key_tile = 64, tail_tile = 8>) : !t, !t, !t -> !t
  return %out : !t
}
