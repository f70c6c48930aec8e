//===- Systems.cpp - The presets of this library ----------------------------===//
#include "Systems.h"
#include "llvm/ADT/Twine.h"

namespace attn {
namespace presets {

std::string attention(llvm::StringRef name, llvm::StringRef clauses, llvm::StringRef arguments) {
  bool atEnd = !clauses.empty() && !clauses.contains("align(");
  return ("func.func @" + name + "(%q: !t, %k: !t, %v: !t" + arguments +
          ") -> !t {\n  %out = attn.attention %q, %k, %v " + (atEnd ? "align(bottom_right) " : "") + clauses +
          (clauses.empty() ? "" : " ") + ": !t, !t, !t -> !t\n  return %out : !t\n}\n")
      .str();
}

std::string compute(llvm::StringRef result, const Product &p, llvm::StringRef body, llvm::StringRef more,
                    llvm::StringRef initial) {
  bool two = !p.b.empty();
  auto map = [&](llvm::StringRef indices) { return ("affine_map<(" + p.loops + ") -> (" + indices + ")>").str(); };
  return ("  %" + result + " = attn.compute(%" + p.a + (two ? ", %" + p.b : "") + ") maps([" + map(p.aIndices) + ", " +
          (two ? map(p.bIndices) + ", " : "") + map(p.outIndices) + "]) initial(" + initial + ") " + more +
          "{\n  ^bb0(%x: f32, " + (two ? "%y: f32, " : "") + "%total: f32):\n" + body + "  } : " + p.aType +
          (two ? ", " + p.bType : "") + " -> " + p.outType + "\n")
      .str();
}

std::string product(llvm::StringRef result, const Product &p, llvm::StringRef more) {
  return compute(result, p,
                 "    %xy = arith.mulf %x, %y : f32\n    %sum = arith.addf %total, %xy : f32\n"
                 "    attn.result %sum : f32\n",
                 more);
}

std::string spread(llvm::StringRef result, llvm::StringRef from, llvm::StringRef fromType, llvm::StringRef like,
                   llvm::StringRef likeType, llvm::StringRef outType) {
  Product p{from.str(),   "h, n, d",      like.str(),     "b, h, 0, 0", "b, h, n, d",
            "b, h, n, d", fromType.str(), likeType.str(), outType.str()};
  return compute(result, p, "    attn.result %x : f32\n");
}

Setting paddingSetting() {
  return Setting::word("padding", {"off", "on"}, "an operand says which tokens are there and which ones padding");
}

std::string dropPadding(llvm::StringRef result, llvm::StringRef from, llvm::StringRef type) {
  Product p{from.str(), "b, h, n, d", "there", "b, n", "b, h, n, d", "b, h, n, d", type.str(), "!there", type.str()};
  return compute(result, p, R"(    %zero = arith.constant 0.0 : f32
    %is = arith.cmpf une, %y, %zero : f32
    %kept = arith.select %is, %x, %zero : f32
    attn.result %kept : f32
)");
}

Setting causalSetting(llvm::StringRef initial) {
  bool on = initial == "on";
  return Setting::word("causal", {on ? "on" : "off", on ? "off" : "on"}, "no key after the query");
}

llvm::StringRef causalAnd(const Settings &set) { return set.isOn("causal") ? "causal and " : ""; }

std::string byHead(llvm::ArrayRef<std::string> masks) {
  if (masks.size() == 1)
    return masks.front();
  std::string text;
  for (auto [index, mask] : llvm::enumerate(masks))
    text += (llvm::Twine(index ? " or " : "") + "(heads(period = " + llvm::Twine(masks.size()) +
             ", index = " + llvm::Twine(index) + ") and " + mask + ")")
                .str();
  return "(" + text + ")";
}

} // namespace presets

void registerAllPresets() {
  using namespace presets;
  if (!getPresets().empty() && getPresets().count("dense"))
    return;
  for (auto make : {memoryCompressed,
                    image1D,
                    image2D,
                    setTransformer,
                    sparseStrided,
                    sparseFixed,
                    axial,
                    longformer,
                    bigBird,
                    routing,
                    reformer,
                    sinkhorn,
                    linear,
                    performer,
                    gla,
                    mamba2,
                    retnet,
                    etc,
                    memoryCompressedKeys,
                    linformer,
                    synthesizer,
                    transformerXL,
                    compressive,
                    alibi,
                    attentionSinks,
                    causal,
                    chunkedLocal,
                    dense,
                    differential,
                    documents,
                    learnedSinks,
                    moba,
                    neighborhood1D,
                    neighborhood2D,
                    nsa,
                    prefixLM,
                    retention,
                    sigmoid,
                    slidingWindow,
                    softCap,
                    t5,
                    tree})
    registerPreset(make());
}

} // namespace attn
