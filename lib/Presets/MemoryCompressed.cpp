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

} // namespace attn::presets
