//===- ETC.cpp - Extended Transformer Construction --------------------------===//
#include "Systems.h"
#include <cmath>

namespace attn::presets {

/// The part of a score that the label of a pair gives: one number for each query and label, and a region that adds the
/// one of the pair's. `ids` holds labels by query and `place`, an index of the region.
static std::string labelled(const Settings &set, llvm::StringRef ids, llvm::StringRef place) {
  std::string scale = std::to_string(1 / std::sqrt(double(set.number("head_dim"))));
  std::string near = place == "%j" ? "" : set.fill(R"(    %radius = arith.constant $radius : index
    %distance = arith.subi %j, %i : index
    %place = arith.addi %distance, %radius : index
)");
  return set.fill(R"(score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
$near    %id = tensor.extract %$ids[%b, %i, $place] : !$ids
    %label = arith.index_cast %id : i32 to index
    %product = tensor.extract %labels[%b, %h, %i, %label] : !l
    %scale = arith.constant $scale : f32
    %scaled = arith.mulf %product, %scale : f32
    %sum = arith.addf %s, %scaled : f32
    attn.yield %sum : f32
  } )",
                  {{"near", near}, {"ids", ids.str()}, {"place", place.str()}, {"scale", scale}});
}

/// %labels: what a query's score with a key of each label has beside their product.
static std::string multiplyLabels() {
  return product("products", {"q", "b, h, n, d", "emb", "h, r, d", "b, h, n, r, d", "b, h, n, r", "!t", "!e", "!l"}) +
         compute("labels", {"products", "b, h, n, r", "bias", "h, r", "b, h, n, r", "b, h, n, r", "!l", "!b", "!l"},
                 "    %sum = arith.addf %x, %y : f32\n    attn.result %sum : f32\n");
}

/// A mask of the pairs for which `table`, of numbers by query and `place`, is not 0; of long tokens those within reach.
static std::string allowed(const Settings &set, llvm::StringRef table, bool near) {
  return set.fill(R"(mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
$place    %entry = tensor.extract %$table[%b, %i, %$at] : !$table
    %none = arith.constant 0 : i8
    %seen = arith.cmpi ne, %entry, %none : i8
$within    attn.yield %$keep : i1
  } )",
                  {{"table", table.str()},
                   {"at", near ? "place" : "j"},
                   {"place", near ? set.fill("    %radius = arith.constant $radius : index\n"
                                             "    %distance = arith.subi %j, %i : index\n"
                                             "    %place = arith.addi %distance, %radius : index\n")
                                  : ""},
                   {"within", near ? set.fill("    %near = attn.window %i, %j {left = $radius, right = $radius}\n"
                                              "    %keep = arith.andi %near, %seen : i1\n")
                                   : ""},
                   {"keep", near ? "keep" : "seen"}});
}

static constexpr char kETC[] = R"(!z = tensor<?x?x?xf32>
$types
func.func @etc_long(%q: !t, %k: !t, %v: !t, %kg: !t, %vg: !t$long_arguments) -> !t {
$multiply  %g, %z = attn.attention %q, %kg, %vg $to_global$l2g: !t, !t, !t -> !t, !z
  %out = attn.attention %q, %k, %v join(%g, %z : !t, !z) ${to_near}${reach}: !t, !t, !t -> !t
  return %out : !t
}

func.func @etc_global(%q: !t, %k: !t, %v: !t, %kg: !t, %vg: !t$global_arguments) -> !t {
$multiply  %g, %z = attn.attention %q, %kg, %vg $to_global$g2g: !t, !t, !t -> !t, !z
  %out = attn.attention %q, %k, %v join(%g, %z : !t, !z) $to_long$g2l: !t, !t, !t -> !t
  return %out : !t
}
)";

static constexpr char kTypes[] = R"(!e = tensor<?x?x${head_dim}x${dtype}> // [heads, labels, head_dim]
!b = tensor<?x?x${dtype}>    // [heads, labels]
!l = tensor<?x?x?x?xf32>
!near = tensor<?x?x${width}xi32> // [batch, long tokens, distance + radius]: labels
!global = tensor<?x?x?xi32> // [batch, queries, global tokens]: labels
!far = tensor<?x?x?xi32>   // [batch, global tokens, long tokens]: labels
)";

static constexpr char kTables[] =
    R"(!l2l = tensor<?x?x${width}xi8> // [batch, long tokens, distance + radius]: 0 where not seen
!l2g = tensor<?x?x?xi8>    // [batch, long tokens, global tokens]
!g2g = tensor<?x?x?xi8>    // [batch, global tokens, global tokens]
!g2l = tensor<?x?x?xi8>    // [batch, global tokens, long tokens]
)";

// Long tokens see a window and all global ones, in one softmax; global tokens see everything. Keys and values of each
// of the four pieces are projections of their own.
Preset etc() {
  return {
      "etc",
      "Ainslie et al., ETC (2020)",
      "fixed, memory",
      "O(N (radius + globals) + globals^2)",
      /*decodes=*/false,
      {Setting::number("radius", 84, 0, "long tokens seen to each side"),
       Setting::word("labels", {"off", "on"},
                     "a label for each pair, whose embedding the query meets as well: (q k + q emb + bias) / "
                     "sqrt(head_dim)"),
       Setting::word("masks", {"off", "on"},
                     "tables of who sees whom, for each of the four pieces: structure (a global token that sees its "
                     "own segment only), padding")},
      [](const Settings &set) -> llvm::Expected<std::string> {
        bool on = set.isOn("labels"), masked = set.isOn("masks");
        std::map<std::string, std::string> width = {{"width", std::to_string(2 * set.number("radius") + 1)}};
        std::string common = ", %emb: !e, %bias: !b";
        return set.fill(kETC,
                        {{"types", (on ? set.fill(kTypes, width) : "") + (masked ? set.fill(kTables, width) : "")},
                         {"long_arguments", (on ? common + ", %near: !near, %global: !global" : "") +
                                                (masked ? ", %l2l: !l2l, %l2g: !l2g" : "")},
                         {"global_arguments", (on ? common + ", %global: !global, %far: !far" : "") +
                                                  (masked ? ", %g2g: !g2g, %g2l: !g2l" : "")},
                         {"reach", masked ? allowed(set, "l2l", /*near=*/true)
                                          : set.fill("mask(window(left = $radius, right = $radius)) ")},
                         {"l2g", masked ? allowed(set, "l2g", /*near=*/false) : ""},
                         {"g2g", masked ? allowed(set, "g2g", /*near=*/false) : ""},
                         {"g2l", masked ? allowed(set, "g2l", /*near=*/false) : ""},
                         {"multiply", on ? multiplyLabels() : ""},
                         {"to_global", on ? labelled(set, "global", "%j") : ""},
                         {"to_near", on ? labelled(set, "near", "%place") : ""},
                         {"to_long", on ? labelled(set, "far", "%j") : ""}});
      },
      /*whyNotCausal=*/
      "global tokens read all long tokens, later ones too, and every long token reads them in the next layer"};
}

} // namespace attn::presets
