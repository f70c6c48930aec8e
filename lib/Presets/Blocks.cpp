//===- Blocks.cpp - Blocks of keys that queries choose ------------------------===//
#include "Systems.h"
#include "attn/Support/Errors.h"
#include <cmath>

namespace attn::presets {

/// Scores of the blocks of keys, whose means are `means`, for the blocks of queries.
static std::string scoreBlocks(const Settings &set, llvm::StringRef means) {
  // The first query of a causal block speaks for it, as later ones are not to be known.
  bool first = set.number("queries") == 1 || set.isOn("causal");
  std::string text = first ? "" : set.fill("  %qm = attn.block_means %q block($queries) : !t -> !t\n");
  Product p{first ? "q" : "qm",
            set.fill(first ? "b, h, u * $queries, d" : "b, h, u, d"),
            means.str(),
            "b, h, v, d",
            "b, h, u, v, d",
            "b, h, u, v",
            "!t",
            "!t",
            "!s"};
  return text + product("scores", p);
}

/// What compressed blocks weigh for the query heads that share a key head, added up. One head chooses by scores alone.
static std::string weighBlocks(const Settings &set) {
  std::string heads = set.fill("b, g * $group + r, u * $queries");
  Product p{"q", heads + ", d", "kc", "b, g, v, d", "b, g, r, u, v, d", "b, g, r, u, v", "!t", "!t", "!p"};
  Product sum{"products", "b, g, r, u, v", "z", heads, "b, g, u, v, r", "b, g, u, v", "!p", "!z", "!s"};
  std::string scale = std::to_string(1 / std::sqrt(double(set.number("head_dim"))));
  return product("products", p, set.fill("extents([-1, -1, $group, -1, -1, -1]) ")) +
         compute("scores", sum, "    %scale = arith.constant " + scale + R"( : f32
    %scaled = arith.mulf %x, %scale : f32
    %less = arith.subf %scaled, %y : f32
    %weight = math.exp %less : f32
    %sum = arith.addf %total, %weight : f32
    attn.result %sum : f32
)");
}

/// A mask of the pairs whose block `%table` has, and that are `more`; heads choose in groups.
static std::string chosenMask(const Settings &set, int64_t group) {
  std::string row = "%row", of = "%h";
  std::string text = R"(align(bottom_right) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keys = attn.num_keys
    %queries = attn.num_queries
    %earlier = arith.subi %keys, %queries : index
    %row = arith.subi %i, %earlier : index
)";
  if (set.number("queries") > 1) {
    text += set.fill("    %rows = arith.constant $queries : index\n    %u = arith.floordivsi %row, %rows : index\n");
    row = "%u";
  }
  if (group > 1) {
    text += "    %sharing = arith.constant " + std::to_string(group) +
            " : index\n    %g = arith.divui %h, %sharing : index\n";
    of = "%g";
  }
  text += set.fill(R"(    %block = arith.constant $block : index
    %of = arith.divui %j, %block : index
    %entry = tensor.extract %table[%b, $of, $row, %of] : !i
    %zero = arith.constant 0 : i32
    %chosen = arith.cmpi ne, %entry, %zero : i32
)",
                   {{"of", of}, {"row", row}});
  if (!set.isOn("causal"))
    return text + "    attn.yield %chosen : i1\n  }";
  return text + R"(    %past = attn.causal %i, %j
    %keep = arith.andi %chosen, %past : i1
    attn.yield %keep : i1
  })";
}

static Setting queriesSetting() {
  return Setting::number("queries", 1, 1,
                         "query rows that choose together: by the first of them where causal=on, else by their mean");
}

Preset moba() {
  return {"moba",
          "Lu et al., MoBA: Mixture of Block Attention for Long-Context LLMs (2025)",
          "learnable",
          "O(N (N / block + count block))",
          /*decodes=*/true,
          {Setting::number("block", 512, 1, "keys of a block, which its mean speaks for"),
           Setting::number("count", 3, 1, "blocks that a query attends to, its own among them"), queriesSetting(),
           causalSetting("on")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            return "!s = tensor<?x?x?x?xf32>      // [batch, heads, blocks of queries, blocks of keys]\n"
                   "!i = tensor<?x?x?x?xi32>\n\nfunc.func @moba(%q: !t, %k: !t, %v: !t) -> !t {\n" +
                   set.fill("  %means = attn.block_means %k block($block) : !t -> !t\n") + scoreBlocks(set, "means") +
                   set.fill(
                       "  %table = attn.top_blocks %scores of %q, %k count($count) queries($queries) block($block) "
                       "local(1)$causally : !s, !t, !t -> !i\n",
                       {{"causally", set.isOn("causal") ? " causal" : ""}}) +
                   "  %out = attn.attention %q, %k, %v " + chosenMask(set, 1) +
                   " : !t, !t, !t -> !t\n  return %out : !t\n}\n";
          }};
}

// Means stand for blocks twice: as keys and values of a first attention, and to be chosen by what weight they have in
// it.
static constexpr char kNSA[] =
    R"(!g = tensor<?x?x?x3x$dtype>        // [batch, heads, queries, branch]: compressed, chosen, window
!z = tensor<?x?x?xf32>
!s = tensor<?x?x?x?xf32>           // [batch, key heads, blocks of queries, blocks of keys]
!i = tensor<?x?x?x?xi32>
$types
func.func @nsa(%q: !t, %k: !t, %v: !t, %gates: !g) -> !t {
  %kc = attn.block_means %k block($block) : !t -> !t
  %vc = attn.block_means %v block($block) : !t -> !t
  %compressed, %z = attn.attention %q, %kc, %vc mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %two = arith.constant 2 : index
    %one = arith.constant 1 : index
    %block = arith.constant $block : index
    %keys = tensor.dim %k, %two : !t
    %queries = attn.num_queries
    %earlier = arith.subi %keys, %queries : index
    %position = arith.addi %i, %earlier : index
    %next = arith.addi %j, %one : index
    %end = arith.muli %next, %block : index
    %last = arith.subi %end, %one : index
    %seen = arith.cmpi sle, %last, %position : index
    attn.yield %seen : i1
  } : !t, !t, !t -> !t, !z
$scores  %table = attn.top_blocks %scores of %q, %k count($count) queries($queries) block($block) first($first) local($local) causal
    : !s, !t, !t -> !i
  %chosen = attn.attention %q, %k, %v $mask : !t, !t, !t -> !t
  %near = attn.attention %q, %k, %v align(bottom_right) mask(causal and window(left = $left)) : !t, !t, !t -> !t
  %out = attn.compute(%compressed, %chosen, %near, %gates, %gates, %gates)
    maps([affine_map<(b, h, n, d) -> (b, h, n, d)>, affine_map<(b, h, n, d) -> (b, h, n, d)>, affine_map<(b, h, n, d) -> (b, h, n, d)>,
          affine_map<(b, h, n, d) -> (b, h, n, 0)>, affine_map<(b, h, n, d) -> (b, h, n, 1)>, affine_map<(b, h, n, d) -> (b, h, n, 2)>,
          affine_map<(b, h, n, d) -> (b, h, n, d)>]) initial(0.0) {
  ^bb0(%x: f32, %y: f32, %w: f32, %gx: f32, %gy: f32, %gw: f32, %total: f32):
    %a = arith.mulf %x, %gx : f32
    %c = arith.mulf %y, %gy : f32
    %e = arith.mulf %w, %gw : f32
    %ac = arith.addf %a, %c : f32
    %sum = arith.addf %ac, %e : f32
    attn.result %sum : f32
  } : !t, !t, !t, !g, !g, !g -> !t
  return %out : !t
}
)";

Preset nsa() {
  return {"nsa",
          "Yuan et al., Native Sparse Attention (2025), blocks compressed by their means, one block size",
          "learnable",
          "O(N (N / block + count block + window))",
          /*decodes=*/true,
          {Setting::number("block", 64, 1, "keys of a block, compressed and chosen as one"),
           Setting::number("count", 16, 1, "blocks that a query chooses, those that it always takes among them"),
           Setting::number("first", 1, 0, "blocks at the start that are always taken"),
           Setting::number("local", 2, 1, "blocks that are always taken: a query's own and those before it"),
           Setting::number("window", 512, 1, "keys of the window, a query's own among them"),
           Setting::number("group", 1, 1, "query heads of a key head, which choose together"), queriesSetting()},
          [](const Settings &given) -> llvm::Expected<std::string> {
            Settings set = given;
            set.values["causal"] = "on";
            int64_t group = set.number("group");
            std::string types =
                group > 1 ? "!p = tensor<?x?x" + std::to_string(group) + "x?x?xf32>       // [.., query head, .., ..]\n"
                          : "";
            return set.fill(kNSA, {{"types", types},
                                   {"scores", group > 1 ? weighBlocks(set) : scoreBlocks(set, "kc")},
                                   {"mask", chosenMask(set, group)},
                                   {"left", std::to_string(set.number("window") - 1)}});
          }};
}

} // namespace attn::presets
