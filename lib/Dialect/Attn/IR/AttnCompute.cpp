//===- AttnCompute.cpp - Loops over the elements of tensors -----------------===//
#include "StepVerify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/AffineExpr.h"

using namespace mlir;

namespace attn {

static RankedTensorType typeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()); }

SmallVector<AffineMap> ComputeOp::getIndexMaps() { return llvm::to_vector(getMaps().getAsValueRange<AffineMapAttr>()); }

SmallVector<Value> ComputeOp::getTensors() {
  SmallVector<Value> tensors(getInputs());
  tensors.push_back(getOutput());
  return tensors;
}

//===----------------------------------------------------------------------===//
// Extents
//===----------------------------------------------------------------------===//

static bool isLoop(AffineExpr expr, unsigned loop) {
  auto dim = dyn_cast<AffineDimExpr>(expr);
  return dim && dim.getPosition() == loop;
}

/// Where `loop` alone is the index.
static SmallVector<ExtentPlace> findPlaces(ComputeOp op, unsigned loop) {
  SmallVector<ExtentPlace> places;
  for (auto [tensor, map] : llvm::zip(op.getTensors(), op.getIndexMaps()))
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (isLoop(expr, loop))
        places.push_back({tensor, unsigned(dim)});
  return places;
}

std::optional<ExtentPlace> ComputeOp::getPlace(unsigned loop) {
  SmallVector<ExtentPlace> places = findPlaces(*this, loop);
  return places.empty() ? std::nullopt : std::optional(places.front());
}

int64_t ComputeOp::getKnownExtent(unsigned loop) {
  if (getExtents() && (*getExtents())[loop] >= 0)
    return (*getExtents())[loop];
  for (ExtentPlace place : findPlaces(*this, loop))
    if (int64_t extent = typeOf(place.tensor).getDimSize(place.dim); extent >= 0)
      return extent;
  return -1;
}

/// factors[l]: what loop l is multiplied by in `expr`, an affine sum; the last one is the constant. Failure where it is
/// none.
static LogicalResult readFactors(AffineExpr expr, int64_t times, SmallVectorImpl<int64_t> &factors) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    factors[dim.getPosition()] += times;
    return success();
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    factors.back() += times * constant.getValue();
    return success();
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return failure();
  if (binary.getKind() == AffineExprKind::Add)
    return success(succeeded(readFactors(binary.getLHS(), times, factors)) &&
                   succeeded(readFactors(binary.getRHS(), times, factors)));
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return binary.getKind() == AffineExprKind::Mul && factor
             ? readFactors(binary.getLHS(), times * factor.getValue(), factors)
             : failure();
}

/// The largest extent of `loop` with which index `dim` of `tensor` stays inside, all others being known numbers.
static std::optional<ExtentRule> findRule(ComputeOp op, unsigned loop) {
  for (auto [tensor, map] : llvm::zip(op.getInputs(), op.getIndexMaps()))
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      SmallVector<int64_t> factors(op.getNumLoops() + 1);
      if (failed(readFactors(expr, 1, factors)) || factors[loop] < 1)
        continue;
      int64_t reach = factors.back();
      bool known = true;
      for (unsigned other = 0; other < op.getNumLoops(); ++other) {
        int64_t extent = op.getKnownExtent(other);
        if (other == loop || !factors[other])
          continue;
        known &= extent > 0;
        reach += factors[other] * (extent - 1);
      }
      if (known)
        return ExtentRule{{tensor, unsigned(dim)}, 1, factors[loop] - 1 - reach, factors[loop]};
    }
  return std::nullopt;
}

/// What an index that is no loop alone comes to at most, on an extent of 0 or more of its one open loop; nothing where
/// it has several open loops.
static std::optional<ExtentLeast> findLeast(ComputeOp op, ExtentPlace place, AffineExpr expr) {
  SmallVector<int64_t> factors(op.getNumLoops() + 1);
  if (failed(readFactors(expr, 1, factors)))
    return std::nullopt;
  ExtentLeast least{place, place, 0, factors.back() + 1};
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    int64_t extent = factors[loop] ? op.getKnownExtent(loop) : 1;
    if (extent >= 0) {
      least.plus += factors[loop] * (std::max<int64_t>(extent, 1) - 1);
      continue;
    }
    std::optional<ExtentPlace> source = op.getPlace(loop);
    if (least.times || !source)
      return std::nullopt;
    least.source = *source;
    least.times = factors[loop];
    least.plus -= factors[loop];
  }
  return least;
}

SmallVector<ExtentLeast> ComputeOp::getLeast() {
  SmallVector<ExtentLeast> all;
  for (auto [tensor, map] : llvm::zip(getInputs(), getIndexMaps()))
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (!isa<AffineDimExpr>(expr))
        if (std::optional<ExtentLeast> least = findLeast(*this, {tensor, unsigned(dim)}, expr))
          all.push_back(*least);
  return all;
}

/// After the place in a tensor of rows of numbers, an input rather than the output.
static std::string nameOf(ComputeOp op, ArrayRef<ExtentPlace> places) {
  static constexpr StringRef names[] = {"batch", "heads", "tokens", "head_dim"};
  std::string name = "extent";
  for (ExtentPlace place : llvm::reverse(places)) // the output is the last
    if (typeOf(place.tensor).getRank() == 4)
      name = (place.tensor == op.getOutput() ? "output " : "") + names[place.dim].str();
  return name;
}

SmallVector<ExtentTie> ComputeOp::getExtentTies() {
  SmallVector<ExtentTie> ties;
  // What is indexed by no loop alone still is an extent, to be named.
  for (auto [tensor, map] : llvm::zip(getInputs(), getIndexMaps()))
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (!isa<AffineDimExpr>(expr)) {
        ExtentPlace place{tensor, unsigned(dim)};
        ties.push_back(makeTie(nameOf(*this, place), place));
      }
  for (unsigned loop = 0; loop < getNumLoops(); ++loop) {
    SmallVector<ExtentPlace> places = findPlaces(*this, loop);
    if (places.empty())
      continue;
    bool isTold = llvm::any_of(places, [&](ExtentPlace place) { return place.tensor != getOutput(); });
    std::optional<ExtentRule> rule = isTold || getKnownExtent(loop) >= 0 ? std::nullopt : findRule(*this, loop);
    ExtentTie &tie = ties.emplace_back(makeTie(nameOf(*this, places), places));
    tie.rule = rule;
  }
  return ties;
}

SmallVector<Value> ComputeOp::getContiguous() { return rowsOfNumbers(*this); }

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

static LogicalResult verifyMaps(ComputeOp op) {
  SmallVector<AffineMap> maps = op.getIndexMaps();
  SmallVector<Value> tensors = op.getTensors();
  if (maps.size() != tensors.size())
    return op.emitOpError() << "has " << maps.size() << " maps for " << tensors.size() - 1
                            << " inputs and the output; give one for each (E5)";
  for (auto [tensor, map] : llvm::zip(tensors, maps)) {
    if (map.getNumDims() != maps.back().getNumDims() || map.getNumSymbols() ||
        int64_t(map.getNumResults()) != typeOf(tensor).getRank())
      return op.emitOpError() << "has the map " << AffineMapAttr::get(map) << " for " << describeTensor(op, tensor)
                              << ", " << tensor.getType() << "; give one of " << maps.back().getNumDims()
                              << " loops and " << typeOf(tensor).getRank() << " indices (E5)";
    for (AffineExpr expr : map.getResults()) {
      SmallVector<int64_t> factors(map.getNumDims() + 1);
      if (failed(readFactors(expr, 1, factors)) || llvm::any_of(factors, [](int64_t factor) { return factor < 0; }))
        return op.emitOpError() << "has an index that is no sum of loops times numbers from 0 up in the map "
                                << AffineMapAttr::get(map) << "; write it as one (E6)";
    }
  }
  for (auto [dim, expr] : llvm::enumerate(maps.back().getResults()))
    if (!isLoop(expr, dim))
      return op.emitOpError() << "writes its output by the map " << AffineMapAttr::get(maps.back())
                              << "; number the loops so that it is the first of them, in order (E5)";
  return success();
}

static LogicalResult verifyBody(ComputeOp op) {
  Block &body = op.getBody().front();
  bool good = body.getNumArguments() == op.getInputs().size() + 1 &&
              llvm::all_of(body.getArgumentTypes(), [](Type type) { return type.isF32(); });
  if (!good)
    return op.emitOpError() << "has a block of " << body.getNumArguments() << " arguments; it takes an f32 for each of "
                            << op.getInputs().size() << " inputs and one for the total (E7)";
  for (Operation &inner : body.without_terminator())
    if (!isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()) || inner.getNumRegions())
      return inner.emitOpError("cannot stand in attn.compute; use arith and math ops on scalars (E7)");
  if (!isa<ResultOp>(body.getTerminator()))
    return op.emitOpError("has a block without attn.result at its end; give the new total (E7)");
  return success();
}

LogicalResult ComputeOp::verify() {
  if (failed(verifyMaps(*this)) || failed(verifyBody(*this)))
    return failure();
  if (getExtents() && getExtents()->size() != getNumLoops())
    return emitOpError() << "has extents of " << getExtents()->size() << " loops; give one, or -1, for each of "
                         << getNumLoops() << " (E8)";
  for (unsigned loop = 0; loop < getNumLoops(); ++loop) {
    SmallVector<ExtentPlace> places = findPlaces(*this, loop);
    bool isTold = getKnownExtent(loop) >= 0 ||
                  llvm::any_of(places, [&](ExtentPlace place) { return place.tensor != getOutput(); });
    if (!isTold && (loop >= getNumOutputLoops() || !findRule(*this, loop)))
      return emitOpError() << "has a loop, d" << loop << ", whose extent no tensor tells; write it in extents (E8)";
  }
  unsigned mixed = 0;
  SmallVector<AffineMap> maps = getIndexMaps();
  for (AffineMap map : ArrayRef(maps).drop_back())
    mixed += llvm::count_if(map.getResults(), [](AffineExpr expr) { return !isa<AffineDimExpr>(expr); });
  SmallVector<ExtentLeast> least = getLeast();
  if (least.size() != mixed)
    return emitOpError(
        "has an index of several loops whose extents no number tells; write the extents of all but one of "
        "them (E8)");
  for (const ExtentLeast &bound : least) {
    int64_t extent = typeOf(bound.place.tensor).getDimSize(bound.place.dim);
    if (!bound.times && extent >= 0 && extent < bound.plus)
      return emitOpError() << "reads index " << bound.plus - 1 << " of dimension " << bound.place.dim << " of "
                           << describeTensor(*this, bound.place.tensor) << ", which has " << extent
                           << "; change the map or the extents (E8)";
  }
  return verifyExtents(*this);
}

} // namespace attn
