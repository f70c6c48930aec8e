//===- PTX.cpp - GPU kernels to text and machine code ---------------------===//
#include "attn/Target/PTX.h"
#include "Optimise.h"

#include "attn/Support/Errors.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

using namespace mlir;

namespace attn {

static std::unique_ptr<llvm::TargetMachine> createMachine(StringRef chip) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, chip, /*features=*/"", {}, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

// An unresolved function would only be found by the driver of a user's machine.
static LogicalResult checkResolved(gpu::GPUModuleOp device, const llvm::Module &module) {
  for (const llvm::Function &fn : module)
    if (fn.isDeclaration() && !fn.isIntrinsic() && !fn.use_empty())
      return device.emitError() << "the GPU code calls '" << fn.getName().str()
                                << "', which PTX alone does not have; use another function in the score or mask region";
  return success();
}

FailureOr<std::string> emitPTX(gpu::GPUModuleOp device, StringRef chip) {
  MLIRContext &context = *device.getContext();
  registerBuiltinDialectTranslation(context);
  registerGPUDialectTranslation(context);
  registerLLVMDialectTranslation(context);
  registerNVVMDialectTranslation(context);
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(chip);
  if (!machine)
    return device.emitError("this LLVM has no NVPTX back end");
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(device, llvmContext);
  if (!module)
    return device.emitError("translation to LLVM IR failed");
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  auto all = [](llvm::PassBuilder &builder) {
    return builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3);
  };
  llvm::cantFail(optimise(*module, *machine, all));
  if (failed(checkResolved(device, *module)))
    return failure();
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream os(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return device.emitError("LLVM cannot write PTX");
  passes.run(*module);
  return text.str().str();
}

static llvm::Expected<std::string> findAssembler() {
  SmallVector<std::string> folders;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (auto folder = llvm::sys::Process::GetEnv(variable))
      folders.push_back(*folder + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  if (auto path = llvm::sys::findProgramByName("ptxas"))
    return *path;
  for (StringRef folder : folders)
    if (auto path = llvm::sys::findProgramByName("ptxas", {folder}))
      return *path;
  return makeError("no ptxas: it was looked for in PATH and in ", llvm::join(folders, ", "),
                   "; install a CUDA toolkit or set CUDA_HOME, or use --emit=ptx, which needs none");
}

bool hasPTXAssembler() {
  auto program = findAssembler();
  if (program)
    return true;
  llvm::consumeError(program.takeError());
  return false;
}

llvm::Expected<std::string> assemblePTX(StringRef ptx, StringRef chip) {
  auto program = findAssembler();
  if (!program)
    return program.takeError();
  SmallString<128> input, output, messages;
  if (llvm::sys::fs::createTemporaryFile("attn", "ptx", input) ||
      llvm::sys::fs::createTemporaryFile("attn", "cubin", output) ||
      llvm::sys::fs::createTemporaryFile("attn", "txt", messages))
    return makeError("no temporary file could be made for ptxas");
  llvm::FileRemover removeInput(input), removeOutput(output), removeMessages(messages);
  {
    std::error_code code;
    llvm::raw_fd_ostream file(input, code);
    if (code)
      return makeError(input, ": ", code.message());
    file << ptx;
  }
  std::string target = ("-arch=" + chip).str();
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(messages), StringRef(messages)};
  if (llvm::sys::ExecuteAndWait(*program, {*program, target, "-o", output, input}, std::nullopt, redirects)) {
    auto said = llvm::MemoryBuffer::getFile(messages);
    return makeError("ptxas refused the PTX: ", said ? (*said)->getBuffer() : StringRef("(no message)"));
  }
  auto bytes = llvm::MemoryBuffer::getFile(output);
  if (!bytes)
    return makeError(output, ": ", bytes.getError().message());
  return (*bytes)->getBuffer().str();
}

} // namespace attn
