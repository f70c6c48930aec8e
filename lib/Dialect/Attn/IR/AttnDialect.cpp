//===- AttnDialect.cpp - Registration of the attn dialect -------------------===//

#include "attn/Dialect/Attn/IR/AttnSteps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FoldInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

#include "attn/Dialect/Attn/IR/AttnDialect.cpp.inc"
#include "attn/Dialect/Attn/IR/AttnEnums.cpp.inc"
#include "attn/Dialect/Attn/IR/AttnInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnAttrs.cpp.inc"

namespace {
/// Keeps constants inside the mask and score regions, where every reading of a mask looks for them.
struct AttnFoldInterface : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(Region *region) const final { return isa<AttentionOp>(region->getParentOp()); }
};
} // namespace

void AttnDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Attn/IR/AttnAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Attn/IR/AttnSteps.cpp.inc"
      >();
  addInterfaces<AttnFoldInterface>();
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t queryTile, int64_t keyTile,
                                   int64_t tailTile, int64_t granule, int64_t group, int64_t span, int64_t split,
                                   int64_t tasks, ReindexKind reindex, int64_t reindexSize, int64_t warps,
                                   int64_t stages, int64_t pack) {
  std::pair<StringRef, int64_t> sizes[] = {{"query_tile", queryTile},    {"key_tile", keyTile}, {"tail_tile", tailTile},
                                           {"granule", granule},         {"group", group},      {"span", span},
                                           {"reindex_size", reindexSize}};
  for (auto [name, size] : sizes)
    if (size < 1)
      return emitError() << name << " must be at least 1, not " << size << " (S1)";
  if (split < 0)
    return emitError() << "split must be at least 0 (0: never split), not " << split << " (S1)";
  if (tasks < 0)
    return emitError() << "tasks must be at least 0 (0: as many as there are), not " << tasks << " (S1)";
  if (keyTile % granule != 0)
    return emitError() << "key_tile " << keyTile << " must be a multiple of granule " << granule << " (S2)";
  if (reindex == ReindexKind::Dense && reindexSize != 1)
    return emitError() << "reindex = dense needs reindex_size = 1, not " << reindexSize
                       << "; leave it out or choose residue or block (S3)";
  if (warps < 0 || stages < 1)
    return emitError() << "warps must be at least 0 and stages at least 1, not " << warps << " and " << stages
                       << " (S4)";
  bool shared = warps && queryTile % 16 == 0 && 16 * warps % queryTile == 0;
  if (warps && ((queryTile % (16 * warps) != 0 && !shared) || keyTile % 16 != 0))
    return emitError() << "for " << warps << " warps query_tile must be a multiple of " << 16 * warps
                       << " or divide it by a multiple of 16 rows, and key_tile be a multiple of 16, not " << queryTile
                       << " and " << keyTile << " (S5)";
  if (pack < 1 || pack > queryTile || (pack > 1 && !warps))
    return emitError() << "pack must be 1, or with warps up to query_tile, " << queryTile << ", not " << pack
                       << " (S6)";
  return success();
}
