// What is linked into every object: complete, small in what it needs, and free of anything one target alone has.

#include "attn/Runtime/Bitcode.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "gtest/gtest.h"

#include <set>

namespace {

std::unique_ptr<llvm::Module> load(llvm::LLVMContext &context, attn::RuntimeForm form) {
  llvm::ArrayRef<unsigned char> bytes = attn::runtimeBitcode(form);
  llvm::StringRef text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  auto module = llvm::parseBitcodeFile({text, "runtime"}, context);
  EXPECT_TRUE(bool(module)) << llvm::toString(module.takeError());
  return module ? std::move(*module) : nullptr;
}

TEST(RuntimeBitcode, DefinesItsDoors) {
  for (attn::RuntimeForm form : {attn::RuntimeForm::Serial, attn::RuntimeForm::Threads, attn::RuntimeForm::Device}) {
    llvm::LLVMContext context;
    auto module = load(context, form);
    ASSERT_TRUE(module);
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    for (const char *name : {"attn_call", "attn_range", "attn_forget_memory"}) {
      llvm::Function *function = module->getFunction(name);
      ASSERT_TRUE(function && !function->isDeclaration()) << name;
      EXPECT_TRUE(function->hasHiddenVisibility()) << name;
    }
    for (const char *name : {"attn_last_error", "attn_plan_free"}) {
      llvm::Function *function = module->getFunction(name);
      ASSERT_TRUE(function && !function->isDeclaration()) << name;
      EXPECT_TRUE(function->hasWeakAnyLinkage() && function->hasDefaultVisibility()) << name;
    }
    EXPECT_TRUE(module->getNamedGlobal("llvm.global_dtors")) << "kept memory leaks from libraries that are unloaded";
  }
}

TEST(RuntimeBitcode, NeedsLibcAndOpenMPAlone) {
  const std::set<llvm::StringRef> libc = {"malloc", "calloc", "realloc", "aligned_alloc",
                                          "free",   "memcpy", "memset",  "snprintf"};
  for (attn::RuntimeForm form : {attn::RuntimeForm::Serial, attn::RuntimeForm::Threads, attn::RuntimeForm::Device}) {
    llvm::LLVMContext context;
    auto module = load(context, form);
    ASSERT_TRUE(module);
    for (llvm::Function &function : *module) {
      llvm::StringRef name = function.getName();
      if (!function.isDeclaration() || libc.count(name) ||
          (form == attn::RuntimeForm::Threads && name.starts_with("__kmpc_")) ||
          (form == attn::RuntimeForm::Device && name.starts_with("attn_device_")))
        continue;
      EXPECT_TRUE(name.starts_with("llvm.")) << name.str();
      EXPECT_FALSE(name.starts_with("llvm.x86") || name.starts_with("llvm.va_")) << name.str();
    }
    EXPECT_TRUE(module->getModuleInlineAsm().empty());
  }
}

TEST(RuntimeBitcode, DriverNeedsLibcAndDlopenAlone) {
  const std::set<llvm::StringRef> allowed = {"malloc", "calloc",  "free",   "snprintf", "strcmp",
                                             "strstr", "strcspn", "dlopen", "dlsym",    "sched_yield"};
  llvm::ArrayRef<unsigned char> bytes = attn::driverBitcode();
  llvm::LLVMContext context;
  auto module =
      llvm::parseBitcodeFile({{reinterpret_cast<const char *>(bytes.data()), bytes.size()}, "driver"}, context);
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  EXPECT_FALSE(llvm::verifyModule(**module, &llvm::errs()));
  for (llvm::Function &function : **module) {
    llvm::StringRef name = function.getName();
    if (!function.isDeclaration())
      EXPECT_TRUE(function.hasHiddenVisibility() || function.hasLocalLinkage()) << name.str();
    else if (!allowed.count(name))
      EXPECT_TRUE(name.starts_with("llvm.") && !name.starts_with("llvm.x86") && !name.starts_with("llvm.va_"))
          << name.str();
  }
}

} // namespace
