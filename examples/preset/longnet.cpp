// A preset of one's own: dilated attention (Ding et al., LongNet, 2023). No pass of attn-mlir knows it.
//
// `longnet OUT.o [SETTING=VALUE...]` prints the spec and compiles it.
#include "attn/Compile/Compile.h"
#include "attn/Presets/Presets.h"
#include "attn/Register.h"
#include "attn/Support/Names.h"
#include "mlir/InitAllDialects.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/WithColor.h"

/// Of every segment, head h attends among the tokens h mod dilation, h mod dilation + dilation, ...; the outputs of the
/// others are 0.
static attn::Preset longNet() {
  return {"longnet",
          "Ding et al., LongNet (2023): dilated attention",
          "fixed",
          "O(N segment / dilation^2)",
          /*decodes=*/true,
          {attn::Setting::number("segment", 2048, 1, "tokens of a segment"),
           attn::Setting::number("dilation", 4, 1, "one token in so many takes part")},
          [](const attn::Settings &set) -> llvm::Expected<std::string> {
            return set.fill(R"(func.func @longnet(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %dilation = arith.constant $dilation : index
    %turn = arith.remui %h, %dilation : index
    %place = arith.remui %j, %dilation : index
    %chosen = arith.cmpi eq, %place, %turn : index
    %step = attn.stride %i, %j {size = $dilation}
    %near = attn.same_block %i, %j {size = $segment}
    %past = attn.causal %i, %j
    %both = arith.andi %chosen, %step : i1
    %seen = arith.andi %near, %past : i1
    %keep = arith.andi %both, %seen : i1
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  return %out : !t
}
)");
          }};
}

static llvm::Error compile(llvm::StringRef spec, llvm::StringRef path) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  attn::registerAllDialects(registry);
  attn::registerAllExtensions(registry);
  mlir::MLIRContext context(registry);
  auto source = std::make_shared<llvm::SourceMgr>();
  source->AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(spec, "preset:longnet"), llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler handler(*source, &context);
  mlir::OwningOpRef<mlir::ModuleOp> module = attn::parseSpec(source, &context);
  std::string message;
  auto target = attn::TargetModel::get("native", "", message);
  if (!module || failed(target))
    return llvm::createStringError("cannot compile: " + message);
  attn::CompileRequest request;
  request.options.target = *target;
  request.options.threads = false;
  request.name = "longnet";
  std::error_code code;
  llvm::raw_fd_ostream file(path, code);
  return code ? llvm::createStringError(code, path) : attn::writeSpec(*module, request, file);
}

int main(int argc, char **argv) {
  attn::registerPreset(longNet());
  attn::PresetRequest request{"longnet", {}};
  for (int i = 2; i < argc; ++i) {
    auto [name, value] = llvm::StringRef(argv[i]).split('=');
    request.settings[name.str()] = value.str();
  }
  llvm::Expected<std::string> spec = attn::writePreset(request);
  llvm::Error error = spec ? llvm::Error::success() : spec.takeError();
  if (!error) {
    llvm::outs() << *spec;
    error = argc < 2 ? llvm::createStringError("usage: longnet OUT.o [SETTING=VALUE...]") : compile(*spec, argv[1]);
  }
  if (!error)
    return 0;
  llvm::WithColor::error(llvm::errs(), "longnet") << llvm::toString(std::move(error)) << "\n";
  return 1;
}
