//===- GPUModel.cpp - What a GPU can do -----------------------------------===//
#include "attn/Schedule/GPUModel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace attn {

// Shared memory and FMAs: CUDA C++ Programming Guide, tables "Technical Specifications per Compute Capability" and
// "Throughput of Native Arithmetic Instructions". Multiprocessors, tensor cores and memory: data sheets of V100, T4,
// A100, A40, Orin, L40S, H100 SXM (of whose rate mma.sync reaches 0.63, arXiv 2501.12084), B200 (whose mma.sync is
// taken for that of an A100), RTX 5090.
static const struct {
  StringRef chip;
  bool tensorCores;
  int64_t blockKiB, multiprocessorKiB, multiprocessors, products, fmas;
  double memoryBytes;
  StringRef unused;
} kChips[] = {
    {"sm_70", false, 96, 96, 80, 0, 64, 7.4, "tensor cores"},
    {"sm_75", false, 64, 64, 40, 0, 64, 5, "tensor cores"},
    {"sm_80", true, 163, 164, 108, 1024, 64, 13.4, ""},
    {"sm_86", true, 99, 100, 84, 512, 128, 4.8, ""},
    {"sm_87", true, 163, 164, 16, 1024, 128, 9.8, ""},
    {"sm_89", true, 99, 100, 128, 512, 128, 2.4, ""},
    {"sm_90", true, 227, 228, 132, 1290, 128, 13.9, "wgmma"},
    {"sm_90a", true, 227, 228, 132, 1290, 128, 13.9, "wgmma"},
    {"sm_100", true, 227, 228, 148, 1024, 128, 28, "tcgen05.mma"},
    {"sm_120", true, 99, 100, 170, 256, 128, 4.4, ""},
};

FailureOr<GPUModel> GPUModel::get(StringRef chip, std::string &error) {
  for (const auto &known : kChips)
    if (known.chip == chip)
      return GPUModel{chip.str(),
                      known.tensorCores,
                      known.blockKiB << 10,
                      known.multiprocessorKiB << 10,
                      known.multiprocessors,
                      known.products,
                      known.fmas,
                      known.memoryBytes,
                      known.unused.str()};
  error = "unknown chip '" + chip.str() + "'; known are " +
          llvm::join(llvm::map_range(kChips, [](const auto &known) { return known.chip; }), ", ");
  return failure();
}

} // namespace attn
