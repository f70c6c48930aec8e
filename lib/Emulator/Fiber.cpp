//===- Fiber.cpp - A stack of its own for each warp -------------------------===//
//
// A switch saves what the C calling convention of the processor has the callee keep, some 3 ns; elsewhere ucontext,
// which costs a system call.
#include "Fiber.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Process.h"
#include <cstdint>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ATTN_ASAN_FIBERS
#include <sanitizer/common_interface_defs.h>
#endif
#endif

#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__ELF__)
#define ATTN_ASSEMBLY_FIBERS
/// Saves the registers on the stack, its pointer to `*from`, and goes on from the stack `to`.
extern "C" void attn_emu_switch(void **from, void *to);
/// Where a new stack starts: calls the function in one saved register with the other as argument.
extern "C" void attn_emu_start();
#else
#include <ucontext.h>
#endif

#if defined(__x86_64__) && defined(ATTN_ASSEMBLY_FIBERS)
asm(R"(
.text
.globl attn_emu_switch
.hidden attn_emu_switch
.type attn_emu_switch,@function
attn_emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size attn_emu_switch,.-attn_emu_switch
.globl attn_emu_start
.hidden attn_emu_start
.type attn_emu_start,@function
attn_emu_start:
  movq %r12, %rdi
  callq *%r13
  ud2
.size attn_emu_start,.-attn_emu_start
)");
#elif defined(__aarch64__) && defined(ATTN_ASSEMBLY_FIBERS)
asm(R"(
.text
.globl attn_emu_switch
.hidden attn_emu_switch
.type attn_emu_switch,@function
attn_emu_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size attn_emu_switch,.-attn_emu_switch
.globl attn_emu_start
.hidden attn_emu_start
.type attn_emu_start,@function
attn_emu_start:
  mov x0, x19
  blr x20
  brk #0
.size attn_emu_start,.-attn_emu_start
)");
#endif

namespace attn::emulator {

constexpr size_t kStackBytes = 1 << 20;

struct Fiber::Context {
#ifdef ATTN_ASSEMBLY_FIBERS
  void *stackPointer = nullptr;
#else
  ucontext_t context;
#endif
#ifdef ATTN_ASAN_FIBERS
  void *fakeStack = nullptr;
  const void *bottom = nullptr;
  size_t size = 0;
#endif
};

Fiber::Fiber() : caller(std::make_unique<Context>()), self(std::make_unique<Context>()) {
  std::error_code error;
  size_t page = llvm::sys::Process::getPageSizeEstimate();
  stack = llvm::sys::Memory::allocateMappedMemory(kStackBytes + page, nullptr,
                                                  llvm::sys::Memory::MF_READ | llvm::sys::Memory::MF_WRITE, error);
  if (error)
    llvm::report_fatal_error("the emulator could not allocate the stack of a warp");
  // The page below the stack stops an overflow.
  llvm::sys::MemoryBlock guard(stack.base(), page);
  error = llvm::sys::Memory::protectMappedMemory(guard, llvm::sys::Memory::MF_READ);
  if (error)
    llvm::report_fatal_error("the emulator could not protect the stack of a warp");
#ifdef ATTN_ASAN_FIBERS
  self->bottom = static_cast<char *>(stack.base()) + page;
  self->size = kStackBytes;
#endif
}

Fiber::~Fiber() { llvm::sys::Memory::releaseMappedMemory(stack); }

void Fiber::enter(void *pointer) {
  auto *fiber = static_cast<Fiber *>(pointer);
#ifdef ATTN_ASAN_FIBERS
  __sanitizer_finish_switch_fiber(nullptr, &fiber->caller->bottom, &fiber->caller->size);
#endif
  fiber->function(fiber->argument);
  fiber->done = true;
  fiber->switchTo(fiber->self.get(), fiber->caller.get(), /*ends=*/true);
}

void Fiber::resume() { switchTo(caller.get(), self.get(), /*ends=*/false); }
void Fiber::suspend() { switchTo(self.get(), caller.get(), /*ends=*/false); }

#ifdef ATTN_ASSEMBLY_FIBERS

void Fiber::reset(Function newFunction, void *newArgument) {
  function = newFunction;
  argument = newArgument;
  done = false;
  auto *top = reinterpret_cast<uintptr_t *>(static_cast<char *>(stack.base()) + stack.allocatedSize());
#ifdef __x86_64__
  // r15, r14, r13, r12, rbx, rbp, the address to return to, and 8 bytes that align the call.
  uintptr_t *frame = top - 8;
  frame[2] = reinterpret_cast<uintptr_t>(&Fiber::enter);
  frame[3] = reinterpret_cast<uintptr_t>(this);
  frame[5] = 0;
  frame[6] = reinterpret_cast<uintptr_t>(&attn_emu_start);
#else
  // x19 to x30, d8 to d15.
  uintptr_t *frame = top - 20;
  frame[0] = reinterpret_cast<uintptr_t>(this);
  frame[1] = reinterpret_cast<uintptr_t>(&Fiber::enter);
  frame[10] = 0;
  frame[11] = reinterpret_cast<uintptr_t>(&attn_emu_start);
#endif
  self->stackPointer = frame;
}

void Fiber::switchTo(Context *from, Context *to, bool ends) {
#ifdef ATTN_ASAN_FIBERS
  __sanitizer_start_switch_fiber(ends ? nullptr : &from->fakeStack, to->bottom, to->size);
#endif
  attn_emu_switch(&from->stackPointer, to->stackPointer);
#ifdef ATTN_ASAN_FIBERS
  __sanitizer_finish_switch_fiber(from->fakeStack, &to->bottom, &to->size);
#endif
}

#else

static void enterFromHalves(unsigned high, unsigned low) {
  auto pointer = uintptr_t(high) << 32 | low;
  auto *call = reinterpret_cast<std::pair<void (*)(void *), void *> *>(pointer);
  call->first(call->second);
}

void Fiber::reset(Function newFunction, void *newArgument) {
  function = newFunction;
  argument = newArgument;
  done = false;
  entry = {&Fiber::enter, this};
  getcontext(&self->context);
  size_t page = llvm::sys::Process::getPageSizeEstimate();
  self->context.uc_stack.ss_sp = static_cast<char *>(stack.base()) + page;
  self->context.uc_stack.ss_size = kStackBytes;
  self->context.uc_link = nullptr;
  auto pointer = reinterpret_cast<uintptr_t>(&entry);
  makecontext(&self->context, reinterpret_cast<void (*)()>(enterFromHalves), 2, unsigned(uint64_t(pointer) >> 32),
              unsigned(pointer));
}

void Fiber::switchTo(Context *from, Context *to, bool ends) { swapcontext(&from->context, &to->context); }

#endif

} // namespace attn::emulator
