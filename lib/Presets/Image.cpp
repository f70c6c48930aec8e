//===- Image.cpp - Image Transformer ----------------------------------------===//
#include "Systems.h"

namespace attn::presets {

static constexpr char kSource[] = "Parmar et al., Image Transformer (2018)";

Preset image1D() {
  return {"image-1d",
          std::string(kSource) + ": 1-D local attention",
          "fixed",
          "O(N (query + memory))",
          /*decodes=*/true,
          {Setting::number("query", 256, 1, "tokens of a query block"),
           Setting::number("memory", 256, 0, "keys before the query block that it sees"),
           Setting::number("after", 0, 0, "keys behind the query block that it sees; needs causal=off"),
           causalSetting("on")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            return attention("image_1d",
                             set.fill("mask(${causally}local_blocks(size = $query, before = $memory, after = $after))",
                                      {{"causally", causalAnd(set).str()}}));
          }};
}

// Generation runs over the blocks in raster order and inside a block in raster order. So a query sees all of the flange
// above and to the left of its block, nothing to the right of it, and of its own block what comes before itself.
Preset image2D() {
  return {"image-2d",
          std::string(kSource) + ": 2-D local attention, causal in the order of blocks",
          "fixed",
          "O(N (rows + flange_rows) (columns + 2 flange_columns))",
          /*decodes=*/true,
          {Setting::number("width", 64, 1, "columns of the image, whose tokens lie in raster order"),
           Setting::number("rows", 8, 1, "rows of a query block"), Setting::number("columns", 16, 1, "columns of one"),
           Setting::number("flange_rows", 4, 0, "rows above the query block that it sees"),
           Setting::number("flange_columns", 8, 0, "columns beside the query block that it sees")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            return attention("image_2d", set.fill(R"(mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %width = arith.constant $width : index
    %rows = arith.constant $rows : index
    %columns = arith.constant $columns : index
    %near = attn.local_blocks_2d %i, %j {width = $width, block = array<i64: $rows, $columns>,
                                         flange = array<i64: $flange_rows, $flange_columns>}
    %ri = arith.divui %i, %width : index
    %rj = arith.divui %j, %width : index
    %ci = arith.remui %i, %width : index
    %cj = arith.remui %j, %width : index
    %pi = arith.divui %ri, %rows : index
    %pj = arith.divui %rj, %rows : index
    %qi = arith.divui %ci, %columns : index
    %qj = arith.divui %cj, %columns : index
    %above = arith.cmpi ult, %pj, %pi : index
    %beside = arith.cmpi eq, %pj, %pi : index
    %left = arith.cmpi ult, %qj, %qi : index
    %own = arith.cmpi eq, %qj, %qi : index
    %past = attn.causal %i, %j
    %earlier = arith.andi %own, %past : i1
    %inside = arith.ori %left, %earlier : i1
    %level = arith.andi %beside, %inside : i1
    %order = arith.ori %above, %level : i1
    %keep = arith.andi %near, %order : i1
    attn.yield %keep : i1
  })"));
          }};
}

} // namespace attn::presets
