//===- FlashKernel.cpp - A flash-attention kernel for sm_80, as text --------===//
#include "FlashKernel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <array>
#include <cmath>
#include <vector>

using llvm::formatv;

namespace attn::emulator::test {
namespace {

using Name = std::string;
using Names = std::vector<std::string>;

/// Lines of IR; each op gets a name.
class Text {
public:
  void line(const std::string &text) { lines += text + "\n"; }
  Name op(const std::string &text) {
    Name name = "%v" + std::to_string(count++);
    line(name + " = " + text);
    return name;
  }
  Name constant(int64_t value, const char *type = "i32") {
    return op(formatv("arith.constant {0} : {1}", value, type).str());
  }
  Name binary(const char *name, const Name &a, const Name &b, const char *type = "i32") {
    return op(formatv("arith.{0} {1}, {2} : {3}", name, a, b, type).str());
  }
  Name number(const char *value) { return op(formatv("arith.constant {0} : f32", value).str()); }
  Name address(const Name &base, const Name &offset, const char *type, int space) {
    return op(
        formatv("llvm.getelementptr {0}[{1}] : (!llvm.ptr<{2}>, {3}) -> !llvm.ptr<{2}>, i8", base, offset, space, type)
            .str());
  }
  Name address(const Name &base, int64_t offset, int space) {
    return op(
        formatv("llvm.getelementptr {0}[{1}] : (!llvm.ptr<{2}>) -> !llvm.ptr<{2}>, i8", base, offset, space).str());
  }
  std::string lines;

private:
  int count = 0;
};

class Writer {
public:
  explicit Writer(const FlashKernel &kernel) : k(kernel), pitch(2 * k.headDim) {}

  std::string write() {
    prologue();
    Names state = loop();
    epilogue(state);
    return t.lines;
  }

private:
  static constexpr int kBlocks = FlashKernel::kKeys / 8;

  void prologue();
  void copyTile(const Name &global, const Name &firstRow, const Name &shared, int rows);
  Names loop();
  std::vector<Names> scores(const Name &keys);
  void maskScores(std::vector<Names> &s, const Name &tile);
  void accumulate(const std::vector<Names> &p, const Name &values, Names &sums);
  void epilogue(const Names &state);
  Name reduce(Name value, const char *op);
  Names loadMatrix(const Name &pointer, bool transposed);
  Names mma(const Names &a, const Name &b0, const Name &b1, const Names &c);
  Name pack(const Name &low, const Name &high);
  Name exp2(const Name &value, const Name &scale, const Name &offset);
  Name swizzled(const Name &row, const Name &chunkBit, int chunk);
  const char *half() const { return k.bf16 ? "bf16" : "f16"; }
  int outBlocks() const { return k.headDim / 8; }

  const FlashKernel &k;
  int pitch;
  Text t;
  Name tid, lane, warp, smem, head, query, zero, infinity, scale, rowInTile, column;
  Names keys, values;
  std::vector<Names> q;
};

/// Chunks of 16 bytes, one per thread and pass; the chunk is exclusive-or'ed with the row. Rows past the end are zeros.
void Writer::copyTile(const Name &global, const Name &firstRow, const Name &shared, int rows) {
  int chunks = k.headDim / 8;
  for (int pass = 0; pass * FlashKernel::kThreads < rows * chunks; ++pass) {
    Name number = t.binary("addi", tid, t.constant(pass * FlashKernel::kThreads));
    Name row = t.binary("divui", number, t.constant(chunks)), chunk = t.binary("remui", number, t.constant(chunks));
    Name swapped = t.binary("xori", chunk, t.binary("andi", row, t.constant(7)));
    Name offset =
        t.binary("addi", t.binary("muli", row, t.constant(pitch)),
                 t.binary("muli", swapped, t.constant(k.plant == Plant::WrongOffset && pass == 3 ? 4096 : 16)));
    Name globalRow = t.binary("addi", firstRow, row);
    Name inside = t.op(formatv("arith.cmpi slt, {0}, %length : i32", globalRow));
    Name bytes = k.plant == Plant::PastTheEnd
                     ? t.constant(16)
                     : t.op(formatv("arith.select {0}, {1}, {2} : i32", inside, t.constant(16), t.constant(0)));
    Name from =
        t.binary("addi", t.binary("muli", globalRow, t.constant(pitch)), t.binary("muli", chunk, t.constant(16)));
    t.line(formatv("nvvm.cp.async.shared.global {0}, {1}, 16, cache = cg, {2} : !llvm.ptr<3>, !llvm.ptr<1>, i32",
                   t.address(shared, offset, "i32", 3), t.address(global, from, "i32", 1), bytes));
  }
}

Name Writer::swizzled(const Name &row, const Name &chunkBit, int chunk) {
  Name number = t.binary("addi", chunkBit, t.constant(chunk));
  Name swapped = t.binary("xori", number, t.binary("andi", row, t.constant(7)));
  return t.binary("addi", t.binary("muli", row, t.constant(pitch)), t.binary("muli", swapped, t.constant(16)));
}

Names Writer::loadMatrix(const Name &pointer, bool transposed) {
  const char *type = "!llvm.struct<(i32, i32, i32, i32)>";
  Name all = t.op(formatv("nvvm.ldmatrix {0} {{num = 4 : i32, layout = #nvvm.mma_layout<{1}>, shape = "
                          "#nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : "
                          "(!llvm.ptr<3>) -> {2}",
                          pointer, transposed ? "col" : "row", type));
  Names registers;
  for (int i = 0; i < 4; ++i)
    registers.push_back(t.op(formatv("llvm.extractvalue {0}[{1}] : {2}", all, i, type)));
  return registers;
}

Names Writer::mma(const Names &a, const Name &b0, const Name &b1, const Names &c) {
  const char *type = "!llvm.struct<(f32, f32, f32, f32)>";
  Names in = a;
  in.insert(in.end(), {b0, b1});
  if (!k.bf16)
    for (Name &name : in)
      name = t.op(formatv("llvm.bitcast {0} : i32 to vector<2xf16>", name));
  const char *register_ = k.bf16 ? "i32" : "vector<2xf16>";
  Name all = t.op(formatv("nvvm.mma.sync A[{0}, {1}, {2}, {3}] B[{4}, {5}] C[{6}] {{layoutA = #nvvm.mma_layout<row>, "
                          "layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<{7}>, "
                          "multiplicandBPtxType = #nvvm.mma_type<{7}>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : "
                          "({8}, {8}, f32) -> {9}",
                          in[0], in[1], in[2], in[3], in[4], in[5], llvm::join(c, ", "), half(), register_, type));
  Names sums;
  for (int i = 0; i < 4; ++i)
    sums.push_back(t.op(formatv("llvm.extractvalue {0}[{1}] : {2}", all, i, type)));
  return sums;
}

Name Writer::pack(const Name &low, const Name &high) {
  Name pair = t.op(formatv("vector.from_elements {0}, {1} : vector<2xf32>", low, high));
  Name narrow = t.op(formatv("arith.truncf {0} : vector<2xf32> to vector<2x{1}>", pair, half()));
  return t.op(formatv("llvm.bitcast {0} : vector<2x{1}> to i32", narrow, half()));
}

Name Writer::reduce(Name value, const char *op) {
  for (int distance : {1, 2}) {
    Name other = t.op(formatv("nvvm.shfl.sync bfly {0}, {1}, {2}, {3} : f32 -> f32", t.constant(-1), value,
                              t.constant(distance), t.constant(31)));
    value = t.binary(op, value, other, "f32");
  }
  return value;
}

Name Writer::exp2(const Name &value, const Name &scale, const Name &offset) {
  return t.op(formatv("math.exp2 {0} : f32", t.op(formatv("math.fma {0}, {1}, {2} : f32", value, scale, offset))));
}

void Writer::prologue() {
  tid = t.op("nvvm.read.ptx.sreg.tid.x : i32");
  lane = t.binary("andi", tid, t.constant(31));
  warp = t.binary("shrui", tid, t.constant(5));
  query = t.binary("muli", t.op("nvvm.read.ptx.sreg.ctaid.x : i32"), t.constant(FlashKernel::kQueries));
  head = t.binary("muli", t.binary("muli", t.op("nvvm.read.ptx.sreg.ctaid.y : i32"), "%length"), t.constant(pitch));
  smem = t.op("llvm.mlir.addressof @smem : !llvm.ptr<3>");
  zero = t.number("0.0");
  infinity = t.number("0xFF800000");
  scale = t.number(formatv("{0:e8}", 1.44269504088896 / std::sqrt(double(k.headDim))).str().c_str());
  rowInTile = t.binary("addi", t.binary("muli", warp, t.constant(16)), t.binary("shrui", lane, t.constant(2)));
  column = t.binary("muli", t.binary("andi", lane, t.constant(3)), t.constant(2));

  copyTile(t.address("%Q", head, "i32", 1), query, smem, FlashKernel::kQueries);
  Name first = t.constant(0);
  int tileBytes = FlashKernel::kKeys * pitch;
  copyTile(t.address("%K", head, "i32", 1), first, t.address(smem, tileBytes, 3), FlashKernel::kKeys);
  copyTile(t.address("%V", head, "i32", 1), first, t.address(smem, 3 * tileBytes, 3), FlashKernel::kKeys);
  t.line("nvvm.cp.async.commit.group");
  t.line("nvvm.cp.async.wait.group 0");
  t.line("nvvm.barrier0");

  Name low15 = t.binary("andi", lane, t.constant(15)), high = t.binary("shrui", lane, t.constant(4));
  Name row = t.binary("addi", t.binary("muli", warp, t.constant(16)), low15);
  for (int i = 0; i < k.headDim / 16; ++i) {
    Name offset = swizzled(row, high, 2 * i);
    if (k.plant == Plant::MisalignedMatrix && i == 1)
      offset = t.binary("addi", offset, t.constant(8));
    q.push_back(loadMatrix(t.address(smem, offset, "i32", 3), false));
  }
}

std::vector<Names> Writer::scores(const Name &tile) {
  Name low7 = t.binary("andi", lane, t.constant(7)), high = t.binary("shrui", lane, t.constant(4));
  Name row = t.binary("addi", low7, t.binary("muli", high, t.constant(8)));
  Name chunk = t.binary("andi", t.binary("shrui", lane, t.constant(3)), t.constant(1));
  std::vector<Names> s(kBlocks, Names(4, zero));
  for (size_t i = 0; i < q.size(); ++i) {
    Name first = t.address(tile, swizzled(row, chunk, 2 * i), "i32", 3);
    for (int n = 0; n < kBlocks; n += 2) {
      Names b = loadMatrix(t.address(first, n * 8 * pitch, 3), false);
      s[n] = mma(q[i], b[0], b[1], s[n]);
      s[n + 1] = mma(q[i], b[2], b[3], s[n + 1]);
    }
  }
  return s;
}

void Writer::maskScores(std::vector<Names> &s, const Name &tile) {
  Name firstKey = t.binary("addi", t.binary("muli", tile, t.constant(FlashKernel::kKeys)), column);
  Name firstQuery = t.binary("addi", query, rowInTile);
  for (int n = 0; n < kBlocks; ++n)
    for (int e = 0; e < 4; ++e) {
      Name key = t.binary("addi", firstKey, t.constant(8 * n + (e & 1)));
      Name valid = t.op(formatv("arith.cmpi slt, {0}, %length : i32", key));
      if (k.causal) {
        Name row = t.binary("addi", firstQuery, t.constant(8 * (e >> 1)));
        valid = t.binary("andi", valid, t.op(formatv("arith.cmpi sle, {0}, {1} : i32", key, row)), "i1");
      }
      s[n][e] = t.op(formatv("arith.select {0}, {1}, {2} : f32", valid, s[n][e], infinity));
    }
}

void Writer::accumulate(const std::vector<Names> &p, const Name &tile, Names &sums) {
  Name low15 = t.binary("andi", lane, t.constant(15)), high = t.binary("shrui", lane, t.constant(4));
  for (int i = 0; i < kBlocks / 2; ++i) {
    const Names &x = p[2 * i], &y = p[2 * i + 1];
    Names a{pack(x[0], x[1]), pack(x[2], x[3]), pack(y[0], y[1]), pack(y[2], y[3])};
    for (int n = 0; n < outBlocks(); n += 2) {
      Name first = t.address(tile, swizzled(low15, high, n), "i32", 3);
      Names b = loadMatrix(t.address(first, i * 16 * pitch, 3), true);
      for (int part = 0; part < 2; ++part) {
        auto begin = sums.begin() + 4 * (n + part);
        llvm::copy(mma(a, b[2 * part], b[2 * part + 1], Names(begin, begin + 4)), begin);
      }
    }
  }
}

Names Writer::loop() {
  int count = 4 * outBlocks() + 4, tileBytes = FlashKernel::kKeys * pitch;
  Names types(count, "f32"), args, inits;
  for (int i = 0; i < count; ++i) {
    args.push_back("%a" + std::to_string(i));
    bool isMaximum = i >= count - 4 && i < count - 2;
    inits.push_back(args.back() + " = " + (isMaximum ? infinity : zero));
  }
  Name one = t.constant(1), first = t.constant(0), keys = t.constant(FlashKernel::kKeys);
  Name end =
      t.binary("ceildivui", k.causal ? t.binary("minsi", t.binary("addi", query, keys), "%length") : "%length", keys);
  t.line(formatv("%loop:{0} = scf.for %tile = {1} to {2} step {3} iter_args({4}) -> ({5}) : i32 {{", count, first, end,
                 one, llvm::join(inits, ", "), llvm::join(types, ", ")));
  if (k.plant != Plant::NoWait)
    t.line("nvvm.cp.async.wait.group 0");
  if (k.plant == Plant::DivergentBarrier) {
    t.line(formatv("%few = arith.cmpi slt, {0}, {1} : i32", lane, t.constant(16)));
    t.line("scf.if %few {\nnvvm.barrier0\n}");
  } else if (k.plant == Plant::Deadlock) {
    t.line(formatv("%few = arith.cmpi slt, {0}, {1} : i32", warp, t.constant(3)));
    t.line("scf.if %few {\nnvvm.barrier0\n}");
  } else if (k.plant != Plant::NoBarrier) {
    t.line("nvvm.barrier0");
  }
  Name next = t.binary("addi", "%tile", one);
  t.line(formatv("%more = arith.cmpi slt, {0}, {1} : i32\nscf.if %more {{", next, end));
  Name stage = t.binary("muli", t.binary("andi", next, one), t.constant(tileBytes));
  Name row = t.binary("muli", next, keys);
  copyTile(t.address("%K", head, "i32", 1), row, t.address(t.address(smem, tileBytes, 3), stage, "i32", 3),
           FlashKernel::kKeys);
  if (k.plant != Plant::UninitializedRead)
    copyTile(t.address("%V", head, "i32", 1), row, t.address(t.address(smem, 3 * tileBytes, 3), stage, "i32", 3),
             FlashKernel::kKeys);
  t.line("}\nnvvm.cp.async.commit.group");

  stage = t.binary("muli", t.binary("andi", "%tile", one), t.constant(tileBytes));
  std::vector<Names> s = scores(t.address(t.address(smem, tileBytes, 3), stage, "i32", 3));
  maskScores(s, "%tile");
  Names sums(args.begin(), args.end() - 4), maxima(args.end() - 4, args.end() - 2), lengths(args.end() - 2, args.end());
  for (int h = 0; h < 2; ++h) {
    Name maximum = maxima[h];
    for (Names &block : s)
      for (int e = 0; e < 2; ++e)
        maximum = t.binary("maxnumf", maximum, block[2 * h + e], "f32");
    maximum = reduce(maximum, "maxnumf");
    Name offset = t.op(formatv("arith.negf {0} : f32", t.binary("mulf", maximum, scale, "f32")));
    Name rescale = exp2(maxima[h], scale, offset);
    maxima[h] = maximum;
    lengths[h] = t.binary("mulf", lengths[h], rescale, "f32");
    for (Names &block : s)
      for (int e = 0; e < 2; ++e) {
        block[2 * h + e] = exp2(block[2 * h + e], scale, offset);
        lengths[h] = t.binary("addf", lengths[h], block[2 * h + e], "f32");
      }
    for (int n = 0; n < outBlocks(); ++n)
      for (int e = 0; e < 2; ++e) {
        Name &sum = sums[4 * n + 2 * h + e];
        sum = t.binary("mulf", sum, rescale, "f32");
      }
  }
  accumulate(s, t.address(t.address(smem, 3 * tileBytes, 3), stage, "i32", 3), sums);
  llvm::append_range(sums, maxima);
  llvm::append_range(sums, lengths);
  t.line(formatv("scf.yield {0} : {1}\n}", llvm::join(sums, ", "), llvm::join(types, ", ")));
  Names results;
  for (int i = 0; i < count; ++i)
    results.push_back("%loop#" + std::to_string(i));
  return results;
}

void Writer::epilogue(const Names &state) {
  const char *out = k.plant == Plant::WriteToInput ? "%Q" : "%O";
  Name firstRow = t.binary("addi", query, rowInTile);
  for (int h = 0; h < 2; ++h) {
    Name row = t.binary("addi", firstRow, t.constant(8 * h));
    Name sum = reduce(state[state.size() - 2 + h], "addf");
    Name inverse = t.op(formatv("nvvm.rcp.approx.ftz.f {0} : f32", sum));
    Name offset = t.binary("addi", t.binary("addi", head, t.binary("muli", row, t.constant(pitch))),
                           t.binary("muli", column, t.constant(2)));
    Name base = t.address(out, offset, "i32", 1);
    t.line(formatv("%inside{0} = arith.cmpi slt, {1}, %length : i32\nscf.if %inside{0} {{", h, row));
    for (int n = 0; n < outBlocks(); ++n) {
      Name low = t.binary("mulf", state[4 * n + 2 * h], inverse, "f32");
      Name high = t.binary("mulf", state[4 * n + 2 * h + 1], inverse, "f32");
      t.line(formatv("llvm.store {0}, {1} : i32, !llvm.ptr<1>", pack(low, high), t.address(base, 16 * n, 1)));
    }
    t.line("}");
  }
}

} // namespace

const char *FlashKernel::arguments() {
  return "%Q: !llvm.ptr<1>, %K: !llvm.ptr<1>, %V: !llvm.ptr<1>, %O: !llvm.ptr<1>, %length: i32";
}

std::string FlashKernel::body() const { return Writer(*this).write(); }

} // namespace attn::emulator::test
