//===- ETC.cpp - Extended Transformer Construction --------------------------===//
#include "Systems.h"

namespace attn::presets {

// Long tokens see a window and all global ones, in one softmax; global tokens see everything. Keys and values of each
// of the four pieces are projections of their own.
Preset etc() {
  return {"etc",
          "Ainslie et al., ETC (2020)",
          "fixed, memory",
          "O(N (radius + globals) + globals^2)",
          /*decodes=*/false,
          {Setting::number("radius", 84, 0, "long tokens seen to each side")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            return set.fill(R"(!z = tensor<?x?x?xf32>

func.func @etc_long(%q: !t, %k: !t, %v: !t, %kg: !t, %vg: !t) -> !t {
  %g, %z = attn.attention %q, %kg, %vg : !t, !t, !t -> !t, !z
  %out = attn.attention %q, %k, %v join(%g, %z : !t, !z) mask(window(left = $radius, right = $radius)) : !t, !t, !t -> !t
  return %out : !t
}

func.func @etc_global(%q: !t, %k: !t, %v: !t, %kg: !t, %vg: !t) -> !t {
  %g, %z = attn.attention %q, %kg, %vg : !t, !t, !t -> !t, !z
  %out = attn.attention %q, %k, %v join(%g, %z : !t, !z) : !t, !t, !t -> !t
  return %out : !t
}
)");
          },
          /*whyNotCausal=*/
          "global tokens read all long tokens, later ones too, and every long token reads them in the next layer"};
}

} // namespace attn::presets
