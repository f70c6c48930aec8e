//===- Axial.cpp - Axial Transformer ----------------------------------------===//
#include "Systems.h"

namespace attn::presets {

Preset axial() {
  return {"axial",
          "Ho et al., Axial Attention in Multidimensional Transformers (2019)",
          "fixed",
          "O(N extent of the axis): O(N sqrt(N)) on a square",
          /*decodes=*/true,
          {Setting::list("inner", "64", 1, "extents of the axes behind the first, whose extent follows from N"),
           Setting::number("axis", 0, 0, "the axis along which tokens attend; the others are equal"), causalSetting()},
          [](const Settings &set) -> llvm::Expected<std::string> {
            llvm::SmallVector<int64_t> inner = set.list("inner");
            size_t axis = set.number("axis");
            if (axis > inner.size())
              return llvm::createStringError("axis = %zu: there are axes 0 to %zu", axis, inner.size());
            // Positions in raster order are (outer * extent + place) * stride + rest.
            int64_t stride = 1;
            for (int64_t extent : llvm::drop_begin(inner, axis))
              stride *= extent;
            std::string mask = "same_column(width = " + std::to_string(stride) + ")";
            if (axis > 0)
              mask = "same_block(size = " + std::to_string(stride * inner[axis - 1]) + ")" +
                     (stride > 1 ? " and " + mask : "");
            return attention("axial", "mask(" + causalAnd(set).str() + mask + ")");
          }};
}

} // namespace attn::presets
