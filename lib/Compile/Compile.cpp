//===- Compile.cpp - Write what a spec becomes ----------------------------===//
#include "attn/Compile/Compile.h"

#include "attn/Support/Errors.h"
#include "attn/Target/Header.h"
#include "attn/Target/PTX.h"
#include "attn/Target/Picture.h"
#include "attn/Target/Report.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using llvm::Error;

namespace attn {
namespace {

/// For failures that diagnostics have told.
Error toldAlready() { return llvm::createStringError(llvm::inconvertibleErrorCode(), ""); }

std::string listFunctions(ModuleOp module) {
  std::string names;
  for (auto func : module.getOps<func::FuncOp>())
    if (!func.isPrivate())
      names += (names.empty() ? "" : ", ") + func.getName().str();
  return names.empty() ? "none" : names;
}

Error selectFunction(ModuleOp module, StringRef name) {
  if (name.empty())
    return Error::success();
  auto wanted = module.lookupSymbol<func::FuncOp>(name);
  if (!wanted || wanted.isPrivate())
    return makeError("--function=", name, ": the spec has no such public function; it has ", listFunctions(module));
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (func != wanted && !func.isPrivate())
      func.erase();
  return Error::success();
}

ReportTarget getTarget(const CompileOptions &options) {
  return {options.target, options.gpu, options.schedule, options.levels};
}

/// A copy of the spec with the attentions that run in place of lists of rows and of unions.
OwningOpRef<ModuleOp> splitCopy(ModuleOp module, const CompileRequest &request) {
  OwningOpRef<ModuleOp> copy = module.clone();
  expandRows(*copy);
  if (request.options.gpu)
    splitUnionsForGPU(*copy, request.options.schedule);
  else
    splitUnions(*copy, request.options.target, request.options.schedule);
  return copy;
}

/// Says what runs slower than the pattern allows, each at its place.
Error tellFallbacks(ModuleOp spec, const CompileRequest &request) {
  bool any = false;
  OwningOpRef<ModuleOp> module = splitCopy(spec, request);
  ReportTarget target = getTarget(request.options);
  WalkResult walked = module->walk([&](AttentionOp op) {
    FailureOr<ScheduleChoice> choice = getSchedule(op, target);
    if (failed(choice))
      return WalkResult::interrupt();
    for (const Fallback &fallback : findFallbacks(op, choice->schedule, target)) {
      any = true;
      auto diagnostic = request.strict ? emitError(fallback.loc) : emitRemark(fallback.loc);
      diagnostic << fallback.what << "; " << fallback.advice;
    }
    return WalkResult::advance();
  });
  return walked.wasInterrupted() || (any && request.strict) ? toldAlready() : Error::success();
}

Error writeStage(ModuleOp module, const CompileRequest &request, llvm::raw_ostream &os) {
  OwningOpRef<ModuleOp> copy = module.clone();
  PassManager passes(module.getContext());
  if (request.emit >= Emit::Schedule)
    buildSchedule(passes, request.options);
  if (request.emit >= Emit::Tile)
    buildTiling(passes, request.options);
  if (request.emit == Emit::CPU)
    buildCPU(passes, request.options);
  if (request.emit == Emit::GPU)
    buildGPU(passes, request.options);
  if (failed(passes.run(*copy)))
    return toldAlready();
  copy->print(os);
  return Error::success();
}

Error writePTX(ModuleOp module, const CompileRequest &request, llvm::raw_ostream &os) {
  FailureOr<std::string> ptx = compileToPTX(module, request.options);
  if (failed(ptx))
    return toldAlready();
  if (request.emit == Emit::PTX) {
    os << *ptx;
    return Error::success();
  }
  llvm::Expected<std::string> cubin = assemblePTX(*ptx, request.options.gpu->chip);
  if (!cubin)
    return cubin.takeError();
  os << *cubin;
  return Error::success();
}

Error writeNative(ModuleOp module, const CompileRequest &request, llvm::raw_pwrite_stream &os) {
  FailureOr<NativeModule> native = compileToNative(module, request.options);
  if (failed(native))
    return toldAlready();
  if (request.emit == Emit::LLVM)
    native->module->print(os, nullptr);
  else if (failed(emitMachineCode(*native, os, request.emit == Emit::Asm)))
    return makeError("LLVM cannot write machine code for ", request.options.target.triple);
  return Error::success();
}

Error writeDeclarations(ModuleOp module, const CompileRequest &request, llvm::raw_ostream &os) {
  StringRef chip = request.options.gpu ? StringRef(request.options.gpu->chip) : StringRef();
  return failed(writeHeader(module, request.name, chip, os)) ? toldAlready() : Error::success();
}

/// Linkers work on files: the library is made beside other temporary files and read back.
Error writeShared(ModuleOp module, const CompileRequest &request, llvm::raw_pwrite_stream &os) {
  llvm::Triple target(request.options.target.triple), host(llvm::sys::getProcessTriple());
  if (target.getArch() != host.getArch() || target.getOS() != host.getOS())
    return makeError("--emit=shared links for this machine only, not for ", target.str(),
                     "; use --emit=object and link it with a linker for that machine");
  llvm::SmallString<128> object, library;
  if (llvm::sys::fs::createTemporaryFile("attn", "o", object) ||
      llvm::sys::fs::createTemporaryFile("attn", "so", library))
    return makeError("no temporary file could be made for the linker");
  llvm::FileRemover removeObject(object), removeLibrary(library);
  {
    std::error_code code;
    llvm::raw_fd_ostream file(object, code);
    if (code)
      return makeError(object, ": ", code.message());
    if (Error error = writeNative(module, request, file))
      return error;
  }
  std::string message;
  if (failed(linkShared(object, library, request.options.threads, message)))
    return makeError(message);
  auto bytes = llvm::MemoryBuffer::getFile(library);
  if (!bytes)
    return makeError(library, ": ", bytes.getError().message());
  os << (*bytes)->getBuffer();
  return Error::success();
}

/// "Drawn at random: ..." where a report or picture rests on data that no file gave.
std::vector<std::string> makeNotes(const MaskInputs &inputs, uint64_t seed) {
  if (inputs.drawn.empty())
    return {};
  std::string note;
  llvm::raw_string_ostream(note) << "%" << llvm::join(inputs.drawn, ", %")
                                 << (inputs.drawn.size() == 1 ? " is" : " are") << " drawn at random (seed " << seed
                                 << "); --input=" << inputs.drawn.front() << "=FILE.npy gives it";
  return {note};
}

Error writeReport(ModuleOp spec, const CompileRequest &request, llvm::raw_ostream &os) {
  OwningOpRef<ModuleOp> module = splitCopy(spec, request);
  CompileReport report;
  report.target = getTarget(request.options);
  report.threads = request.options.threads;
  for (auto func : module->getOps<func::FuncOp>()) {
    if (func.isPrivate())
      continue;
    llvm::Expected<MaskInputs> inputs =
        makeMaskInputs(func, spec.lookupSymbol<func::FuncOp>(func.getName()), request.inputs);
    if (!inputs)
      return inputs.takeError();
    size_t before = report.attentions.size();
    for (MaskInputs::Attention &a : inputs->attentions) {
      auto made =
          makeReport({a.op, a.extents, a.headDim, a.valueDim, std::move(a.captured), a.operandBytes}, report.target);
      if (failed(made))
        return toldAlready();
      report.attentions.push_back(std::move(*made));
    }
    auto works = llvm::map_to_vector(inputs->steps, [](const CountedStep &step) { return step.work; });
    report.functions.push_back(makeReport(func, ArrayRef(report.attentions).drop_front(before), works));
    for (std::string &note : makeNotes(*inputs, request.inputs.seed))
      report.notes.push_back(std::move(note));
  }
  (request.json ? printReportAsJSON : printReport)(report, os);
  return Error::success();
}

/// How a mask that looks scattered is run; empty for others.
FailureOr<std::string> describeProblems(AttentionOp op, const CompileOptions &options) {
  FailureOr<ScheduleChoice> choice = getSchedule(op, getTarget(options));
  if (failed(choice))
    return failure();
  ScheduleAttr schedule = choice->schedule;
  if (schedule.getReindex() != ReindexKind::Residue)
    return std::string();
  return llvm::formatv("Run as {0} smaller problems without gaps: tokens of one residue modulo {0} each.",
                       schedule.getReindexSize())
      .str();
}

Error writePicture(ModuleOp spec, const CompileRequest &request, llvm::raw_ostream &os) {
  OwningOpRef<ModuleOp> copy = spec.clone();
  expandRows(*copy);
  ModuleOp module = *copy;
  auto isPublic = [](func::FuncOp func) { return !func.isPrivate(); };
  auto functions = llvm::to_vector(llvm::make_filter_range(module.getOps<func::FuncOp>(), isPublic));
  if (functions.size() != 1)
    return makeError("a picture shows one function; choose it with --function=NAME among: ", listFunctions(module));
  llvm::Expected<MaskInputs> inputs =
      makeMaskInputs(functions.front(), spec.lookupSymbol<func::FuncOp>(functions.front().getName()), request.inputs);
  if (!inputs)
    return inputs.takeError();
  if (inputs->attentions.empty())
    return makeError("'", functions.front().getName(), "' holds no attn.attention, so there is no mask to draw");
  std::vector<MaskEvaluator> evaluators;
  for (const MaskInputs::Attention &a : inputs->attentions)
    evaluators.emplace_back(a.op, a.extents, a.captured);
  std::vector<MaskPicture> pictures;
  for (auto [attention, evaluator] : llvm::zip_equal(inputs->attentions, evaluators)) {
    std::vector<std::string> notes = makeNotes(*inputs, request.inputs.seed);
    FailureOr<std::string> note = describeProblems(attention.op, request.options);
    if (failed(note))
      return toldAlready();
    if (!note->empty())
      notes.push_back(*note);
    pictures.push_back({functions.front().getName().str(), describeMask(attention.op), std::move(notes), &evaluator});
  }
  drawMasks(pictures, os);
  return Error::success();
}

} // namespace

Error writeSpec(ModuleOp module, const CompileRequest &request, llvm::raw_pwrite_stream &os) {
  if (Error error = selectFunction(module, request.function))
    return error;
  // The report speaks of fallbacks itself.
  bool compiles = request.emit >= Emit::Schedule && request.emit <= Emit::Shared;
  if (compiles || request.strict)
    if (Error error = tellFallbacks(module, request))
      return error;
  switch (request.emit) {
  case Emit::Attn:
  case Emit::Schedule:
  case Emit::Tile:
  case Emit::CPU:
  case Emit::GPU:
    return writeStage(module, request, os);
  case Emit::PTX:
  case Emit::Cubin:
    return writePTX(module, request, os);
  case Emit::LLVM:
  case Emit::Asm:
  case Emit::Object:
    return writeNative(module, request, os);
  case Emit::Shared:
    return writeShared(module, request, os);
  case Emit::Header:
    return writeDeclarations(module, request, os);
  case Emit::SVG:
    return writePicture(module, request, os);
  case Emit::Report:
    return writeReport(module, request, os);
  }
  llvm_unreachable("unknown kind of output");
}

} // namespace attn
