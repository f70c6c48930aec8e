//===- AttnDialect.td - The attn dialect ---------------------*- tablegen -*-===//
#ifndef ATTN_DIALECT_ATTN_IR_ATTNDIALECT_TD
#define ATTN_DIALECT_ATTN_IR_ATTNDIALECT_TD

include "mlir/IR/OpBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::attn";
  let summary = "Attention patterns: what attends to what, on tensors";
  let description = [{
    One op, `attn.attention`, states softmax attention together with the predicate that says which query position may attend
    to which key position. The predicate is written once, as a region of `arith` and `index` ops over positions and captured
    tensors; a named predicate such as `attn.causal` is one more op in that region. All predicates and arithmetic ops share
    `MaskOpInterface`, so that every reading of a mask (pointwise, by intervals, by ranges) comes from the same region.

    Nothing at this level speaks of a target. `#attn.schedule` carries the tile sizes once they are chosen.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
  let hasConstantMaterializer = 1;
  let hasCanonicalizer = 1; // patterns whose root is an arith op
  let useDefaultAttributePrinterParser = 1;
}

class Attn_Op<string mnemonic, list<Trait> traits = []> : Op<Attn_Dialect, mnemonic, traits>;

#endif // ATTN_DIALECT_ATTN_IR_ATTNDIALECT_TD
