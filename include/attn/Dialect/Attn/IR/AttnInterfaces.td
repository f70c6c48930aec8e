//===- AttnInterfaces.td - Interfaces of the attn dialect ----*- tablegen -*-===//
#ifndef ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD
#define ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD

include "mlir/IR/OpBase.td"

def MaskOpInterface : OpInterface<"MaskOpInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    An op that may stand in a mask region. Named predicates implement it themselves; `arith` and `index` ops get it as external
    models. Both methods have defaults: an op is basic (it is its own meaning) and its interval is not known.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the meaning of this op at the insertion point, with arith, tensor.extract, attn.contains, attn.num_keys and
      attn.num_queries, and returns the value that replaces its result. Null: the op is already basic.
    }], "::mlir::Value", "expand", (ins "::mlir::OpBuilder &":$builder), "", "return {};">,
    InterfaceMethod<[{
      Given an interval for each operand, the interval of the result. For i1 results `lo` means all and `hi` means any of the pairs keep.
      Operands that are not integers (captured tensors) have an interval that is not read. Failure: read the expansion if there
      is one, else nothing is known.
    }], "::mlir::FailureOr<::attn::Interval>", "readInterval",
      (ins "::attn::IntervalBuilder &":$builder, "::llvm::ArrayRef<::attn::Interval>":$operands), "",
      "return ::mlir::failure();">,
  ];
}

def CompiledOpInterface : OpInterface<"CompiledOpInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    An op that a compiled function runs: attention, or one of the steps around it. Its operands and results are ranked tensors.
    A function of such ops gets its C interface, and the extents of what is between them, from this alone.
  }];
  let methods = [
    InterfaceMethod<"Which dimensions of its operands and results have one extent, and which extents follow from others.",
      "::llvm::SmallVector<::attn::ExtentTie>", "getExtentTies">,
    InterfaceMethod<"The operands and results whose last dimension has to have stride 1.",
      "::llvm::SmallVector<::mlir::Value>", "getContiguous">,
    InterfaceMethod<"Which extents have to be multiples of others, besides what a kernel of attention asks of its heads.",
      "::llvm::SmallVector<::attn::ExtentMultiple>", "getMultiples", (ins), "", "return {};">,
    InterfaceMethod<"Of an operand of integers that are indices: the dimension that they index. Random inputs ask.",
      "::std::optional<::attn::ExtentPlace>", "getIndexed", (ins "::mlir::Value":$operand), "", "return std::nullopt;">,
    InterfaceMethod<"Its work at given extents. Attention's depends on its mask: a plan tells it.",
      "::attn::StepWork", "getWork", (ins "::attn::ExtentGetter":$extent), "", "return {};">,
  ];
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD
