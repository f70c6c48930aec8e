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

/// @compress: a convolution whose kernel stands `factor` tokens further each time, its own tokens `dilation` apart.
static std::string writeConvolution(const Settings &set) {
  Product p{"old",
            set.fill("b, h, n * $factor + c * $dilation, k"),
            "kernel",
            "k, c, d",
            "b, h, n, d, k, c",
            "b, h, n, d",
            "!t",
            "!w",
            "!t"};
  int64_t taps = set.number("taps") ? set.number("taps") : set.number("factor");
  return set.fill("!w = tensor<${head_dim}x${taps}x${head_dim}x${dtype}>  // [from, place, to]\n"
                  "func.func @compress(%old: !t, %kernel: !w) -> !t {\n",
                  {{"taps", std::to_string(taps)}}) +
         product("out", p);
}

/// The same by the mean or the maximum of `factor` tokens.
static std::string writePool(const Settings &set) {
  Product p{"old", set.fill("b, h, n * $factor + c, d"), "", "", "b, h, n, d, c", "b, h, n, d", "!t", "", "!t"};
  bool mean = set.is("function", "mean");
  std::string body =
      mean ? set.fill("    %share = arith.constant $share : f32\n    %part = arith.mulf %x, %share : f32\n"
                      "    %sum = arith.addf %total, %part : f32\n    attn.result %sum : f32\n",
                      {{"share", exact(1.0 / double(set.number("factor")))}})
           : "    %most = arith.maximumf %total, %x : f32\n    attn.result %most : f32\n";
  return "func.func @compress(%old: !t) -> !t {\n" +
         compute("out", p, body, set.fill("extents([-1, -1, -1, -1, $factor]) "), mean ? "0.0" : "0xFF800000");
}

/// The same by leaving out: what attention has used most stays, in its order.
static constexpr char kMostUsed[] =
    R"(!u = tensor<?x?x?xf32>   // [batch, heads, tokens]: how much attention has used each
!k = tensor<?x?x?xi32>
func.func @compress(%old: !t, %usage: !u) -> !t {
  %kept = attn.top_rows %usage count($keep) : !u -> !k
  %out = attn.gather_rows %old[%kept] : !t, !k -> !t
)";

Preset compressive() {
  return {"compressive",
          "Rae et al., Compressive Transformers (2020)",
          "recurrence",
          "O(N (N + memory + compressed))",
          /*decodes=*/true,
          {Setting::number("factor", 3, 1, "tokens that one compressed token stands for"),
           Setting::word("function", {"mean", "max", "conv", "most_used"}, "what makes one token of them"),
           Setting::number("taps", 0, 0, "tokens that conv reads for one; 0: as many as factor"),
           Setting::number("dilation", 1, 1, "from one of these to the next"),
           Setting::number("keep", 64, 1, "tokens that most_used keeps, about N / factor")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            return relativeAttention(set, "compressive", "mask(causal)") + "\n" +
                   (set.is("function", "most_used") ? set.fill(kMostUsed)
                    : set.is("function", "conv")    ? writeConvolution(set)
                                                    : writePool(set)) +
                   "  return %out : !t\n}\n";
          }};
}

} // namespace attn::presets
