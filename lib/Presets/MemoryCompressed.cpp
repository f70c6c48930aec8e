//===- MemoryCompressed.cpp - Memory Compressed Transformer ----------------===//
#include "Systems.h"

namespace attn::presets {

Preset memoryCompressed() {
  return {"memory-compressed-local",
          "Liu et al., Generating Wikipedia by Summarizing Long Sequences (2018): the local layers",
          "fixed, memory",
          "O(N block)",
          /*decodes=*/true,
          {Setting::number("block", 256, 1, "tokens of a block, which attend to each other only"), causalSetting("on")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            return attention("memory_compressed_local", set.fill("mask(${causally}same_block(size = $block))",
                                                                 {{"causally", causalAnd(set).str()}}));
          }};
}

/// %result: `from` convolved along the tokens, with a stride as long as the kernel, and a bias where there are any.
static std::string convolve(const Settings &set, llvm::StringRef result, llvm::StringRef from, llvm::StringRef kernel,
                            llvm::StringRef bias) {
  std::string sums = set.isOn("bias") ? (result + "_sums").str() : result.str();
  std::string text = product(sums, {from.str(), set.fill("b, h, n * $factor + c, k"), kernel.str(), "h, k, c, d",
                                    "b, h, n, d, k, c", "b, h, n, d", "!t", "!w", "!t"});
  if (!set.isOn("bias"))
    return text;
  return text + compute(result, {sums, "b, h, n, d", bias.str(), "h, d", "b, h, n, d", "b, h, n, d", "!t", "!b", "!t"},
                        "    %sum = arith.addf %x, %y : f32\n    attn.result %sum : f32\n");
}

// The last token of a compressed one, end - 1, may be the query's, or has to be before it. Queries are the last tokens.
static constexpr char kFinished[] = R"(mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %tokens = arith.constant 2 : index
    %all = tensor.dim %k, %tokens : !t
    %queries = attn.num_queries
    %earlier = arith.subi %all, %queries : index
    %position = arith.addi %i, %earlier : index
    %factor = arith.constant $factor : index
    %one = arith.constant 1 : index
    %next = arith.addi %j, %one : index
    %end = arith.muli %next, %factor : index
    %last = arith.subi %end, %one : index
    %keep = arith.cmpi $past, %last, %position : index
    attn.yield %keep : i1
  } )";

static std::string writeCompressed(const Settings &set) {
  bool biased = set.isOn("bias"), null = set.isOn("null");
  std::string mask =
      set.is("causal", "off") ? "" : set.fill(kFinished, {{"past", set.is("causal", "strict") ? "slt" : "sle"}});
  std::string text =
      set.fill("!w = tensor<?x${head_dim}x${factor}x${head_dim}x${dtype}>  // [heads, from, place, to]\n") +
      (biased ? set.fill("!b = tensor<?x${head_dim}x${dtype}>          // [heads, to]\n") : "") +
      (null ? "!z = tensor<?x?x?xf32>\n" : "") +
      "\nfunc.func @memory_compressed(%q: !t, %k: !t, %v: !t, %wk: !w, %wv: !w" + (biased ? ", %bk: !b, %bv: !b" : "") +
      (null ? ", %nk: !t, %nv: !t" : "") + ") -> !t {\n";
  text += convolve(set, "kc", "k", "wk", "bk") + convolve(set, "vc", "v", "wv", "bv");
  if (null)
    text += "  %n, %z = attn.attention %q, %nk, %nv : !t, !t, !t -> !t, !z\n";
  text +=
      "  %out = attn.attention %q, %kc, %vc " + std::string(null ? "join(%n, %z : !t, !z) " : "") + mask +
      ": !t, !t, !t -> !t\n  return %out : !t\n}\n\n// Of a cache, every `factor` tokens: a query attends to all that "
      "are finished.\nfunc.func @compress(%old: !t, %w: !w";
  return text + (biased ? ", %bias: !b" : "") + ") -> !t {\n" + convolve(set, "new", "old", "w", "bias") +
         "  return %new : !t\n}\n";
}

Preset memoryCompressedKeys() {
  return {"memory-compressed",
          "Liu et al., Generating Wikipedia by Summarizing Long Sequences (2018): the compressed layers",
          "fixed, memory",
          "O(N N / factor)",
          /*decodes=*/true,
          {Setting::number("factor", 3, 1, "tokens that one compressed token stands for"),
           Setting::word("causal", {"inclusive", "strict", "off"},
                         "a compressed token is seen from its last token on, after it, or always"),
           Setting::word("bias", {"off", "on"}, "of the convolutions"),
           Setting::word("null", {"off", "on"},
                         "keys and values, as operands, that all queries see: learnt ones, or the first token's")},
          [](const Settings &set) -> llvm::Expected<std::string> { return writeCompressed(set); }};
}

} // namespace attn::presets
