//===- Kernel.cpp - Kernels written as text, and their launch ---------------===//
#include "Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/APFloat.h"

using namespace mlir;

namespace attn::emulator::test {

Kernel::Kernel(const std::string &arguments, const std::string &body, EmulatorOptions options)
    : context(std::make_unique<MLIRContext>()) {
  context->loadDialect<arith::ArithDialect, gpu::GPUDialect, LLVM::LLVMDialect, math::MathDialect, NVVM::NVVMDialect,
                       scf::SCFDialect, vector::VectorDialect>();
  handler = std::make_unique<ScopedDiagnosticHandler>(context.get(), [this](Diagnostic &diagnostic) {
    errors += diagnostic.str() + "\n";
    return success();
  });
  source = "gpu.module @m {\n"
           "llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>\n"
           "llvm.func @k(" +
           arguments + ") attributes {nvvm.kernel} {\n" + body + "\nllvm.return\n}\n}\n";
  module = parseSourceString<ModuleOp>(source, context.get(), "kernel.mlir");
  if (!module)
    return;
  auto created = Emulator::create(*module->getOps<gpu::GPUModuleOp>().begin(), options);
  if (succeeded(created))
    emulator = std::move(*created);
}

bool Kernel::canLaunch(const LaunchDims &dims, ArrayRef<KernelArgument> arguments,
                       ArrayRef<GlobalBuffer> buffers) const {
  LaunchReport report;
  return succeeded(emulator->launch("k", dims, arguments, buffers, report));
}

LaunchReport Kernel::launch(const LaunchDims &dims, ArrayRef<KernelArgument> arguments,
                            ArrayRef<GlobalBuffer> buffers) const {
  LaunchReport report;
  if (!emulator) {
    ADD_FAILURE() << "the kernel did not compile: " << errors << source;
    return report;
  }
  EXPECT_TRUE(succeeded(emulator->launch("k", dims, arguments, buffers, report))) << errors;
  return report;
}

unsigned Kernel::lineOf(StringRef text) const {
  size_t position = StringRef(source).find(text);
  return position == StringRef::npos ? 0 : StringRef(source).take_front(position).count('\n') + 1;
}

unsigned lineOf(const Fault &fault) {
  auto location = fault.location->findInstanceOf<FileLineColLoc>();
  return location ? location.getLine() : 0;
}

static uint16_t narrow(float value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool lost;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &lost);
  return number.bitcastToAPInt().getZExtValue();
}

static float widen(uint16_t bits, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(semantics, llvm::APInt(16, bits));
  bool lost;
  number.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &lost);
  return number.convertToFloat();
}

uint16_t toBF16(float value) { return narrow(value, llvm::APFloat::BFloat()); }
float fromBF16(uint16_t bits) { return widen(bits, llvm::APFloat::BFloat()); }
uint16_t toF16(float value) { return narrow(value, llvm::APFloat::IEEEhalf()); }
float fromF16(uint16_t bits) { return widen(bits, llvm::APFloat::IEEEhalf()); }

} // namespace attn::emulator::test
