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

/// Keys and values convolved along the tokens, with a stride as long as the kernel.
Preset memoryCompressedKeys() {
  return {"memory-compressed",
          "Liu et al., Generating Wikipedia by Summarizing Long Sequences (2018): the compressed layers",
          "fixed, memory",
          "O(N N / factor)",
          /*decodes=*/true,
          {Setting::number("factor", 3, 1, "tokens that one compressed token stands for"),
           Setting::word("causal", {"inclusive", "strict", "off"},
                         "a compressed token is seen from its last token on, after it, or always")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            // Its last token, end - 1, may be the query's, or has to be before it.
            std::string mask = set.is("causal", "off")
                                   ? ""
                                   : set.fill(R"(mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %factor = arith.constant $factor : index
    %one = arith.constant 1 : index
    %next = arith.addi %j, %one : index
    %end = arith.muli %next, %factor : index
    %last = arith.subi %end, %one : index
    %keep = arith.cmpi $past, %last, %i : index
    attn.yield %keep : i1
  } )",
                                              {{"past", set.is("causal", "strict") ? "slt" : "sle"}});
            auto convolve = [&](llvm::StringRef result, const char *from, const char *kernel) {
              Product p{from,
                        set.fill("b, h, n * $factor + c, k"),
                        kernel,
                        "h, k, c, d",
                        "b, h, n, d, k, c",
                        "b, h, n, d",
                        "!t",
                        "!w",
                        "!t"};
              return product(result, p);
            };
            return set.fill("!w = tensor<?x${head_dim}x${factor}x${head_dim}x${dtype}>  // [heads, from, place, to]\n\n"
                            "func.func @memory_compressed(%q: !t, %k: !t, %v: !t, %wk: !w, %wv: !w) -> !t {\n") +
                   convolve("kc", "k", "wk") + convolve("vc", "v", "wv") + "  %out = attn.attention %q, %kc, %vc " +
                   mask +
                   ": !t, !t, !t -> !t\n  return %out : !t\n}\n\n// Of a cache, every `factor` tokens: a query "
                   "attends to all that are finished.\nfunc.func @compress(%old: !t, %w: !w) -> !t {\n" +
                   convolve("new", "old", "w") + "  return %new : !t\n}\n";
          }};
}

} // namespace attn::presets
