//===- Draw.cpp - Random functions of attention ops -----------------------===//
#include "Draw.h"

namespace attn::fuzz {

Generator::Generator(uint64_t seed, uint64_t number, const std::string &chip) {
  std::seed_seq sequence{uint32_t(seed), uint32_t(seed >> 32), uint32_t(number), uint32_t(number >> 32)};
  random.seed(sequence);
  drawn.chip = chip;
  if (!chip.empty())
    drawn.element = pick({"f16", "bf16", "f32"});
  else if (chance(25))
    drawn.element = pick({"f16", "bf16"});
}

Extent Generator::fresh(int64_t multiple) {
  drawn.isStatic.push_back(chance(25));
  Extent extent;
  extent.variable = int(drawn.isStatic.size()) - 1;
  extent.multiple = multiple;
  return extent;
}

/// A head_dim; GPU kernels need to know it.
Extent Generator::freshDim() {
  Extent extent = fresh();
  drawn.isStatic.back() = drawn.isStatic.back() || !drawn.chip.empty();
  return extent;
}

std::string Generator::operand(const char *stem, std::vector<Extent> dims) {
  Tensor tensor;
  tensor.name = stem + text(int64_t(drawn.tensors.size()));
  tensor.element = drawn.element;
  tensor.dims = std::move(dims);
  drawn.tensors.push_back(tensor);
  return tensor.name;
}

void Generator::drawFirst() {
  Attention op;
  op.batch = fresh();
  op.keyHeads = fresh();
  op.queryHeads = op.keyHeads;
  op.queryHeads.multiple = chance(50) ? 1 : between(2, 4);
  op.queries = fresh();
  op.keys = chance(40) ? op.queries : fresh();
  op.dim = freshDim();
  op.valueDim = chance(60) ? op.dim : freshDim();
  op.query = operand("q", {op.batch, op.queryHeads, op.queries, op.dim});
  op.key = operand("k", {op.batch, op.keyHeads, op.keys, op.dim});
  op.value = chance(5) && op.valueDim.variable == op.dim.variable
                 ? op.key
                 : operand("v", {op.batch, op.keyHeads, op.keys, op.valueDim});
  op.output = "out0";
  drawn.ops.push_back(op);
}

/// One more op, which reads the output of the last one as its query or value, joins it, or shares its keys.
void Generator::drawNext() {
  const Attention last = drawn.ops.back();
  Attention op = last;
  op.joined = "";
  switch (below(4)) {
  case 0: // the output is the query
    op.query = last.output;
    op.dim = last.valueDim;
    op.keys = chance(50) ? last.keys : fresh();
    op.key = operand("k", {op.batch, op.keyHeads, op.keys, op.dim});
    op.value = operand("v", {op.batch, op.keyHeads, op.keys, op.valueDim});
    break;
  case 1: // the output is the value
    op.keyHeads = last.queryHeads;
    op.keys = last.queries;
    op.queries = chance(50) ? last.queries : fresh();
    op.value = last.output;
    op.query = operand("q", {op.batch, op.queryHeads, op.queries, op.dim});
    op.key = operand("k", {op.batch, op.keyHeads, op.keys, op.dim});
    break;
  case 3: // it is joined
    op.joined = last.output;
    drawn.ops.back().lse = true;
    if (chance(50))
      break; // with the same queries, keys and values
    op.keys = chance(50) ? last.keys : fresh();
    op.query = chance(50) ? last.query : operand("q", {op.batch, op.queryHeads, op.queries, op.dim});
    op.key = operand("k", {op.batch, op.keyHeads, op.keys, op.dim});
    op.value = operand("v", {op.batch, op.keyHeads, op.keys, op.valueDim});
    break;
  default: // the same keys and values
    op.queries = chance(50) ? last.queries : fresh();
    op.query = operand("q", {op.batch, op.queryHeads, op.queries, op.dim});
  }
  op.lse = false;
  op.output = "out" + text(int64_t(drawn.ops.size()));
  drawn.ops.push_back(op);
}

/// Numbers of rows, a list for each head, batch, or for all; some of them are of no row.
std::string Generator::list(Extent heads, Extent rows) {
  std::vector<Extent> dims = pick<std::vector<Extent>>({{current->batch, heads, rows}, {current->batch, rows}, {rows}});
  Tensor tensor;
  tensor.name = "t" + text(int64_t(drawn.tensors.size()));
  tensor.element = pick({"i32", "i64"});
  tensor.filling = Filling::Uniform;
  tensor.least = -2;
  tensor.most = pick<int64_t>({12, 40, 120});
  tensor.dims = dims;
  drawn.tensors.push_back(tensor);
  return tensor.name;
}

/// As many queries as there are; any number of keys.
void Generator::drawLists(Attention &op) {
  op.queryRows = op.keyRows = "";
  if (!op.table.empty() || !chance(15))
    return;
  op.bottomRight = false;
  if (chance(70))
    op.keyRows = list(op.keyHeads, chance(40) ? op.keys : fresh());
  if (op.keyRows.empty() || chance(40))
    op.queryRows = list(op.queryHeads, op.queries);
}

void Generator::drawRegions(Attention &op) {
  current = &op;
  if (chance(50))
    op.scale = pick({"0.0", "0.125", "1.0", "-1.0", "0.5", "5.0", "100.0", "1.0e-3"});
  op.bottomRight = chance(40);
  op.lse |= chance(50);
  op.sink = chance(20) ? operand("s", {op.queryHeads}) : "";
  if (!op.sink.empty())
    drawn.tensors.back().element = "f32";
  op.table = op.bias = "";
  if (chance(15)) {
    op.table = operand("r", {op.queryHeads, Extent{-1, 1, 1, between(1, 200)}, op.dim});
    op.bias = chance(60) ? operand("w", {op.queryHeads, op.dim}) : "";
  }
  drawLists(op);
  if (chance(85)) {
    onlyNamed = op.sugar = chance(50);
    inMask = true;
    op.mask = truth(int(between(0, 3)));
    op.sugar &= op.mask->hasSugar() && chance(80);
    onlyNamed = inMask = false;
    op.counted = chance(30);
  }
  if (chance(40))
    op.score = number(int(between(1, 4)));
}

void Generator::drawVariables(Variant &variant) {
  auto tokens = [&]() -> int64_t {
    switch (below(10)) {
    case 0:
      return below(4);
    case 1:
      return pick({15, 16, 17, 47, 48, 49, 63, 64, 65, 127, 128, 129, 192});
    case 2:
      return between(150, 420);
    default:
      return between(1, 150);
    }
  };
  auto features = [&]() -> int64_t { return chance(70) ? between(1, 40) : chance(70) ? between(1, 130) : 64; };
  variant.variables.assign(drawn.isStatic.size(), 1);
  auto set = [&](const Extent &extent, int64_t value) { variant.variables[extent.variable] = value; };
  for (const Attention &op : drawn.ops) {
    set(op.batch, chance(5) ? 0 : between(1, 3));
    set(op.keyHeads, between(1, 3));
    set(op.queries, tokens());
    set(op.keys, tokens());
    set(op.dim, features());
    set(op.valueDim, features());
    if (const Tensor *rows = drawn.find(op.keyRows); rows && rows->dims.back().variable >= 0)
      set(rows->dims.back(), tokens());
  }
}

void Generator::drawVariants() {
  for (int64_t count = between(2, 4); count > 0; --count) {
    Variant variant;
    drawVariables(variant);
    if (!drawn.variants.empty())
      for (auto [index, fixed] : llvm::enumerate(drawn.isStatic))
        if (fixed)
          variant.variables[index] = drawn.variants.front().variables[index];
    variant.layout = pick({Layout::Contiguous, Layout::Bshd, Layout::Padded, Layout::Broadcast});
    variant.guard = pick({Guard::None, Guard::After, Guard::Before});
    variant.relation = chance(70) ? Relation::Free : pick({Relation::Same, Relation::Opposite, Relation::Growing});
    variant.factor = pick({1.0, 1.0, 1.0, 1.0, 0.0, 0.01, 10.0, 100.0});
    variant.poisonEvery = chance(20) ? pick<int64_t>({2, 7, 31, 90}) : 0;
    variant.poisonInfinite = chance(40);
    // Where scores are near the limits of f32, the rounding of a log-sum-exp decides what is joined.
    bool joins = llvm::any_of(drawn.ops, [](const Attention &op) { return !op.joined.empty(); });
    variant.hugeEvery = chance(25) && !joins ? pick<int64_t>({1, 3, 8, 50}) : 0;
    variant.huge = pick({std::numeric_limits<double>::infinity(), 3e38, 1e38, 1e37, 1e20});
    variant.hugeQueries = chance(40);
    variant.hugeKeys = !variant.hugeQueries || chance(60);
    variant.threads = int(between(1, 3));
    variant.seed = random();
    drawn.variants.push_back(variant);
  }
}

Case Generator::draw() {
  drawFirst();
  while (drawn.ops.size() < 3 && chance(20))
    drawNext();
  for (Attention &op : drawn.ops) {
    drawRegions(op);
    op.returned = &op == &drawn.ops.back() || chance(70);
  }
  drawVariants();
  drawn.cpu = pick({"native", "x86-64-v3", "x86-64"});
  int64_t lanes = drawn.cpu == "x86-64" ? 4 : drawn.cpu == "x86-64-v3" ? 8 : 16;
  if (!drawn.chip.empty()) {
    drawn.cpu = "native";
    drawn.schedule.split = chance(50) ? 0 : pick<int64_t>({1, 16, 48, 128});
    drawn.schedule.reindex = chance(70);
  } else if (chance(50)) {
    drawn.schedule.queryTile = chance(50) ? 0 : lanes * between(1, 4);
    drawn.schedule.keyTile = chance(50) ? 0 : pick<int64_t>({16, 32, 48, 64, 256, 1, 5, 24});
    drawn.schedule.group = chance(50) ? 0 : pick<int64_t>({1, 2, 3});
    drawn.schedule.split = chance(50) ? 0 : pick<int64_t>({1, 16, 48, 128});
    drawn.schedule.reindex = chance(70);
  }
  return std::move(drawn);
}

std::string Generator::capture(const std::string &element, std::vector<Extent> dims, Filling filling, int64_t least,
                               int64_t most, double factor) {
  Tensor tensor;
  tensor.name = "t" + text(int64_t(drawn.tensors.size()));
  tensor.element = element;
  tensor.filling = filling;
  tensor.least = least;
  tensor.most = most;
  tensor.factor = factor;
  if (!dims.empty() && chance(12)) { // a constant, of numbers for extents
    tensor.constant = true;
    tensor.seed = random();
    for (Extent &extent : dims)
      extent = extent.variable < 0 ? extent : Extent{-1, 1, 1, between(1, dims.size() > 2 ? 4 : 12)};
  }
  tensor.dims = std::move(dims);
  drawn.tensors.push_back(tensor);
  return tensor.name;
}

/// An extent that a place indexes: as long as it runs, or shorter, which reads the nearest element.
Extent Generator::covering(char place, int64_t divisor) {
  if (chance(10))
    return Extent{-1, 1, 1, between(1, 9)};
  Extent extent = place == 'b'   ? current->batch
                  : place == 'h' ? current->queryHeads
                  : place == 'i' ? (current->bottomRight ? current->keys : current->queries)
                                 : current->keys;
  extent.divisor = divisor;
  extent.more = chance(70) ? 0 : between(0, 3);
  if (place != 'b' && extent.more == 0 && chance(50))
    extent.more = 1; // never empty
  return extent;
}

Case drawCase(uint64_t seed, uint64_t number, const std::string &chip) { return Generator(seed, number, chip).draw(); }

} // namespace attn::fuzz
