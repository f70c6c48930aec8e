//===- Matrix.cpp - mma, ldmatrix and stmatrix ------------------------------===//
//
// One register of a fragment, seen over the 32 lanes, is an 8x8 matrix of 16-bit elements in row-major order: lane
// 4r + c holds columns 2c and 2c + 1 of row r.
#include "Access.h"

using namespace attn::emulator;

#pragma clang fp contract(fast)

namespace {

constexpr uint32_t kRowBytes = 16, kRows = 8;

using Halves = Vector<uint16_t, 8>;
using Words = Vector<uint32_t, 8>;
using Floats = Vector<float, 8>;
using HalfFloats = Vector<_Float16, 8>;
using Matrix = Vector<uint16_t, 64>;

struct BFloat {
  static Floats expand(Halves bits) { return __builtin_bit_cast(Floats, __builtin_convertvector(bits, Words) << 16); }
  static Floats expandLow(Words pairs) { return __builtin_bit_cast(Floats, pairs << 16); }
  static Floats expandHigh(Words pairs) { return __builtin_bit_cast(Floats, pairs & 0xffff0000u); }
};

struct Float16 {
  static Floats expand(Halves bits) { return __builtin_convertvector(__builtin_bit_cast(HalfFloats, bits), Floats); }
  static Floats expandLow(Words pairs) { return expand(__builtin_convertvector(pairs & 0xffffu, Halves)); }
  static Floats expandHigh(Words pairs) { return expand(__builtin_convertvector(pairs >> 16, Halves)); }
};

/// Rows of B^T, which its registers hold, as rows of B: `b[k]` has the 8 columns.
template <typename Type>
void readB(const uint32_t *registers, uint32_t k, Floats *b) {
  for (uint32_t r = 0; r < k / kRows; ++r) {
    LanesU32 v = load<LanesU32>(registers + r * kLanes);
    Words pairs[4] = {__builtin_shufflevector(v, v, 0, 4, 8, 12, 16, 20, 24, 28),
                      __builtin_shufflevector(v, v, 1, 5, 9, 13, 17, 21, 25, 29),
                      __builtin_shufflevector(v, v, 2, 6, 10, 14, 18, 22, 26, 30),
                      __builtin_shufflevector(v, v, 3, 7, 11, 15, 19, 23, 27, 31)};
    for (uint32_t i = 0; i < 4; ++i) {
      b[kRows * r + 2 * i] = Type::expandLow(pairs[i]);
      b[kRows * r + 2 * i + 1] = Type::expandHigh(pairs[i]);
    }
  }
}

/// Rows 8h to 8h + 7 of a 16x8 result. The columns of a row are spread over two registers, even and odd.
template <uint32_t K>
void multiplyHalf(const float *a, const Floats *b, const float *c, float *d) {
  Floats rows[kRows];
  for (uint32_t i = 0; i < kRows; ++i) {
    auto even = load<Vector<float, 4>>(c + 4 * i), odd = load<Vector<float, 4>>(c + kLanes + 4 * i);
    rows[i] = __builtin_shufflevector(even, odd, 0, 4, 1, 5, 2, 6, 3, 7);
  }
#pragma clang loop unroll(full)
  for (uint32_t k = 0; k < K; ++k) {
    // Matrices of A: rows 0-7 and 8-15 of columns 0-7, then of columns 8-15.
    const float *column = a + (k / kRows) * 2 * 64 + k % kRows;
    for (uint32_t i = 0; i < kRows; ++i)
      rows[i] += Floats(column[kRows * i]) * b[k];
  }
  for (uint32_t i = 0; i < kRows; ++i) {
    store(d + 4 * i, __builtin_shufflevector(rows[i], rows[i], 0, 2, 4, 6));
    store(d + kLanes + 4 * i, __builtin_shufflevector(rows[i], rows[i], 1, 3, 5, 7));
  }
}

template <typename Type, uint32_t K>
void multiply(const uint32_t *a, const uint32_t *b, const float *c, float *d) {
  alignas(64) float rowsA[K / 4 * 64];
  Floats rowsB[K];
  for (uint32_t i = 0; i < K / 4 * kRows; ++i)
    store(rowsA + kRows * i, Type::expand(load<Halves>(a + 4 * i)));
  readB<Type>(b, K, rowsB);
  multiplyHalf<K>(rowsA, rowsB, c, d);
  multiplyHalf<K>(rowsA + 64, rowsB, c + 2 * kLanes, d + 2 * kLanes);
}

/// Three perfect shuffles turn the number of an element, row and column, around by three bits.
Matrix transpose(Matrix m) {
  for (int round = 0; round < 3; ++round)
    m = __builtin_shufflevector(m, m, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41, 10, 42, 11,
                                43, 12, 44, 13, 45, 14, 46, 15, 47, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22,
                                54, 23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
  return m;
}

/// The addresses of the rows of ldmatrix and stmatrix, checked; 0 where one of them is wrong.
bool checkRows(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *addresses, uint32_t matrices, bool write) {
  if (!checkConvergent(warp, site, mask))
    return false;
  uint32_t lanes = kFullMask >> (kLanes - kRows * matrices);
  if (checkSharedBounds(warp, site, lanes, addresses, kRowBytes) != lanes)
    return false;
  const ThreadBlock &block = *warp->block;
  if (block.counts)
    countShared(warp, site, lanes, addresses, kRowBytes);
  if (block.checks)
    forLanes(lanes, [&](uint32_t lane) {
      if (write)
        noteWrite(warp, site, lane, addresses[lane], kRowBytes);
      else
        noteRead(warp, site, lane, addresses[lane], kRowBytes, /*together=*/true);
    });
  return true;
}

} // namespace

extern "C" {

void attn_emu_ldmatrix(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *addresses, uint32_t matrices,
                       uint32_t transposed, uint16_t *out) {
  if (!checkRows(warp, site, mask, addresses, matrices, /*write=*/false)) {
    __builtin_memset(out, 0xff, sizeof(Matrix) * matrices);
    return;
  }
  const char *shared = warp->block->shared;
  for (uint32_t row = 0; row < kRows * matrices; ++row)
    store(out + 8 * row, load<Halves>(shared + addresses[row]));
  for (uint32_t i = 0; transposed && i < matrices; ++i)
    store(out + 64 * i, transpose(load<Matrix>(out + 64 * i)));
}

void attn_emu_stmatrix(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *addresses, uint32_t matrices,
                       uint32_t transposed, uint16_t *in) {
  if (!checkRows(warp, site, mask, addresses, matrices, /*write=*/true))
    return;
  for (uint32_t i = 0; transposed && i < matrices; ++i)
    store(in + 64 * i, transpose(load<Matrix>(in + 64 * i)));
  char *shared = warp->block->shared;
  for (uint32_t row = 0; row < kRows * matrices; ++row)
    store(shared + addresses[row], load<Halves>(in + 8 * row));
}

/// m16n8kK with 16-bit inputs: K/4 registers of A, K/8 of B, four of C and D.
void attn_emu_mma(Warp *warp, uint32_t site, uint32_t mask, uint32_t bfloat, uint32_t k, const uint32_t *ab,
                  const float *c, float *d) {
  if (!checkConvergent(warp, site, mask)) {
    __builtin_memset(d, 0xff, 4 * sizeof(LanesF32));
    return;
  }
  const uint32_t *b = ab + k / 4 * kLanes;
  if (k == 16)
    (bfloat ? multiply<BFloat, 16> : multiply<Float16, 16>)(ab, b, c, d);
  else
    (bfloat ? multiply<BFloat, 8> : multiply<Float16, 8>)(ab, b, c, d);
}

} // extern "C"
