//===- RulesMatrix.cpp - mma.sync, ldmatrix, stmatrix -----------------------===//
#include "WarpBuilder.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace attn::emulator {
namespace {

template <typename Op>
LogicalResult checkMatrices(Op op) {
  if (op.getEltType() == NVVM::LdStMatrixEltType::B16 && op.getShape().getM() == 8 && op.getShape().getN() == 8)
    return success();
  return op.emitError("the emulator knows 8x8 matrices of 16-bit elements only");
}

LogicalResult rewriteLoadMatrix(WarpBuilder &b, Operation *op) {
  auto load = cast<NVVM::LdMatrixOp>(op);
  if (failed(checkMatrices(load)))
    return failure();
  unsigned count = load.getNum();
  Value addresses = b.putLanes(b.getOne(load.getPtr())), out = b.reserveLanes(4 * count);
  Value transposed = b.constantInt(load.getLayout() == NVVM::MMALayout::col);
  b.call("attn_emu_ldmatrix", Type(),
         {b.getWarp(), b.site(op), b.maskBits(), addresses, b.constantInt(count), transposed, out});
  Components registers;
  for (unsigned i = 0; i < count; ++i)
    registers.push_back(b.takeLanes(out, b.getI32Type(), i));
  b.set(load.getRes(), std::move(registers));
  return success();
}

LogicalResult rewriteStoreMatrix(WarpBuilder &b, Operation *op) {
  auto store = cast<NVVM::StMatrixOp>(op);
  if (failed(checkMatrices(store)))
    return failure();
  Value addresses = b.putLanes(b.getOne(store.getPtr()));
  Components registers;
  for (Value source : store.getSources())
    registers.push_back(b.getOne(source));
  Value transposed = b.constantInt(store.getLayout() == NVVM::MMALayout::col);
  Value in = b.putLanes(registers);
  b.call("attn_emu_stmatrix", Type(),
         {b.getWarp(), b.site(op), b.maskBits(), addresses, b.constantInt(registers.size()), transposed, in});
  return success();
}

/// Registers of two 16-bit elements, whether they came as i32 or as vector<2xf16>.
FailureOr<Components> registersOf(WarpBuilder &b, ValueRange operands) {
  Components all;
  for (Value operand : operands) {
    auto words = b.regroup(b.get(operand), b.getI32Type());
    if (failed(words))
      return failure();
    llvm::append_range(all, *words);
  }
  return all;
}

LogicalResult checkMma(NVVM::MmaOp op) {
  auto shape = op.getShape();
  auto a = op.getMultiplicandAPtxType(), bType = op.getMultiplicandBPtxType();
  bool types = a && a == bType && (*a == NVVM::MMATypes::f16 || *a == NVVM::MMATypes::bf16);
  bool sizes = shape.getM() == 16 && shape.getN() == 8 && (shape.getK() == 8 || shape.getK() == 16);
  bool sums = llvm::all_of(op.getOperandC().getTypes(), [](Type type) { return type.isF32(); });
  if (types && sizes && sums && op.getLayoutA() == NVVM::MMALayout::row && op.getLayoutB() == NVVM::MMALayout::col)
    return success();
  return op.emitError("the emulator knows m16n8k16 and m16n8k8 of f16 or bf16 with f32 sums, row by column");
}

LogicalResult rewriteMma(WarpBuilder &b, Operation *op) {
  auto mma = cast<NVVM::MmaOp>(op);
  bool isOld = mma.getMultiplicandAPtxType() == NVVM::MMATypes::f16 && mma.getShape().getK() == 8;
  if (failed(checkMma(mma)) || failed(b.requireChip(op, isOld ? 75 : 80)))
    return failure();
  auto registersA = registersOf(b, mma.getOperandA()), registersB = registersOf(b, mma.getOperandB());
  unsigned k = mma.getShape().getK();
  if (failed(registersA) || failed(registersB) || registersA->size() != k / 4 || registersB->size() != k / 8)
    return op->emitError("the operands of this mma are not registers of two 16-bit elements");
  Components ab(*registersA), sums;
  llvm::append_range(ab, *registersB);
  for (Value operand : mma.getOperandC())
    sums.push_back(b.getOne(operand));
  Value bfloat = b.constantInt(mma.getMultiplicandAPtxType() == NVVM::MMATypes::bf16);
  Value in = b.putLanes(ab), c = b.putLanes(sums), d = b.reserveLanes(4 * sums.size());
  b.call("attn_emu_mma", Type(), {b.getWarp(), b.site(op), b.maskBits(), bfloat, b.constantInt(k), in, c, d});
  Components results;
  for (unsigned i = 0; i < sums.size(); ++i)
    results.push_back(b.takeLanes(d, b.getF32Type(), i));
  b.set(mma.getRes(), std::move(results));
  return success();
}

} // namespace

void addMatrixRules(RuleTable &rules) {
  rules["nvvm.ldmatrix"] = {rewriteLoadMatrix, Agreement::Never, /*counted=*/true, /*chip=*/75};
  rules["nvvm.stmatrix"] = {rewriteStoreMatrix, Agreement::Operands, /*counted=*/true, /*chip=*/90};
  rules["nvvm.mma.sync"] = {rewriteMma, Agreement::Never};
}

} // namespace attn::emulator
