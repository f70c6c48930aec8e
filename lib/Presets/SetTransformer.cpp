//===- SetTransformer.cpp - Set Transformer ----------------------------------===//
#include "Systems.h"
#include <cmath>

namespace attn::presets {

Preset setTransformer() {
  return {"set",
          "Lee et al., Set Transformer (2019): the attention of MAB, ISAB and PMA",
          "memory",
          "O(N points)",
          /*decodes=*/false,
          {Setting::word("scale", {"head_dim", "model"},
                         "scores over sqrt(head_dim); or over sqrt(heads * head_dim), as the authors' code does"),
           Setting::number("heads", 8, 1, "query heads, for scale=model")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            std::string scale;
            if (set.is("scale", "model"))
              scale =
                  "scale(" + std::to_string(1 / std::sqrt(double(set.number("heads") * set.number("head_dim")))) + ")";
            return "// X attends to Y. ISAB: first the inducing points to the tokens, then the tokens to what came "
                   "out; PMA: the\n"
                   "// seeds to the tokens.\n" +
                   attention("mab", scale);
          }};
}

} // namespace attn::presets
