//===- Differential.cpp - The difference of two attentions ------------------===//
#include "Systems.h"

namespace attn::presets {

Preset differential() {
  return {"differential",
          "Ye et al., Differential Transformer (2024)",
          "dense",
          "O(N^2)",
          /*decodes=*/true,
          {causalSetting("on")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            std::string mask = set.isOn("causal") ? "align(bottom_right) mask(causal) " : "";
            return "!h = tensor<?xf32>  // [heads]: lambda\n\n"
                   "func.func @differential(%q1: !t, %k1: !t, %q2: !t, %k2: !t, %v: !t, %lambda: !h) -> !t {\n"
                   "  %first = attn.attention %q1, %k1, %v " +
                   mask + ": !t, !t, !t -> !t\n  %second = attn.attention %q2, %k2, %v " + mask +
                   R"(: !t, !t, !t -> !t
  %out = attn.compute(%first, %second, %lambda) maps([affine_map<(b, h, n, d) -> (b, h, n, d)>, affine_map<(b, h, n, d) -> (b, h, n, d)>,
                                                      affine_map<(b, h, n, d) -> (h)>, affine_map<(b, h, n, d) -> (b, h, n, d)>]) initial(0.0) {
  ^bb0(%x: f32, %y: f32, %l: f32, %total: f32):
    %less = arith.mulf %l, %y : f32
    %rest = arith.subf %x, %less : f32
    attn.result %rest : f32
  } : !t, !t, !h -> !t
  return %out : !t
}
)";
          }};
}

} // namespace attn::presets
