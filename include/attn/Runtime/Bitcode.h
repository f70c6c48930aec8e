// The C runtime as LLVM bitcode, to be linked into every compiled object.
#ifndef ATTN_RUNTIME_BITCODE_H
#define ATTN_RUNTIME_BITCODE_H

#include "llvm/ADT/ArrayRef.h"

namespace attn {

/// Tasks on the calling thread, on OpenMP threads, or as kernels of a device (attn/Runtime/Device.h).
enum class RuntimeForm { Serial, Threads, Device };

/// A module that defines attn_call, attn_range and attn_forget_memory (hidden) and attn_last_error and attn_plan_free
/// (weak, exported). Its code is generic LP64 code without target intrinsics; the linker of the object sets triple and
/// data layout, drops the "target-cpu" and "target-features" attributes and internalises what is not exported. It calls
/// libc; with threads OpenMP too (__kmpc_*), for a device the functions of Device.h.
llvm::ArrayRef<unsigned char> runtimeBitcode(RuntimeForm form);

/// The same as an object file for this machine, to be loaded into this process beside objects without a runtime of
/// their own; its thread-local variable is in the emulated form that a JIT can link.
llvm::ArrayRef<unsigned char> runtimeObject(RuntimeForm form);

/// A module that defines the functions of Device.h, hidden, over the CUDA driver. It calls libc and dlopen.
llvm::ArrayRef<unsigned char> driverBitcode();

/// A module that defines attn_amx_granted (attn/Runtime/Amx.h), hidden, for x86-64. It calls nothing.
llvm::ArrayRef<unsigned char> tilesBitcode();

/// A module that defines attn_choose_level (attn/Runtime/Levels.h), hidden, for x86-64. It calls attn_amx_granted.
llvm::ArrayRef<unsigned char> levelsBitcode();

} // namespace attn

#endif
