//===- Recurrence.cpp - Memories of earlier segments ------------------------===//
#include "Systems.h"
#include "llvm/Support/FormatVariadic.h"

namespace attn::presets {

/// `number` as text that is read back as the same f32.
static std::string exact(double number) { return llvm::formatv("{0:e9}", number); }

/// @NAME of queries of a segment over memory and segment, with products with distances.
static std::string relativeAttention(const Settings &set, llvm::StringRef name, llvm::StringRef mask) {
  return set.fill("!h = tensor<?x${head_dim}x${dtype}>    // [heads, head_dim]\n"
                  "!r = tensor<?x?x${head_dim}x${dtype}>  // [heads, distances, head_dim]\n\n"
                  "// Keys and values: memory first, then the segment of the queries.\n"
                  "func.func @$name(%q: !t, %k: !t, %v: !t, %r: !r, %u: !h, %w: !h) -> !t {\n",
                  {{"name", name.str()}}) +
         compute("qu", {"q", "b, h, n, d", "u", "h, d", "b, h, n, d", "b, h, n, d", "!t", "!h", "!t"},
                 "    %sum = arith.addf %x, %y : f32\n    attn.result %sum : f32\n") +
         "  // The queries have u, so that w replaces it where they meet distances.\n" +
         compute("more", {"w", "h, d", "u", "h, d", "h, d", "h, d", "!h", "!h", "!h"},
                 "    %difference = arith.subf %x, %y : f32\n    attn.result %difference : f32\n") +
         set.fill(
             "  %out = attn.attention %qu, %k, %v align(bottom_right) relative(%r, %more : !r, !h) $mask : !t, !t, !t "
             "-> !t\n  return %out : !t\n}\n",
             {{"mask", mask.str()}});
}

Preset transformerXL() {
  return {"transformer-xl",
          "Dai et al., Transformer-XL (2019)",
          "recurrence",
          "O(N (N + memory))",
          /*decodes=*/true,
          {Setting::number("same_length", 0, 0, "keys that every query sees; 0: all before it")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            int64_t length = set.number("same_length");
            return relativeAttention(set, "transformer_xl",
                                     length ? "mask(causal and window(left = " + std::to_string(length - 1) + "))"
                                            : "mask(causal)");
          }};
}

Preset compressive() {
  return {"compressive",
          "Rae et al., Compressive Transformers (2020)",
          "recurrence",
          "O(N (N + memory + compressed))",
          /*decodes=*/true,
          {Setting::number("factor", 3, 1, "tokens that one compressed token stands for"),
           Setting::word("function", {"mean", "max", "conv"}, "what makes one token of them")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            std::string text = relativeAttention(set, "compressive", "mask(causal)");
            std::string place = set.fill("b, h, n * $factor + c, "), loops = "b, h, n, d, c";
            std::string extents = set.fill("extents([-1, -1, -1, -1, $factor]) ");
            if (set.is("function", "conv"))
              return text +
                     set.fill("\n!w = tensor<${head_dim}x${factor}x${head_dim}x${dtype}>  // [from, place, to]\n"
                              "func.func @compress(%old: !t, %kernel: !w) -> !t {\n") +
                     product("out", {"old", place + "k", "kernel", "k, c, d", "b, h, n, d, k, c", "b, h, n, d", "!t",
                                     "!w", "!t"}) +
                     "  return %out : !t\n}\n";
            Product p{"old", place + "d", "", "", loops, "b, h, n, d", "!t", "", "!t"};
            bool mean = set.is("function", "mean");
            std::string body =
                mean ? set.fill("    %share = arith.constant $share : f32\n    %part = arith.mulf %x, %share : f32\n"
                                "    %sum = arith.addf %total, %part : f32\n    attn.result %sum : f32\n",
                                {{"share", exact(1.0 / double(set.number("factor")))}})
                     : "    %most = arith.maximumf %total, %x : f32\n    attn.result %most : f32\n";
            return text + "\nfunc.func @compress(%old: !t) -> !t {\n" +
                   compute("out", p, body, extents, mean ? "0.0" : "0xFF800000") + "  return %out : !t\n}\n";
          }};
}

} // namespace attn::presets
