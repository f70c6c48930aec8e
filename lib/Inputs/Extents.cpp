//===- Extents.cpp - The extents that tensors of a function share -----------===//
#include "Extents.h"
#include "attn/Support/Errors.h"

using namespace mlir;

namespace attn::inputs {
llvm::Expected<ExtentTable> ExtentTable::create(func::FuncOp func) {
  ExtentTable table;
  func.walk([&](AttentionOp op) { table.addAttention(op); });
  func.walk([&](AttentionOp op) { table.nameAttention(op); });
  llvm::Error error = llvm::Error::success();
  func.walk([&](AttentionOp op) {
    for (Value value : {Value(op.getQuery()), Value(op.getKey()), Value(op.getValue()), Value(op.getOutput())})
      if (!error)
        error = table.set(value, cast<RankedTensorType>(value.getType()).getShape(), "the spec");
    return error ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (error)
    return std::move(error);
  return table;
}

void ExtentTable::addAttention(AttentionOp op) {
  Value query = op.getQuery(), key = op.getKey(), value = op.getValue(), output = op.getOutput();
  auto unite = [&](Value a, unsigned ad, Value b, unsigned bd) { dims.unionSets(dim(a, ad), dim(b, bd)); };
  for (Value other : {key, value, output})
    unite(query, 0, other, 0);
  unite(key, 1, value, 1);
  unite(key, 2, value, 2);
  unite(query, 3, key, 3);
  unite(query, 1, output, 1);
  unite(query, 2, output, 2);
  unite(value, 3, output, 3);
  for (Value lse : {op.getLse(), op.getJoinedLse()})
    for (unsigned d = 0; lse && d < 3; ++d)
      unite(query, d, lse, d);
  for (unsigned d = 0; op.getJoinedOutput() && d < 4; ++d)
    unite(output, d, op.getJoinedOutput(), d);
}

void ExtentTable::nameAttention(AttentionOp op) {
  nameDim(op.getQuery(), 0, "B");
  nameDim(op.getQuery(), 1, "H");
  nameDim(op.getKey(), 1, "Hkv");
  nameDim(op.getQuery(), 2, "N");
  nameDim(op.getKey(), 2, "M");
  nameDim(op.getQuery(), 3, "D");
  nameDim(op.getValue(), 3, "Dv");
}

void ExtentTable::nameDim(Value value, unsigned index, StringRef base) {
  Dim leader = *dims.findLeader(dim(value, index));
  Class &entry = classes[leader];
  std::string name = base.str();
  if (!entry.name.empty()) {
    // The class already has a name; the second one (M where queries are keys) leads to it as well, if it is free.
    if (!named.contains(base))
      named.insert({base, leader});
    return;
  }
  for (unsigned n = 2; named.contains(name); ++n)
    name = (base + llvm::Twine(n)).str();
  entry.name = name;
  entry.base = base.str();
  named.insert({classes[leader].name, leader});
}

llvm::Error ExtentTable::set(Class &target, int64_t extent, StringRef source) {
  if (extent < 0 || ShapedType::isDynamic(extent))
    return makeError(target.name, " = ", extent, " from ", source, " is not an extent");
  if (target.extent >= 0 && target.extent != extent)
    return makeError(target.name, " is ", extent, " from ", source, " but ", target.extent, " from ", target.source,
                     "; make them the same");
  if (target.extent < 0) {
    target.extent = extent;
    target.source = source.str();
  }
  return llvm::Error::success();
}

llvm::Error ExtentTable::set(StringRef name, int64_t extent, StringRef source) {
  auto found = named.find(name);
  if (found == named.end())
    return makeError("this function has no extent '", name, "'; its extents are ", getNames());
  return set(classes[found->second], extent, source);
}

llvm::Error ExtentTable::set(Value value, ArrayRef<int64_t> shape, StringRef source) {
  for (auto [index, extent] : llvm::enumerate(shape)) {
    if (ShapedType::isDynamic(extent) || !dims.contains(dim(value, index)))
      continue;
    if (llvm::Error error = set(classOf(dim(value, index)), extent, source))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error ExtentTable::setDefaults(int64_t tokens, StringRef option) {
  const std::pair<StringRef, int64_t> numbers[] = {{"B", 1}, {"H", 8}, {"N", tokens}, {"D", 64}};
  static const std::pair<StringRef, StringRef> copies[] = {
      {"Hkv", "H"}, {"M", "N"}, {"Dv", "D"}, {"H", "Hkv"}, {"N", "M"}};
  auto extentOf = [&](StringRef name) {
    auto found = named.find(name);
    return found == named.end() ? -1 : classes[found->second].extent;
  };
  for (auto &entry : named) {
    Class &target = classes[entry.second];
    for (auto [name, from] : copies)
      if (target.extent < 0 && target.base == name && extentOf(from) >= 0)
        target.extent = extentOf(from);
    for (auto [name, extent] : numbers)
      if (target.extent < 0 && target.base == name)
        target.extent = extentOf(name) >= 0 ? extentOf(name) : extent;
    target.source = target.source.empty() ? "its default" : target.source;
    if (target.extent < 0)
      return makeError("extent ", target.name, " is not known; give it as ", option, "=", target.name, "=...");
  }
  return llvm::Error::success();
}

int64_t ExtentTable::get(Value value, unsigned index) const {
  auto leader = dims.findLeader(dim(value, index));
  if (leader == dims.member_end())
    return -1;
  auto found = classes.find(*leader);
  return found == classes.end() ? -1 : found->second.extent;
}

std::string ExtentTable::getNames() const {
  std::string text;
  for (auto &entry : named)
    text += (text.empty() ? "" : ", ") + entry.first.str();
  return text;
}

} // namespace attn::inputs
