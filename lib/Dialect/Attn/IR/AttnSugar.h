//===- AttnSugar.h - The short form of masks ---------------------*- C++ -*-===//
//
//   mask := and-term { "or" and-term }            and-term := term { "and" term }
//   term := "not" term | "(" mask ")" | "blocked" "(" size "," mask ")" | name [ "(" [ arguments ] ")" ]
//   arguments := argument { "," argument }
//   argument := integer | "[" integers "]" | key "=" (integer | "[" integers "]") | captured ":" type
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_DIALECT_ATTN_IR_ATTNSUGAR_H
#define ATTN_LIB_DIALECT_ATTN_IR_ATTNSUGAR_H

#include "mlir/IR/OpImplementation.h"

namespace attn {

/// A predicate op: its index operands by letter, then a captured tensor if any; its parameters in order, [] marking
/// lists and ? what may be left out.
struct PredicateForm {
  llvm::StringLiteral name;
  llvm::StringLiteral places;
  bool captures;
  llvm::StringLiteral parameters;
  /// M counts tokens, not blocks, so predicates that read it make no sense over block numbers.
  bool readsNumKeys = false;
};

/// A parameter of a form.
struct Parameter {
  llvm::StringRef name;
  bool isList;
  bool isOptional;
};

/// The predicates, and attn.contains by what is looked up: leading indices are taken from the letters before the last,
/// which is the value.
extern const llvm::ArrayRef<PredicateForm> predicateForms, setForms;

llvm::SmallVector<Parameter> parametersOf(const PredicateForm &form);

/// The form with its arguments filled in, for messages: those that it needs and the one called `shown`.
std::string exampleOf(const PredicateForm &form, llvm::StringRef shown = {});

/// The form of this name, or null.
const PredicateForm *findForm(llvm::ArrayRef<PredicateForm> forms, llvm::StringRef name);

/// The letters of the indices that lead to the row of a set of this rank: column_in b | b h, in_table i | h i | b h i.
/// Nothing where the rank does not fit.
std::optional<llvm::StringRef> leadingPlaces(const PredicateForm &form, int64_t rank);

/// Parses a mask in short form, from behind the opening to behind the closing parenthesis, into the empty `region`;
/// `counted`: the region yields what the outermost `or`s join, each for itself.
mlir::ParseResult parseMaskSugar(mlir::OpAsmParser &parser, mlir::Region &region, bool counted);

/// Prints the region in short form, in parentheses; false, with nothing printed, where it has none.
bool printMaskSugar(mlir::OpAsmPrinter &printer, mlir::Region &region);

} // namespace attn

#endif // ATTN_LIB_DIALECT_ATTN_IR_ATTNSUGAR_H
