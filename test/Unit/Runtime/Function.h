// Function tables as codegen writes them, tensors as callers pass them, and a plain attention kernel as compiled code
// would be.

#ifndef ATTN_TEST_UNIT_RUNTIME_FUNCTION_H
#define ATTN_TEST_UNIT_RUNTIME_FUNCTION_H

#include "attn/Runtime/Call.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace attn::test {

/// A tensor on the CPU with memory of its own.
struct Tensor {
  std::vector<int64_t> shape, strides; ///< no strides: compact
  std::vector<char> bytes;
  DLTensor dl = {};

  Tensor(std::vector<int64_t> shape, uint8_t code = kDLFloat, uint8_t bits = 32);
  const DLTensor *get();
  template <typename T>
  T *data() {
    return reinterpret_cast<T *>(bytes.data());
  }
  void fill(float value);
  void randomise(unsigned seed);
};

/// A function in the making: dims below 0 are symbols, as in AttnTensor.
struct Function {
  std::vector<AttnTensor> tensors;
  std::vector<AttnSymbol> symbols;
  std::vector<AttnKernel> kernels;
  std::vector<void *> code;
  std::string strings;
  int64_t threads = 0;

  explicit Function(const char *name) { addString(name); }
  int64_t addString(const char *text);
  int64_t addTensor(const char *name, int64_t role, std::vector<int64_t> dims, int64_t code = kDLFloat,
                    int64_t bits = 32);
  int64_t addSymbol(const char *name);
  template <typename T>
  int64_t addCode(T *pointer) {
    code.push_back(reinterpret_cast<void *>(pointer));
    return code.size() - 1;
  }

  /// The flat table; call once all is added. It stays valid and at one address.
  const AttnFunction *table();
  int call(std::vector<Tensor *> args, int mode = ATTN_CALL, attn_plan **plan = nullptr);

private:
  std::vector<int64_t> flat;
};

/// The usual attention function: q, k, v, then out and, where asked for, lse; symbols batch, heads, kv_heads, queries,
/// keys. Head dimension `d`, value dimension `dv`. Code is the plain kernel below.
Function makeAttention(int64_t d, int64_t dv, bool lse);

/// What the plain kernel attends to, and how often it computed every row.
struct PlainKernel {
  std::function<bool(int64_t b, int64_t h, int64_t i, int64_t j)> keep;
  int64_t step = 1;        ///< of the lattice
  int64_t tile = 48;       ///< query_tile
  std::vector<int> visits; ///< by (b, h, token, part)
  int64_t scratchFloats = 1;
};
extern PlainKernel plainKernel;

/// Attention in double from the definition, for the mask of the plain kernel.
void reference(Tensor &q, Tensor &k, Tensor &v, int64_t offset, Tensor &out, Tensor &lse);

} // namespace attn::test

#endif
