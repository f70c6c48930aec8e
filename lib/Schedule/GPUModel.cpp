//===- GPUModel.cpp - What a GPU can do -----------------------------------===//
#include "attn/Schedule/GPUModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace attn {

// Shared memory: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
static const struct {
  StringRef chip;
  bool tensorCores;
  int64_t blockKiB, multiprocessorKiB, multiprocessors;
  StringRef unused;
} kChips[] = {
    {"sm_70", false, 96, 96, 80, "tensor cores"},
    {"sm_75", false, 64, 64, 40, "tensor cores"},
    {"sm_80", true, 163, 164, 108, ""},
    {"sm_86", true, 99, 100, 84, ""},
    {"sm_87", true, 163, 164, 16, ""},
    {"sm_89", true, 99, 100, 128, ""},
    {"sm_90", true, 227, 228, 132, "wgmma"},
    {"sm_90a", true, 227, 228, 132, "wgmma"},
    {"sm_100", true, 227, 228, 148, "tcgen05.mma"},
    {"sm_120", true, 99, 100, 170, ""},
};

FailureOr<GPUModel> GPUModel::get(StringRef chip, std::string &error) {
  for (const auto &known : kChips)
    if (known.chip == chip)
      return GPUModel{chip.str(),
                      known.tensorCores,
                      known.blockKiB << 10,
                      known.multiprocessorKiB << 10,
                      known.multiprocessors,
                      known.unused.str()};
  error = "unknown chip '" + chip.str() + "'; known are " +
          llvm::join(llvm::map_range(kChips, [](const auto &known) { return known.chip; }), ", ");
  return failure();
}

} // namespace attn
