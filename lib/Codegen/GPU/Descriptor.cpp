//===- Descriptor.cpp - Memrefs as pointer, extents and strides -----------===//
#include "Descriptor.h"

using namespace mlir;

namespace attn::cuda {

static SmallVector<int64_t> stridesOf(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  LogicalResult known = type.getStridesAndOffset(strides, offset);
  assert(succeeded(known) && "tasks take strided memrefs");
  (void)known;
  return strides;
}

SmallVector<Type> Descriptor::types(MemRefType type) {
  SmallVector<Type> types{LLVM::LLVMPointerType::get(type.getContext(), kGlobal)};
  SmallVector<int64_t> strides = stridesOf(type);
  types.append(llvm::count(type.getShape(), ShapedType::kDynamic) + llvm::count(strides, ShapedType::kDynamic),
               IndexType::get(type.getContext()));
  return types;
}

Descriptor Descriptor::read(Emit &e, MemRefType type, ValueRange parts) {
  Descriptor result{type, parts.front(), {}, {}};
  parts = parts.drop_front();
  auto take = [&](ArrayRef<int64_t> sizes, Values &to) {
    for (int64_t size : sizes) {
      to.push_back(ShapedType::isDynamic(size) ? parts.front() : e.index(size));
      if (ShapedType::isDynamic(size))
        parts = parts.drop_front();
    }
  };
  take(type.getShape(), result.extents);
  take(stridesOf(type), result.strides);
  return result;
}

Values Descriptor::parts() const {
  Values parts{pointer};
  auto give = [&](ArrayRef<int64_t> sizes, const Values &from) {
    for (auto [size, value] : llvm::zip_equal(sizes, from))
      if (ShapedType::isDynamic(size))
        parts.push_back(value);
  };
  give(type.getShape(), extents);
  give(stridesOf(type), strides);
  return parts;
}

Value Descriptor::address(Emit &e, ValueRange indices) const {
  Value elements = e.index(0);
  for (auto [index, stride] : llvm::zip_equal(indices, strides))
    elements = e.add(elements, e.make<arith::MulIOp>(index, stride));
  return e.at(pointer, e.toI64(e.mul(elements, elementBytes())));
}

} // namespace attn::cuda
