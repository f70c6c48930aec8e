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
using TwoRows = Vector<float, 16>;
using HalfFloats = Vector<_Float16, 8>;

struct BFloat {
  static Floats expand(Halves bits) { return __builtin_bit_cast(Floats, __builtin_convertvector(bits, Words) << 16); }
};

struct Float16 {
  static Floats expand(Halves bits) { return __builtin_convertvector(__builtin_bit_cast(HalfFloats, bits), Floats); }
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
      b[kRows * r + 2 * i] = Type::expand(__builtin_convertvector(pairs[i] & 0xffff, Halves));
      b[kRows * r + 2 * i + 1] = Type::expand(__builtin_convertvector(pairs[i] >> 16, Halves));
    }
  }
}

TwoRows splatRows(float first, float second) {
  return TwoRows{first,  first,  first,  first,  first,  first,  first,  first,
                 second, second, second, second, second, second, second, second};
}

/// Rows 8h to 8h + 7 of a 16x8 result. The columns of a row are spread over two registers.
template <uint32_t K>
void multiplyHalf(const float *a, const TwoRows *b, const float *c, float *d) {
  TwoRows rows[4];
  for (uint32_t i = 0; i < 2; ++i) {
    TwoRows even = load<TwoRows>(c + 16 * i), odd = load<TwoRows>(c + kLanes + 16 * i);
    rows[2 * i] = __builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    rows[2 * i + 1] = __builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
#pragma clang loop unroll(full)
  for (uint32_t k = 0; k < K; ++k) {
    // Matrices of A: rows 0-7 and 8-15 of columns 0-7, then of columns 8-15.
    const float *column = a + (k / kRows) * 2 * 64 + k % kRows;
    for (uint32_t i = 0; i < 4; ++i)
      rows[i] += splatRows(column[16 * i], column[16 * i + 8]) * b[k];
  }
  for (uint32_t i = 0; i < 2; ++i) {
    TwoRows x = rows[2 * i], y = rows[2 * i + 1];
    store(d + 16 * i, __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30));
    store(d + kLanes + 16 * i,
          __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31));
  }
}

template <typename Type, uint32_t K>
void multiply(const uint32_t *a, const uint32_t *b, const float *c, float *d) {
  constexpr uint32_t matrices = K / 4;
  alignas(64) float expandedA[matrices * 64];
  Floats rowsB[K];
  TwoRows doubledB[K];
  for (uint32_t i = 0; i < matrices * 8; ++i)
    store(expandedA + 8 * i, Type::expand(load<Halves>(a + 4 * i)));
  readB<Type>(b, K, rowsB);
  for (uint32_t k = 0; k < K; ++k)
    doubledB[k] = __builtin_shufflevector(rowsB[k], rowsB[k], 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7);
  multiplyHalf<K>(expandedA, doubledB, c, d);
  multiplyHalf<K>(expandedA + 64, doubledB, c + 2 * kLanes, d + 2 * kLanes);
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
        noteRead(warp, site, lane, addresses[lane], kRowBytes);
    });
  return true;
}

using Matrix = Vector<uint16_t, 64>;

Matrix transpose(Matrix m) {
  Matrix result;
  for (uint32_t i = 0; i < 64; ++i)
    result[i] = m[i % 8 * 8 + i / 8];
  return result;
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
