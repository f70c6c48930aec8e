//===- Levels.cpp - One object with a body for each of several CPUs -------===//
//
// All bodies lie in one LLVM module, every function with the CPU it is for, and NAME, NAME_plan and NAME_run jump to
// the body that was chosen. What chooses is feature bits, so that a CPU which nobody has named gets the best that it
// can run.
//
//===----------------------------------------------------------------------===//
#include "attn/Target/Levels.h"
#include "Native.h"
#include "attn/Runtime/Levels.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"

using namespace mlir;

namespace attn {
namespace {

/// Features that LLVM makes instructions of by itself, where CPUID tells them.
struct Feature {
  const char *name;
  AttnFeatureWord word;
  int bit;
};

constexpr Feature kFeatures[] = {{"sse3", ATTN_LEAF1_C, 0},
                                 {"ssse3", ATTN_LEAF1_C, 9},
                                 {"fma", ATTN_LEAF1_C, 12},
                                 {"cx16", ATTN_LEAF1_C, 13},
                                 {"sse4.1", ATTN_LEAF1_C, 19},
                                 {"sse4.2", ATTN_LEAF1_C, 20},
                                 {"movbe", ATTN_LEAF1_C, 22},
                                 {"popcnt", ATTN_LEAF1_C, 23},
                                 {"avx", ATTN_LEAF1_C, 28},
                                 {"f16c", ATTN_LEAF1_C, 29},
                                 {"bmi", ATTN_LEAF7_B, 3},
                                 {"avx2", ATTN_LEAF7_B, 5},
                                 {"bmi2", ATTN_LEAF7_B, 8},
                                 {"avx512f", ATTN_LEAF7_B, 16},
                                 {"avx512dq", ATTN_LEAF7_B, 17},
                                 {"adx", ATTN_LEAF7_B, 19},
                                 {"avx512ifma", ATTN_LEAF7_B, 21},
                                 {"avx512cd", ATTN_LEAF7_B, 28},
                                 {"avx512bw", ATTN_LEAF7_B, 30},
                                 {"avx512vl", ATTN_LEAF7_B, 31},
                                 {"avx512vbmi", ATTN_LEAF7_C, 1},
                                 {"avx512vbmi2", ATTN_LEAF7_C, 6},
                                 {"gfni", ATTN_LEAF7_C, 8},
                                 {"vaes", ATTN_LEAF7_C, 9},
                                 {"vpclmulqdq", ATTN_LEAF7_C, 10},
                                 {"avx512vnni", ATTN_LEAF7_C, 11},
                                 {"avx512bitalg", ATTN_LEAF7_C, 12},
                                 {"avx512vpopcntdq", ATTN_LEAF7_C, 14},
                                 {"avx512vp2intersect", ATTN_LEAF7_D, 8},
                                 {"avx512fp16", ATTN_LEAF7_D, 23},
                                 {"avxvnni", ATTN_LEAF7_1_A, 4},
                                 {"avx512bf16", ATTN_LEAF7_1_A, 5},
                                 {"avxifma", ATTN_LEAF7_1_A, 23},
                                 {"lzcnt", ATTN_EXTENDED1_C, 5},
                                 {"sse4a", ATTN_EXTENDED1_C, 6},
                                 {"xop", ATTN_EXTENDED1_C, 11},
                                 {"fma4", ATTN_EXTENDED1_C, 16},
                                 {"tbm", ATTN_EXTENDED1_C, 21}};
/// What the operating system saves: XMM and YMM, and beside them the masks and both parts of ZMM.
constexpr uint32_t kSavesAVX = 0x6, kSavesAVX512 = 0xe6;

AttnLevel describe(const TargetModel &target) {
  std::string error;
  llvm::Triple triple(target.triple);
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  std::unique_ptr<llvm::MCSubtargetInfo> info(backend->createMCSubtargetInfo(triple, target.cpu, target.features));
  AttnLevel level = {};
  for (const Feature &feature : kFeatures)
    if (info->checkFeatures(std::string("+") + feature.name))
      level.needs[feature.word] |= 1u << feature.bit;
  if (info->checkFeatures("+avx"))
    level.needs[ATTN_XCR0] = info->checkFeatures("+avx512f") ? kSavesAVX512 : kSavesAVX;
  level.amx = target.amx;
  return level;
}

int countBits(const AttnLevel &level) {
  int bits = level.amx ? 1 : 0;
  for (uint32_t word : level.needs)
    bits += llvm::popcount(word);
  return bits;
}

class Dispatch {
public:
  Dispatch(NativeModule &native, ArrayRef<TargetModel> levels, ArrayRef<std::string> entries)
      : native(native), levels(levels), entries(entries), b(*native.context) {}

  LogicalResult link(ArrayRef<ModuleOp> bodies);
  void add();
  SmallVector<std::string> visible() const;

private:
  llvm::Function *addChoice();
  void addEntry(StringRef name, llvm::Function *choice);
  llvm::Constant *table();

  NativeModule &native;
  ArrayRef<TargetModel> levels;
  ArrayRef<std::string> entries;
  llvm::IRBuilder<> b;
};

LogicalResult Dispatch::link(ArrayRef<ModuleOp> bodies) {
  for (auto [body, level] : llvm::zip_equal(bodies, levels)) {
    auto machine = createMachine(level);
    auto made = translate(body, level, *machine, *native.context);
    if (failed(made))
      return failure();
    for (llvm::GlobalValue &value : (*made)->global_values()) {
      if (value.isDeclaration())
        continue;
      if (llvm::is_contained(entries, value.getName()))
        value.setName(getLevelName(value.getName(), level));
      else
        value.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
    if (llvm::Linker::linkModules(*native.module, std::move(*made)))
      return emitError(ModuleOp(body)->getLoc(), "the bodies for several CPUs could not be linked into one module");
  }
  return success();
}

llvm::Constant *Dispatch::table() {
  SmallVector<uint32_t> words;
  for (const TargetModel &target : levels) {
    AttnLevel level = describe(target);
    words.append(std::begin(level.needs), std::end(level.needs));
    words.push_back(level.amx);
  }
  llvm::Constant *data = llvm::ConstantDataArray::get(*native.context, ArrayRef<uint32_t>(words));
  return new llvm::GlobalVariable(*native.module, data->getType(), /*isConstant=*/true,
                                  llvm::GlobalValue::InternalLinkage, data, "attn.levels");
}

// int attn.level(void): asked once. Threads may ask at the same time: they get the same answer.
llvm::Function *Dispatch::addChoice() {
  llvm::Type *number = b.getInt32Ty();
  auto *fn = llvm::Function::Create(llvm::FunctionType::get(number, false), llvm::GlobalValue::InternalLinkage,
                                    "attn.level", *native.module);
  auto *known = new llvm::GlobalVariable(*native.module, number, /*isConstant=*/false,
                                         llvm::GlobalValue::InternalLinkage, b.getInt32(0), "attn.level.known");
  auto callee = native.module->getOrInsertFunction(
      "attn_choose_level", llvm::FunctionType::get(number, {b.getPtrTy(), b.getInt64Ty()}, false));
  auto *start = llvm::BasicBlock::Create(*native.context, "", fn),
       *ask = llvm::BasicBlock::Create(*native.context, "", fn),
       *end = llvm::BasicBlock::Create(*native.context, "", fn);
  b.SetInsertPoint(start);
  auto *before = b.CreateAlignedLoad(number, known, llvm::Align(4));
  before->setAtomic(llvm::AtomicOrdering::Monotonic);
  b.CreateCondBr(b.CreateICmpEQ(before, b.getInt32(0)), ask, end);
  b.SetInsertPoint(ask);
  llvm::Value *chosen = b.CreateCall(callee, {table(), b.getInt64(levels.size())});
  llvm::Value *kept = b.CreateAdd(chosen, b.getInt32(2)); // 0: not asked yet
  b.CreateAlignedStore(kept, known, llvm::Align(4))->setAtomic(llvm::AtomicOrdering::Monotonic);
  b.CreateBr(end);
  b.SetInsertPoint(end);
  auto *either = b.CreatePHI(number, 2);
  either->addIncoming(before, start);
  either->addIncoming(kept, ask);
  b.CreateRet(b.CreateSub(either, b.getInt32(2)));
  return fn;
}

void Dispatch::addEntry(StringRef name, llvm::Function *choice) {
  llvm::Function *first = native.module->getFunction(getLevelName(name, levels.front()));
  auto *fn = llvm::Function::Create(first->getFunctionType(), llvm::GlobalValue::ExternalLinkage, name, *native.module);
  auto *start = llvm::BasicBlock::Create(*native.context, "", fn),
       *none = llvm::BasicBlock::Create(*native.context, "", fn);
  b.SetInsertPoint(start);
  auto *jump = b.CreateSwitch(b.CreateCall(choice), none, levels.size());
  for (auto [i, level] : llvm::enumerate(levels)) {
    auto *block = llvm::BasicBlock::Create(*native.context, "", fn);
    jump->addCase(b.getInt32(i), block);
    b.SetInsertPoint(block);
    SmallVector<llvm::Value *> arguments;
    for (llvm::Argument &argument : fn->args())
      arguments.push_back(&argument);
    auto *call = b.CreateCall(native.module->getFunction(getLevelName(name, level)), arguments);
    call->setTailCall();
    b.CreateRet(call);
  }
  b.SetInsertPoint(none);
  auto refuse = native.module->getOrInsertFunction(
      "attn_no_level", llvm::FunctionType::get(b.getInt32Ty(), {b.getPtrTy(), b.getPtrTy()}, false));
  std::string names = llvm::join(llvm::map_range(levels, [](const TargetModel &level) { return level.name; }), ", ");
  b.CreateRet(b.CreateCall(refuse, {b.CreateGlobalString(name), b.CreateGlobalString(names)}));
}

void Dispatch::add() {
  llvm::Function *choice = addChoice();
  for (const std::string &entry : entries)
    addEntry(entry, choice);
}

SmallVector<std::string> Dispatch::visible() const {
  SmallVector<std::string> names(entries);
  for (const std::string &entry : entries)
    for (const TargetModel &level : levels)
      names.push_back(getLevelName(entry, level));
  return names;
}

} // namespace

std::string getLevelName(StringRef entry, const TargetModel &level) {
  std::string name = (entry + "_on_" + level.name).str();
  for (char &c : name)
    c = llvm::isAlnum(c) ? c : '_';
  return name;
}

void sortLevels(std::vector<TargetModel> &levels) {
  llvm::sort(levels, [](const TargetModel &a, const TargetModel &b) {
    return countBits(describe(a)) > countBits(describe(b));
  });
}

FailureOr<NativeModule> makeNative(ArrayRef<ModuleOp> bodies, ArrayRef<TargetModel> levels, RuntimeForm runtime,
                                   ArrayRef<std::string> entries) {
  TargetModel least = levels.back(); // what all bodies share runs on any CPU
  least.cpu = "x86-64", least.features.clear();
  NativeModule native;
  native.context = std::make_unique<llvm::LLVMContext>();
  native.machine = createMachine(least);
  native.module = std::make_unique<llvm::Module>("attn", *native.context);
  native.module->setTargetTriple(native.machine->getTargetTriple());
  native.module->setDataLayout(native.machine->createDataLayout());
  Dispatch dispatch(native, levels, entries);
  if (failed(dispatch.link(bodies)))
    return failure();
  dispatch.add();
  Location loc = bodies.front()->getLoc();
  if (failed(linkBitcode(*native.module, levelsBitcode(), least)) ||
      failed(linkRuntime(*native.module, runtime, least)))
    return emitError(loc, "the runtime could not be linked into the module");
  if (failed(finish(native, dispatch.visible(), loc)))
    return failure();
  return std::move(native);
}

} // namespace attn
