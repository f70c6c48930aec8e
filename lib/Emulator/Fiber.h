//===- Fiber.h - A stack of its own for each warp ---------------------------===//
#ifndef ATTN_LIB_EMULATOR_FIBER_H
#define ATTN_LIB_EMULATOR_FIBER_H

#include "llvm/Support/Memory.h"
#include <memory>

namespace attn::emulator {

/// Runs a function that can stop in its midst. A fiber that is dropped while it stands leaves its frames behind without
/// running destructors.
class Fiber {
public:
  using Function = void (*)(void *);

  Fiber();
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  /// From the start at the next `resume`.
  void reset(Function function, void *argument);
  /// Runs until `suspend` or the end.
  void resume();
  /// Back to where `resume` was called. Only inside the fiber.
  void suspend();
  bool isDone() const { return done; }

private:
  struct Context;
  static void enter(void *fiber);
  void switchTo(Context *from, Context *to, bool ends);

  std::unique_ptr<Context> caller, self;
  llvm::sys::MemoryBlock stack;
  Function function = nullptr;
  void *argument = nullptr;
  /// What ucontext starts, by its address.
  std::pair<Function, void *> entry;
  bool done = true;
};

} // namespace attn::emulator

#endif // ATTN_LIB_EMULATOR_FIBER_H
