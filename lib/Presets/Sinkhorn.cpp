//===- Sinkhorn.cpp - Sparse Sinkhorn Transformer ---------------------------===//
#include "Systems.h"
#include "attn/Support/Errors.h"
#include <cmath>

namespace attn::presets {

static constexpr char kSinkhorn[] = R"(!p = tensor<?x?x?x?xf32>           // [batch, heads, blocks, blocks]
$types
func.func @sinkhorn(%q: !t, %k: !t, %v: !t$argument) -> !t {
$means  %p = attn.sinkhorn %logits iterations($iterations)$causally : !p -> !p
  %ks = attn.mix_blocks %p, %k block($block) : !p, !t -> !t
  %vs = attn.mix_blocks %p, %v block($block) : !p, !t -> !t
  %$sorted = attn.attention %q, %ks, %vs mask($seen) : !t, !t, !t -> $sorted_types
$own  return %out : !t
}
)";

static constexpr char kConcat[] =
    R"(  %out = attn.attention %q, %k, %v join(%m, %z : !t, !z) mask(${and}same_block(size = $block)) : !t, !t, !t -> !t
)";

static constexpr char kSum[] =
    R"(  %n = attn.attention %q, %k, %v mask(${and}same_block(size = $block)) : !t, !t, !t -> !t
  %out = attn.compute(%m, %n) maps([affine_map<(b, h, n, d) -> (b, h, n, d)>, affine_map<(b, h, n, d) -> (b, h, n, d)>,
                                    affine_map<(b, h, n, d) -> (b, h, n, d)>]) initial(0.0) {
  ^bb0(%x: f32, %y: f32, %total: f32):
    %xy = arith.addf %x, %y : f32
    attn.result %xy : f32
  } : !t, !t -> !t
)";

static std::string meanOf(const Settings &set, llvm::StringRef name) {
  return set.fill(R"(  %${name}m = attn.compute(%$name) maps([affine_map<(b, h, u, d, t) -> (b, h, u * $block + t, d)>,
                              affine_map<(b, h, u, d, t) -> (b, h, u, d)>]) initial(0.0) extents([-1, -1, -1, -1, $block]) {
  ^bb0(%x: f32, %total: f32):
    %count = arith.constant $block.0 : f32
    %part = arith.divf %x, %count : f32
    %sum = arith.addf %total, %part : f32
    attn.result %sum : f32
  } : !t -> !m
)",
                  {{"name", name.str()}});
}

/// Logits are products of the means of two blocks; N has to be a multiple of the block.
static std::string logitsOfMeans(const Settings &set) {
  return meanOf(set, "q") + meanOf(set, "k") +
         set.fill(R"(  %logits = attn.compute(%qm, %km) maps([affine_map<(b, h, u, v, d) -> (b, h, u, d)>,
                                      affine_map<(b, h, u, v, d) -> (b, h, v, d)>,
                                      affine_map<(b, h, u, v, d) -> (b, h, u, v)>]) initial(0.0) {
  ^bb0(%x: f32, %y: f32, %total: f32):
    %scale = arith.constant $scale : f32
    %scaled = arith.mulf %x, %scale : f32
    %xy = arith.mulf %scaled, %y : f32
    %sum = arith.addf %total, %xy : f32
    attn.result %sum : f32
  } : !m, !m -> !p
)",
                  {{"scale", std::to_string(1 / std::sqrt(double(set.number("head_dim"))))}});
}

static std::string write(const Settings &set) {
  bool causal = set.isOn("causal"), means = set.is("logits", "means"), concat = set.is("combine", "concat");
  int64_t cut = set.number("sortcut");
  std::string types = concat ? "!z = tensor<?x?x?xf32>             // [batch, heads, tokens]\n" : "";
  if (means)
    types += set.fill("!m = tensor<?x?x?x${head_dim}xf32>     // [batch, heads, blocks, head_dim]\n");
  // Of a causal order the first block gets nothing: no key, rather than keys of zeros.
  std::string seen = cut ? "prefix(length = " + std::to_string(cut * set.number("block")) + ")"
                         : set.fill(causal ? "same_block(size = $block) and not prefix(length = $block)"
                                           : "same_block(size = $block)");
  std::string own =
      set.is("combine", "sorted") ? "" : set.fill(concat ? kConcat : kSum, {{"and", causalAnd(set).str()}});
  return set.fill(kSinkhorn, {{"types", types},
                              {"argument", means ? "" : ", %logits: !p"},
                              {"means", means ? logitsOfMeans(set) : ""},
                              {"causally", causal ? " causal" : ""},
                              {"sorted", concat                     ? "m, %z"
                                         : set.is("combine", "sum") ? "m"
                                                                    : "out"},
                              {"sorted_types", concat ? "!t, !z" : "!t"},
                              {"seen", seen},
                              {"own", own}});
}

Preset sinkhorn() {
  return {"sinkhorn",
          "Tay et al., Sparse Sinkhorn Attention (2020)",
          "learnable",
          "O(N block + (N / block)^2)",
          /*decodes=*/true,
          {Setting::number("block", 64, 1, "tokens of a block"),
           Setting::number("iterations", 8, 1, "row and column normalisations of the sort logits"),
           Setting::word("combine", {"concat", "sum", "sorted"},
                         "one softmax over the sorted and the own block; two, added up; the sorted block only"),
           Setting::number("sortcut", 0, 0, "every query sees this many first sorted blocks; 0: its own sorted block"),
           Setting::word(
               "logits", {"given", "means"},
               "sort logits as an argument, noise and temperature included; from block means, N a multiple of block"),
           causalSetting()},
          [](const Settings &set) -> llvm::Expected<std::string> {
            if (set.isOn("causal") && set.number("sortcut") > 0)
              return makeError(
                  "sinkhorn: sortcut shows every query the same blocks, also later ones; needs causal=off");
            if (set.isOn("causal") && set.is("logits", "means"))
              return makeError("sinkhorn: the mean of a block has its later tokens; causal=on needs logits=given");
            return write(set);
          }};
}

} // namespace attn::presets
