//===- Systems.h - The presets of this library, and what they share ---------===//
#ifndef ATTN_LIB_PRESETS_SYSTEMS_H
#define ATTN_LIB_PRESETS_SYSTEMS_H

#include "attn/Presets/Presets.h"

namespace attn::presets {

/// func.func @NAME(%q, %k, %v, `arguments`) of one attention with `clauses`. `arguments` is "" or starts with a comma.
/// Where there are fewer queries than keys, they are the last tokens: the function decodes over a cache as it is.
std::string attention(llvm::StringRef name, llvm::StringRef clauses, llvm::StringRef arguments = "");

/// %result = the sum over the last of `loops` of a[aIndices] * b[bIndices]; tensors are "%name: type". The output's
/// loops are b, h, n, d, in that order and without the ones that `out` lacks.
struct Product {
  std::string a, aIndices, b, bIndices, loops, outIndices, aType, bType, outType;
};
std::string product(llvm::StringRef result, const Product &product, llvm::StringRef more = "");
/// The same of one tensor, or two, with a body of its own; its block has %x, (%y,) %total.
std::string compute(llvm::StringRef result, const Product &product, llvm::StringRef body, llvm::StringRef more = "",
                    llvm::StringRef initial = "0.0");

/// %result, of outType, is %from, [heads, rows, columns], for every batch of %like.
std::string spread(llvm::StringRef result, llvm::StringRef from, llvm::StringRef fromType, llvm::StringRef like,
                   llvm::StringRef likeType, llvm::StringRef outType);

/// The setting `padding`, off or on: an operand %there, of type kThere, is 1 for a token and 0 for padding. And
/// %result, rows of %from, of `type`, where there is a token, else 0.
Setting paddingSetting();
inline constexpr char kThere[] = "!there = tensor<?x?x$dtype>     // [batch, tokens]: 1, or 0 for padding\n";
std::string dropPadding(llvm::StringRef result, llvm::StringRef from, llvm::StringRef type);

/// The setting `causal`, off or on; and what it adds to a mask: "causal and " or nothing.
Setting causalSetting(llvm::StringRef initial = "off");
llvm::StringRef causalAnd(const Settings &set);

/// A mask that is `masks[h mod masks.size()]` for head h.
std::string byHead(llvm::ArrayRef<std::string> masks);

// The survey's systems, in its order.
Preset memoryCompressed();
Preset image1D();
Preset image2D();
Preset setTransformer();
Preset sparseStrided();
Preset sparseFixed();
Preset axial();
Preset longformer();
Preset bigBird();
Preset routing();
Preset etc();
Preset memoryCompressedKeys();
Preset linformer();
Preset synthesizer();
Preset transformerXL();
Preset compressive();
Preset reformer();
Preset sinkhorn();
Preset linear();
Preset performer();

// Recurrences of today.
Preset gla();
Preset mamba2();
Preset retnet();

// Patterns of today.
Preset alibi();
Preset attentionSinks();
Preset causal();
Preset chunkedLocal();
Preset dense();
Preset differential();
Preset documents();
Preset learnedSinks();
Preset moba();
Preset neighborhood1D();
Preset neighborhood2D();
Preset nsa();
Preset prefixLM();
Preset retention();
Preset sigmoid();
Preset slidingWindow();
Preset softCap();
Preset t5();
Preset tree();

} // namespace attn::presets

#endif // ATTN_LIB_PRESETS_SYSTEMS_H
