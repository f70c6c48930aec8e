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

StringRef Kernel::lineOf(const Fault &fault) const {
  auto location = fault.location->findInstanceOf<FileLineColLoc>();
  SmallVector<StringRef> lines;
  StringRef(source).split(lines, '\n');
  return location ? lines[location.getLine() - 1] : "no line";
}

std::vector<int32_t> runLanes(const std::vector<int32_t> &in, const std::string &body) {
  Kernel kernel("%in: !llvm.ptr<1>, %out: !llvm.ptr<1>", R"(
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %full = arith.constant -1 : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c16 = arith.constant 16 : i32
    %c31 = arith.constant 31 : i32
    %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %pin = llvm.getelementptr %in[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %x = llvm.load %pin : !llvm.ptr<1> -> i32
    )" + body + R"(
    %pout = llvm.getelementptr %out[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %r, %pout : i32, !llvm.ptr<1>)");
  std::vector<int32_t> out(32, -77);
  LaunchReport report = kernel.launch(kOneWarp, {in.data(), out.data()}, {input(in, "in"), output(out, "out")});
  EXPECT_EQ(report.faultCount, 0u) << (report.faults.empty() ? "" : report.faults[0].text);
  return out;
}

std::vector<int32_t> numbers() {
  std::vector<int32_t> in(32);
  for (int lane = 0; lane < 32; ++lane)
    in[lane] = lane * lane - 100;
  return in;
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
