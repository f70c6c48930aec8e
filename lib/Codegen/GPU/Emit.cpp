//===- Emit.cpp - Terse building of warp code -----------------------------===//
#include "Emit.h"

using namespace mlir;

namespace attn::cuda {

Value Emit::number(Value like, int64_t v) {
  return like.getType().isIndex() ? index(v) : arith::ConstantIntOp::create(b, loc, like.getType(), v).getResult();
}

Value Emit::cast(Value x, Type type) {
  Type from = x.getType();
  if (from == type)
    return x;
  if (from.isIndex() || type.isIndex())
    return make<arith::IndexCastOp>(type, x);
  if (from.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
    return make<arith::ExtSIOp>(type, x);
  return make<arith::TruncIOp>(type, x);
}

Value Emit::at(Value ptr, Value bytes) {
  return LLVM::GEPOp::create(b, loc, ptr.getType(), b.getI8Type(), ptr, ArrayRef<LLVM::GEPArg>{bytes});
}

Value Emit::at(Value ptr, int64_t bytes) {
  if (!bytes)
    return ptr;
  return LLVM::GEPOp::create(b, loc, ptr.getType(), b.getI8Type(), ptr, ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
}

Value Emit::load(Type type, Value ptr, unsigned alignment) {
  return LLVM::LoadOp::create(b, loc, type, ptr, alignment);
}

void Emit::store(Value v, Value ptr, unsigned alignment) { LLVM::StoreOp::create(b, loc, v, ptr, alignment); }

void Emit::storeTogether(ValueRange words, Value ptr) {
  Type word = words[0].getType();
  Value all = LLVM::PoisonOp::create(b, loc, VectorType::get({int64_t(words.size())}, word));
  for (auto [i, v] : llvm::enumerate(words))
    all = LLVM::InsertElementOp::create(b, loc, all, v, i32(i));
  store(all, ptr, words.size() * word.getIntOrFloatBitWidth() / 8);
}

Value Emit::thread() { return NVVM::ThreadIdXOp::create(b, loc, b.getI32Type()); }

Value Emit::anyOfBlock(Value condition) {
  auto either = NVVM::BarrierReductionAttr::get(b.getContext(), NVVM::BarrierReduction::OR);
  Value predicate = make<arith::ExtUIOp>(b.getI32Type(), condition);
  Value count = NVVM::BarrierOp::create(b, loc, b.getI32Type(), Value(), Value(), either, predicate).getResult(0);
  return make<arith::CmpIOp>(arith::CmpIPredicate::ne, count, i32(0));
}

Value Emit::anyOfWarp(Value condition) {
  return NVVM::VoteSyncOp::create(b, loc, b.getI1Type(), i32(-1), condition, NVVM::VoteSyncKind::any);
}

Value Emit::shuffleXor(Value v, int64_t mask) {
  return NVVM::ShflOp::create(b, loc, v.getType(), i32(-1), v, i32(mask), i32(kWarp - 1), NVVM::ShflKind::bfly,
                              UnitAttr());
}

Value Emit::shuffleFrom(Value v, Value lane) {
  return NVVM::ShflOp::create(b, loc, v.getType(), i32(-1), v, lane, i32(kWarp - 1), NVVM::ShflKind::idx, UnitAttr());
}

Value Emit::quadMax(Value v) {
  for (int64_t mask : {1, 2})
    v = maxf(v, shuffleXor(v, mask));
  return v;
}

Value Emit::quadSum(Value v) {
  for (int64_t mask : {1, 2})
    v = addf(v, shuffleXor(v, mask));
  return v;
}

static Values unpackStruct(Emit &e, Value aggregate) {
  Values fields;
  for (int64_t i = 0; i < 4; ++i)
    fields.push_back(LLVM::ExtractValueOp::create(e.b, e.loc, aggregate, i));
  return fields;
}

Values Emit::loadMatrices(Value ptr, bool transposed) {
  Type word = b.getI32Type();
  Type four = LLVM::LLVMStructType::getLiteral(b.getContext(), {word, word, word, word});
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  return unpackStruct(*this, NVVM::LdMatrixOp::create(b, loc, four, ptr, 4,
                                                      transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row, shape,
                                                      NVVM::LdStMatrixEltType::B16));
}

Values Emit::multiply(Type element, ValueRange x, ValueRange y, ValueRange z) {
  Type word = b.getF32Type();
  Type four = LLVM::LLVMStructType::getLiteral(b.getContext(), {word, word, word, word});
  NVVM::MMATypes type = element.isBF16() ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
  // f16 fragments are vectors of two, bf16 fragments plain words.
  auto fragment = [&](ValueRange words) {
    Values result(words);
    if (element.isF16())
      for (Value &v : result)
        v = LLVM::BitcastOp::create(b, loc, VectorType::get({2}, element), v);
    return result;
  };
  return unpackStruct(*this,
                      NVVM::MmaOp::create(b, loc, four, fragment(x), fragment(y), z, ArrayRef<int64_t>{16, 8, 16},
                                          std::nullopt, std::nullopt, std::array{type, type},
                                          std::array{NVVM::MMALayout::row, NVVM::MMALayout::col}));
}

Value Emit::pack(Value low, Value high, Type element) {
  auto nearest = NVVM::FPRoundingModeAttr::get(b.getContext(), NVVM::FPRoundingMode::RN);
  auto pair = VectorType::get({2}, element);
  Value packed;
  if (element.isBF16())
    packed = NVVM::ConvertF32x2ToBF16x2Op::create(b, loc, pair, high, low, Value(), nearest);
  else
    packed = NVVM::ConvertF32x2ToF16x2Op::create(b, loc, pair, high, low, Value(), nearest);
  return LLVM::BitcastOp::create(b, loc, b.getI32Type(), packed);
}

void Emit::copyAsync(Value to, Value from, Value bytes, int64_t chunk) {
  NVVM::CpAsyncOp::create(b, loc, to, from, chunk,
                          chunk == 16 ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA, bytes);
}

Values Emit::loop(int64_t count, int64_t step, ValueRange init, function_ref<Values(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(b, loc, i32(0), i32(count), i32(step), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!init.empty())
    scf::YieldOp::create(b, loc, next);
  return Values(loop.getResults());
}

void Emit::ifThen(Value condition, function_ref<void()> then, function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/bool(otherwise));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  then();
  if (!otherwise)
    return;
  b.setInsertionPointToStart(&branch.getElseRegion().front());
  otherwise();
}

Values Emit::ifElse(Value condition, function_ref<Values()> then, function_ref<Values()> otherwise) {
  auto branch = scf::IfOp::create(
      b, loc, condition, [&](OpBuilder &, Location) { scf::YieldOp::create(b, loc, then()); },
      [&](OpBuilder &, Location) { scf::YieldOp::create(b, loc, otherwise()); });
  return Values(branch.getResults());
}

} // namespace attn::cuda
