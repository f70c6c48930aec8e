//===- Picture.h - What a mask keeps, drawn ---------------------*- C++ -*-===//
#ifndef ATTN_TARGET_PICTURE_H
#define ATTN_TARGET_PICTURE_H

#include "attn/Pattern/Mask.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace attn {

/// One mask to draw, with the words that stand around it. The evaluator is one without a reindexing.
struct MaskPicture {
  std::string title, mask;
  std::vector<std::string> notes; // lines below the legend
  const MaskEvaluator *evaluator;
};

/// Writes masks one below the other as an SVG: queries down, keys across; single pairs where there are few, else blocks
/// of pairs that are full, partial (by how many they keep) or empty; up to four heads where the mask differs by head.
void drawMasks(llvm::ArrayRef<MaskPicture> masks, llvm::raw_ostream &os);

} // namespace attn

#endif // ATTN_TARGET_PICTURE_H
