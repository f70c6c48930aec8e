//===- Evaluator.cpp - A mask at given extents ----------------------------===//

#include "MaskProgram.h"
#include "attn/Pattern/Captures.h"
#include "attn/Pattern/Mask.h"
#include "attn/Runtime/Attn.h"
#include "attn/Runtime/Tables.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

namespace {
constexpr int64_t kIntegerCode = 0, kIntegerBits = 64;

/// The data of captured tensors, with the runtime's tables over it.
class Data {
public:
  Data(const Captures &captures, std::vector<CapturedData> given);
  Data(const Data &) = delete;
  ~Data() { attn_tables_free(tables); }

  /// The table that answers for an op of the mask; none where its data is not known.
  std::optional<int64_t> findTable(Operation *op, unsigned tensor) const {
    std::optional<unsigned> table = captures.findTable(op, tensor);
    if (!table || places[*table] < 0)
      return std::nullopt;
    return places[*table];
  }
  const AttnTables *getTables() const { return tables; }
  const Captures &getCaptures() const { return captures; }
  ArrayRef<int64_t> getShape(unsigned tensor) const { return contents[tensor].shape; }

private:
  void fillFromConstants();
  void build();

  Captures captures;
  std::vector<CapturedData> contents;
  std::vector<AttnMemRef> memrefs;
  SmallVector<int64_t> places; // by table of the captures
  AttnTables *tables = nullptr;
};

class DataBuilder : public ValueBuilder {
public:
  DataBuilder(const Extents &extents, const Data &data, const llvm::DenseMap<Operation *, int64_t> &tables,
              const MaskProgram &program)
      : extents(extents), data(data), tables(tables), program(program) {}

  Num numQueries() final { return constant(extents.queries); }
  Num numKeys() final { return constant(extents.keys); }
  FailureOr<Interval> range(Operation *op, ArrayRef<Interval> indices) final;

private:
  FailureOr<Interval> readExtent(tensor::DimOp op);

  const Extents &extents;
  const Data &data;
  const llvm::DenseMap<Operation *, int64_t> &tables;
  const MaskProgram &program;
};

/// A program with what its ops ask.
struct Reading {
  Reading(AttentionOp op, const Reindexing &reindexing, const Data &data) : program(op, reindexing), data(data) {
    for (Operation &inner : program.getMask().getBlock())
      if (isa<tensor::ExtractOp, ContainsOp>(inner))
        if (std::optional<int64_t> table = data.findTable(&inner, getTensor(&inner)))
          tables[&inner] = *table;
  }

  /// The place among the captures of the tensor that `op` reads.
  unsigned getTensor(Operation *op) const {
    return *data.getCaptures().findTensor(program.getMask().getTensors()[MaskProgram::getTensor(op)]);
  }

  AttnRunKind read(const Extents &extents, const std::array<Interval, 4> &box) const {
    DataBuilder builder(extents, data, tables, program);
    Interval answer = program.read(builder, box);
    return answer.hi.constant == 0 ? ATTN_EMPTY : answer.lo.constant != 0 ? ATTN_FULL : ATTN_PARTIAL;
  }

  MaskProgram program;
  const Data &data;
  llvm::DenseMap<Operation *, int64_t> tables;
};
} // namespace

//===----------------------------------------------------------------------===//
// Captured data
//===----------------------------------------------------------------------===//

Data::Data(const Captures &captures, std::vector<CapturedData> given)
    : captures(captures), contents(std::move(given)), places(captures.tables.size(), -1) {
  contents.resize(captures.tensors.size());
  fillFromConstants();
  build();
}

void Data::fillFromConstants() {
  for (auto [tensor, content] : llvm::zip_equal(captures.tensors, contents)) {
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    if (content.shape.empty() && type && type.hasStaticShape())
      content.shape.assign(type.getShape().begin(), type.getShape().end());
    DenseIntElementsAttr elements;
    if (!content.values.empty() || !matchPattern(tensor, m_Constant(&elements)))
      continue;
    bool isBool = elements.getElementType().isInteger(1);
    for (const APInt &value : elements.getValues<APInt>())
      content.values.push_back(isBool ? value.getZExtValue() : value.getSExtValue());
  }
}

static AttnMemRef describe(CapturedData &content) {
  AttnMemRef memref = {content.values.data(), content.values.data(), 0, {}};
  int64_t stride = 1;
  for (unsigned rank = content.shape.size(), dim = rank; dim-- > 0;) {
    memref.extents[dim] = content.shape[dim];
    memref.extents[rank + dim] = stride;
    stride *= content.shape[dim];
  }
  return memref;
}

void Data::build() {
  AttnKernel kernel = {};
  std::vector<AttnTableSource> sources;
  memrefs.reserve(contents.size());
  for (CapturedData &content : contents) {
    memrefs.push_back(describe(content));
    sources.push_back({&memrefs.back(), static_cast<int64_t>(content.shape.size()), kIntegerCode, kIntegerBits});
  }
  for (auto [index, table] : llvm::enumerate(captures.tables)) {
    if (contents[table.operand].values.empty() || kernel.num_tables == ATTN_MAX_TABLES)
      continue;
    places[index] = kernel.num_tables;
    kernel.tables[kernel.num_tables++] = {static_cast<int64_t>(table.kind), table.operand, table.dim};
  }
  int64_t culprit = 0, greatestMember = std::numeric_limits<int32_t>::max();
  if (attn_tables_build(&kernel, sources.data(), greatestMember, /*threads=*/0, &tables, &culprit) != ATTN_OK)
    llvm::fill(places, -1); // no memory, or an absurd member: nothing is known
}

FailureOr<Interval> DataBuilder::range(Operation *op, ArrayRef<Interval> indices) {
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    return readExtent(dim);
  auto table = tables.find(op);
  if (table == tables.end())
    return failure();
  int64_t lo[ATTN_MAX_RANK], hi[ATTN_MAX_RANK], found[2];
  for (auto [dim, index] : llvm::enumerate(indices)) {
    lo[dim] = index.lo.constant;
    hi[dim] = index.hi.constant;
  }
  attn_range(data.getTables(), table->second, lo, hi, found);
  // A box that is too large to walk answers the range of the stored numbers, which is wider than that of the elements.
  Bounds bounds = getTypeRange(op->getResult(0).getType());
  return Interval{constant(std::max(found[0], bounds.lo)), constant(std::min(found[1], bounds.hi))};
}

FailureOr<Interval> DataBuilder::readExtent(tensor::DimOp op) {
  std::optional<int64_t> dim = op.getConstantIndex();
  std::optional<unsigned> tensor =
      data.getCaptures().findTensor(program.getMask().getTensors()[MaskProgram::getTensor(op)]);
  if (!dim || !tensor || *dim < 0 || *dim >= static_cast<int64_t>(data.getShape(*tensor).size()))
    return failure();
  return point(data.getShape(*tensor)[*dim]);
}

//===----------------------------------------------------------------------===//
// The evaluator
//===----------------------------------------------------------------------===//

struct MaskEvaluator::Impl {
  Impl(AttentionOp op, const Extents &extents, std::vector<CapturedData> given, const Reindexing &reindexing)
      : extents(extents), reindexing(reindexing), align(op.getAlign()), dependence(getMaskDependence(op)),
        data(Captures::of(op), std::move(given)), whole(op, {}, data) {
    if (reindexing.kind != ReindexKind::Dense)
      inClasses.emplace(op, reindexing, data);
  }

  Extents extents;
  Reindexing reindexing;
  Align align;
  MaskDependence dependence;
  Data data;
  Reading whole;
  std::optional<Reading> inClasses;
};

MaskEvaluator::MaskEvaluator(AttentionOp op, const Extents &extents, std::vector<CapturedData> data,
                             const Reindexing &reindexing)
    : impl(std::make_unique<Impl>(op, extents, std::move(data), reindexing)) {}

MaskEvaluator::MaskEvaluator(MaskEvaluator &&) = default;
MaskEvaluator::~MaskEvaluator() = default;

static Interval makeInterval(int64_t lo, int64_t hi) { return {{lo, {}}, {hi, {}}}; }

bool MaskEvaluator::keep(int64_t b, int64_t h, int64_t i, int64_t j) const {
  return classifyAll(b, h, i, i, j, j) != ATTN_EMPTY;
}

AttnRunKind MaskEvaluator::classify(int64_t b, int64_t h, int64_t iLo, int64_t iHi, int64_t jLo, int64_t jHi) const {
  const Reading &reading = impl->inClasses ? *impl->inClasses : impl->whole;
  return reading.read(impl->extents,
                      {makeInterval(b, b), makeInterval(h, h), makeInterval(iLo, iHi), makeInterval(jLo, jHi)});
}

AttnRunKind MaskEvaluator::classifyAll(int64_t b, int64_t h, int64_t iLo, int64_t iHi, int64_t jLo, int64_t jHi) const {
  return impl->whole.read(impl->extents,
                          {makeInterval(b, b), makeInterval(h, h), makeInterval(iLo, iHi), makeInterval(jLo, jHi)});
}

const Extents &MaskEvaluator::getExtents() const { return impl->extents; }
const Reindexing &MaskEvaluator::getReindexing() const { return impl->reindexing; }
MaskDependence MaskEvaluator::getDependence() const { return impl->dependence; }
int64_t MaskEvaluator::getTableBytes() const { return attn_tables_bytes(impl->data.getTables()); }
Align MaskEvaluator::getAlign() const { return impl->align; }
int64_t MaskEvaluator::getQueryOffset() const {
  return impl->align == Align::BottomRight ? impl->extents.keys - impl->extents.queries : 0;
}
