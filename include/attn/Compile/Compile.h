//===- Compile.h - Write what a spec becomes --------------------*- C++ -*-===//
//
// What attn-compile does, for whoever wants it without the tool.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_COMPILE_COMPILE_H
#define ATTN_COMPILE_COMPILE_H

#include "attn/Inputs/Inputs.h"
#include "attn/Pipelines/Pipelines.h"

namespace attn {

/// What to write; in the order of the stages, then what is told about them.
enum class Emit { Attn, Schedule, Tile, CPU, GPU, LLVM, Asm, PTX, Cubin, Object, Shared, Header, SVG, Report };

/// Whether the bytes are for a linker and not for a person.
inline bool isBinary(Emit emit) { return emit == Emit::Cubin || emit == Emit::Object || emit == Emit::Shared; }

struct CompileRequest {
  Emit emit = Emit::Object;
  CompileOptions options;
  std::string name;     // of the spec, for the header
  std::string function; // only this one; "": all public ones
  InputOptions inputs;  // SVG and Report: what captured tensors hold, and the extents
  bool json = false;    // Report
  bool strict = false;  // what costs speed and does not follow from the pattern is an error
};

/// Writes what is asked for to `os`. Functions that are not asked for are erased from `module`. An error without text
/// was told by diagnostics; after an error nothing in `os` counts.
llvm::Error writeSpec(mlir::ModuleOp module, const CompileRequest &request, llvm::raw_pwrite_stream &os);

} // namespace attn

#endif // ATTN_COMPILE_COMPILE_H
