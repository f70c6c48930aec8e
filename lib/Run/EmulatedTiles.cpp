//===- EmulatedTiles.cpp - AMX on a machine without it --------------------===//
#include "EmulatedTiles.h"

#include "llvm/IR/Instructions.h"
#include "llvm/Support/ErrorHandling.h"
#include <cstdint>
#include <cstring>

namespace attn::run {
namespace {

constexpr int kTiles = 8, kRows = 16, kRowBytes = 64;

struct Tile {
  int rows = 0, bytes = 0; // of a row
  alignas(64) char data[kRows][kRowBytes];
};

/// The tile registers of a thread. Without a configuration there are none.
struct TileRegisters {
  bool configured = false;
  Tile tiles[kTiles];

  Tile &get(uint8_t number) {
    if (!configured)
      llvm::report_fatal_error("a tile instruction without a configuration of the tiles");
    if (number >= kTiles)
      llvm::report_fatal_error("a tile that there is not");
    return tiles[number];
  }
};
thread_local TileRegisters registers;

void loadConfiguration(const void *memory) {
  uint8_t bytes[64];
  std::memcpy(bytes, memory, sizeof bytes);
  if (bytes[0] != 1 || bytes[1] != 0)
    llvm::report_fatal_error("a configuration of tiles that is not of palette 1, from its first row on");
  for (int t = 0; t < kTiles; ++t) {
    uint16_t width;
    std::memcpy(&width, bytes + 16 + 2 * t, sizeof width);
    if (width > kRowBytes || bytes[48 + t] > kRows)
      llvm::report_fatal_error("a configuration of larger tiles than there are");
    registers.tiles[t].rows = bytes[48 + t];
    registers.tiles[t].bytes = width;
    std::memset(registers.tiles[t].data, 0, sizeof registers.tiles[t].data);
  }
  registers.configured = true;
}

void release() { registers.configured = false; }

void zero(uint8_t tile) { std::memset(registers.get(tile).data, 0, sizeof(Tile::data)); }

void load(uint8_t number, const char *memory, int64_t stride) {
  Tile &tile = registers.get(number);
  std::memset(tile.data, 0, sizeof tile.data);
  for (int row = 0; row < tile.rows; ++row)
    std::memcpy(tile.data[row], memory + row * stride, tile.bytes);
}

void store(uint8_t number, char *memory, int64_t stride) {
  Tile &tile = registers.get(number);
  for (int row = 0; row < tile.rows; ++row)
    std::memcpy(memory + row * stride, tile.data[row], tile.bytes);
}

float fromHalf(uint32_t upper) {
  float value;
  std::memcpy(&value, &upper, sizeof value);
  return value;
}

/// A product of two bf16 is an f32, so that only sums are rounded: those of even and of odd terms, then theirs, then
/// with the tile. Denormals are 0 as the mode of the thread says.
void multiply(uint8_t sum, uint8_t left, uint8_t right) {
  constexpr int kColumns = kRowBytes / 4;
  Tile &c = registers.get(sum), &a = registers.get(left), &b = registers.get(right);
  if (c.rows != a.rows || c.bytes != b.bytes || a.bytes != 4 * b.rows)
    llvm::report_fatal_error("a product of tiles whose shapes do not fit");
  for (int row = 0; row < c.rows; ++row) {
    float even[kColumns] = {}, odd[kColumns] = {}, total[kColumns];
    for (int k = 0; k < b.rows; ++k) {
      uint32_t x, words[kColumns];
      std::memcpy(&x, a.data[row] + 4 * k, sizeof x);
      std::memcpy(words, b.data[k], sizeof words);
      float low = fromHalf(x << 16), high = fromHalf(x & 0xffff0000);
      for (int n = 0; n < kColumns; ++n) {
        even[n] += low * fromHalf(words[n] << 16);
        odd[n] += high * fromHalf(words[n] & 0xffff0000);
      }
    }
    std::memcpy(total, c.data[row], sizeof total);
    for (int n = 0; n < kColumns; ++n)
      total[n] += even[n] + odd[n];
    std::memcpy(c.data[row], total, c.bytes);
  }
}

template <typename Function>
void *address(Function *function) {
  return reinterpret_cast<void *>(function);
}

} // namespace

llvm::ArrayRef<EmulatedInstruction> getEmulatedInstructions() {
  static const EmulatedInstruction all[] = {
      {"llvm.x86.ldtilecfg", "attn_emulated_ldtilecfg", address(loadConfiguration)},
      {"llvm.x86.tilerelease", "attn_emulated_tilerelease", address(release)},
      {"llvm.x86.tilezero", "attn_emulated_tilezero", address(zero)},
      {"llvm.x86.tileloadd64", "attn_emulated_tileload", address(load)},
      {"llvm.x86.tileloaddt164", "attn_emulated_tilestream", address(load)},
      {"llvm.x86.tilestored64", "attn_emulated_tilestore", address(store)},
      {"llvm.x86.tdpbf16ps", "attn_emulated_tdpbf16ps", address(multiply)}};
  return all;
}

void emulateTiles(llvm::Module &module) {
  for (const EmulatedInstruction &instruction : getEmulatedInstructions()) {
    llvm::Function *intrinsic = module.getFunction(instruction.intrinsic);
    if (!intrinsic)
      continue;
    llvm::FunctionCallee function = module.getOrInsertFunction(instruction.name, intrinsic->getFunctionType());
    for (llvm::User *user : llvm::make_early_inc_range(intrinsic->users())) {
      auto *call = llvm::cast<llvm::CallInst>(user);
      llvm::SmallVector<llvm::Value *, 3> operands(call->args());
      auto *other = llvm::CallInst::Create(function, operands, "", call->getIterator());
      // Numbers of tiles come as bytes, which the called function may read as more.
      for (auto [i, operand] : llvm::enumerate(operands))
        if (operand->getType()->isIntegerTy(8))
          other->addParamAttr(i, llvm::Attribute::ZExt);
      call->eraseFromParent();
    }
    intrinsic->eraseFromParent();
  }
}

} // namespace attn::run
