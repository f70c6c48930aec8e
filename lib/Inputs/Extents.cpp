//===- Extents.cpp - The extents that tensors of a function share -----------===//
#include "Extents.h"
#include "attn/Support/Errors.h"
#include "attn/Support/Names.h"

using namespace mlir;

namespace attn::inputs {
llvm::Expected<ExtentTable> ExtentTable::create(func::FuncOp func) {
  ExtentTable table;
  llvm::SmallVector<ExtentTie> ties;
  func.walk([&](CompiledOpInterface op) {
    llvm::append_range(ties, op.getExtentTies());
    llvm::append_range(table.multiples, op.getMultiples());
    if (auto compute = dyn_cast<ComputeOp>(*op))
      llvm::append_range(table.least, compute.getLeast());
  });
  for (const ExtentTie &tie : ties)
    table.unite(tie);
  for (const ExtentTie &tie : ties)
    table.nameDim(tie.places.front().tensor, tie.places.front().dim, getExtentLetter(tie.name));
  for (const ExtentTie &tie : ties)
    if (tie.rule)
      table.rules.push_back({dim(tie.places.front().tensor, tie.places.front().dim), *tie.rule});
  for (const ExtentTie &tie : ties)
    for (ExtentPlace place : tie.places) {
      int64_t extent = cast<RankedTensorType>(place.tensor.getType()).getDimSize(place.dim);
      if (ShapedType::isDynamic(extent))
        continue;
      if (llvm::Error error = table.set(table.classOf(dim(place.tensor, place.dim)), extent, "the spec"))
        return std::move(error);
    }
  return table;
}

void ExtentTable::unite(const ExtentTie &tie) {
  Dim first = dim(tie.places.front().tensor, tie.places.front().dim);
  dims.insert(first);
  for (ExtentPlace place : llvm::drop_begin(tie.places))
    dims.unionSets(first, dim(place.tensor, place.dim));
}

bool ExtentTable::hasRule(Dim leader) const {
  return llvm::any_of(rules, [&](const auto &rule) { return *dims.findLeader(rule.first) == leader; });
}

// A rule may come before that of its source: once more for each of them.
llvm::Error ExtentTable::applyRules() {
  for (size_t round = 0; round < rules.size(); ++round)
    for (auto &[target, rule] : rules) {
      int64_t source = get(rule.source.tensor, rule.source.dim);
      if (source < 0)
        continue;
      if (llvm::Error error = set(classOf(target), rule.apply(source), "what it follows from"))
        return error;
    }
  return checkMultiples();
}

llvm::Error ExtentTable::checkMultiples() const {
  for (const ExtentLeast &bound : least) {
    int64_t extent = get(bound.place.tensor, bound.place.dim), source = get(bound.source.tensor, bound.source.dim);
    if (extent >= 0 && source >= 0 && (!bound.times || source) && extent < source * bound.times + bound.plus)
      return makeError("dimension ", bound.place.dim, " of a tensor of attn.compute is ", extent, ", but at least ",
                       source * bound.times + bound.plus, " is read; give larger extents");
  }
  for (const ExtentMultiple &multiple : multiples) {
    int64_t extent = get(multiple.place.tensor, multiple.place.dim), of = get(multiple.of.tensor, multiple.of.dim);
    if (extent < 0 || of < 0 || (of == 0 ? extent == 0 : extent % of == 0))
      continue;
    auto name = [&](ExtentPlace place) { return classes.at(*dims.findLeader(dim(place.tensor, place.dim))).name; };
    return makeError(name(multiple.place), " = ", extent, " is no multiple of ", name(multiple.of), " = ", of,
                     "; change one of them");
  }
  return llvm::Error::success();
}

void ExtentTable::nameDim(Value value, unsigned index, StringRef base) {
  if (base.empty())
    base = "X";
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
  static const std::pair<StringRef, StringRef> copies[] = {{"Hkv", "H"}, {"M", "N"}, {"Dv", "D"}, {"H", "Hkv"},
                                                           {"N", "M"},   {"L", "M"}, {"L", "N"},  {"G", "H"},
                                                           {"W", "N"},   {"F", "D"}};
  auto extentOf = [&](StringRef name) {
    auto found = named.find(name);
    return found == named.end() ? -1 : classes[found->second].extent;
  };
  if (llvm::Error error = applyRules())
    return error;
  for (auto &entry : named) {
    Class &target = classes[entry.second];
    if (hasRule(entry.second))
      continue;
    if (target.extent < 0 && target.base == "N" && target.name != "N") // tokens of another tensor
      target.extent = extentOf("N");
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
  return applyRules();
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
