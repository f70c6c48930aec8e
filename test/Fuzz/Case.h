//===- Case.h - A random spec and the inputs to run it on -------*- C++ -*-===//
//
// A case is kept as a tree, not as text, so that it can be made smaller while it still fails.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_TEST_FUZZ_CASE_H
#define ATTN_TEST_FUZZ_CASE_H

#include "attn/Run/Run.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attn::fuzz {

/// An extent as a multiple of a variable, or a number: (variable * multiple) ceildiv divisor + more.
struct Extent {
  int variable = -1; // -1: the number `more`
  int64_t multiple = 1, divisor = 1, more = 0;

  int64_t get(llvm::ArrayRef<int64_t> variables) const;
};

/// What the elements of a tensor are.
enum class Filling { Normal, Special, Documents, Uniform, Extreme };

/// An argument or a constant of the function.
struct Tensor {
  std::string name, element; // "t3", "i32"
  std::vector<Extent> dims;
  Filling filling = Filling::Normal;
  int64_t least = 0, most = 7; // Uniform
  double factor = 1;           // Normal
  bool constant = false;       // arith.constant instead of an argument; dims are numbers
  uint64_t seed = 0;           // of the elements of a constant
};

/// One op of a region with its operands as subtrees. In `text`, $0 is an operand and @b @h @i @j @s a block argument;
/// a text of a block argument alone is no op.
struct Expression {
  std::string text, type;
  std::vector<Expression> operands;
  std::string sugar;   // the short form, where there is one
  int64_t blocked = 0; // the operand over block numbers of this size; `text` is empty

  bool isPlace() const { return text.size() == 2 && text[0] == '@'; }
  bool hasSugar() const;
};

struct Attention {
  std::string query, key, value, output; // names of tensors
  Extent batch, queryHeads, keyHeads, queries, keys, dim, valueDim;
  std::string scale; // empty: the default
  bool bottomRight = false, sugar = false, counted = false, lse = false, returned = true;
  std::string joined;             // the output of an earlier op, which has an lse; empty: none
  std::string sink;               // a tensor of logits by head; empty: none
  std::string table, bias;        // of distances; empty: none
  std::string queryRows, keyRows; // lists; empty: none
  std::optional<Expression> mask, score;

  /// Are the parts of an `or` counted? Of another mask there is one part.
  bool counts() const { return counted && mask && mask->text == "arith.ori $0, $1 : i1"; }
};

/// How queries and keys lie to each other.
enum class Relation { Free, Same, Opposite, Growing };

/// One run of the compiled function.
struct Variant {
  std::vector<int64_t> variables;
  Layout layout = Layout::Contiguous;
  Guard guard = Guard::None;
  Relation relation = Relation::Free;
  double factor = 1;       // of queries
  int64_t poisonEvery = 0; // 0: never; each such key holds NaN or infinities
  bool poisonInfinite = false;
  int64_t hugeEvery = 0; // 0: never; the first element of each such key (or query) is as large, either sign
  double huge = 0;
  bool hugeKeys = true, hugeQueries = false;
  int threads = 1;
  uint64_t seed = 0;
};

struct Case {
  std::vector<bool> isStatic; // is a variable fixed in the types? then all variants have the same
  std::vector<Tensor> tensors;
  std::vector<Attention> ops;
  std::vector<Variant> variants;
  std::string element = "f32"; // of queries, keys, values and outputs
  std::string cpu = "native";
  std::string chip; // a GPU in the emulator instead of the CPU; empty: none
  ScheduleOverrides schedule;

  const Tensor *find(llvm::StringRef name) const;
};

/// The case number `number` of a seed, for a GPU where `chip` names one.
Case drawCase(uint64_t seed, uint64_t number, const std::string &chip = "");

/// The spec as text.
std::string render(const Case &drawn);

/// The elements of a tensor of integers or floats, row-major.
struct Elements {
  std::vector<int64_t> integers;
  std::vector<double> floats;
};
Elements fill(const Tensor &tensor, llvm::ArrayRef<int64_t> shape, uint64_t seed);

/// What came of a case. `kind` is empty where all is well; "rejected" where the spec is refused with good reason.
struct Outcome {
  std::string kind, message;
  bool failed() const { return !kind.empty() && kind != "rejected"; }
};

/// Compiles and checks a case in this process. With a folder, the spec and the inputs of the last run are written
/// there.
Outcome check(const Case &drawn, const std::string &folder = "");

/// The same in a process of its own, so that a crash is an outcome too.
Outcome checkApart(const Case &drawn, const std::string &folder = "");

/// The smallest case found that fails in the same way.
Case shrink(Case failing, const Outcome &outcome, double seconds);

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_CASE_H
